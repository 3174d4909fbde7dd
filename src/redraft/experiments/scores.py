"""The judge's scores, kept by text in a file of their own: a text is scored once, whoever wrote it."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from redraft.errors import InputError, OutputError
from redraft.evaluation.evaluate import Judged
from redraft.evaluation.judge import Score, load_judge
from redraft.evaluation.outputs import Output
from redraft.experiments.outputs import Watch
from redraft.models.pull import SOURCES, is_pulled
from redraft.recipes import RECIPES

UNITS = 5  # of work that a text takes, a step of a chain being one
_CHUNK = 64  # texts between two writes


def default_judge() -> str | None:
    """The first judge that was pulled, rather one that decides in no recipe; None where there is none."""
    deciding = {recipe.target for recipe in RECIPES.values()}
    return next((name for name in sorted(SOURCES, key=deciding.__contains__) if is_pulled(name)), None)


class Scores:
    """Scores by text. The file's first line says whose they are."""

    def __init__(self, path: Path, judge: str):
        self._path, self.judge = path, judge
        self.settings: Mapping[str, str] = {}
        self._scores: dict[str, Score] = {}
        if path.exists():
            self._read()

    def missing(self, texts: Iterable[str]) -> list[str]:
        """The different texts that have no score yet."""
        return [text for text in dict.fromkeys(texts) if text not in self._scores]

    def judged(self, outputs: Iterable[Output]) -> Judged:
        """Scores of outputs that were scored before."""
        return self.judged_texts(one.text for one in outputs)

    def judged_texts(self, texts: Iterable[str]) -> Judged:
        return Judged([self._scores[one] for one in texts], dict(self.settings))

    def add(self, texts: Iterable[str], watch: Watch) -> bool:
        """Score what is missing; false where it was stopped."""
        left = self.missing(texts)
        if not left:
            return True
        watch.say(f"judged by {self.judge}: {len(left)} sentences")
        judge = load_judge(self.judge)
        if self.settings and self.settings != judge.settings:
            raise OutputError(
                f"{self._path} holds scores of another {self.judge}; move it away or choose another --out"
            )
        with self._append() as file:
            if not self.settings:
                self.settings = judge.settings
                self._keep(file, [{"settings": judge.settings}])
            for start in range(0, len(left), _CHUNK):
                if watch.stopped():
                    return False
                chunk = left[start : start + _CHUNK]
                scores = judge.score(chunk, lambda num: watch.advance(num * UNITS))
                self._scores |= zip(chunk, scores, strict=True)
                pairs = zip(chunk, scores, strict=True)
                self._keep(file, [{"text": t, "nll": s.nll, "num_tokens": s.num_tokens} for t, s in pairs])
        return True

    def _append(self) -> IO[str]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise OutputError(f"cannot write to {self._path}: {error.strerror}") from error

    def _keep(self, file: IO[str], lines: Iterable[Mapping[str, Any]]) -> None:
        try:
            file.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
            file.flush()
        except OSError as error:
            raise OutputError(f"cannot write the scores ({error.strerror}); what was written before is kept") from error

    def _read(self) -> None:
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):  # torn by a kill
            self._path.write_bytes(whole)
        try:
            for number, line in enumerate(whole.split(b"\n")[:-1]):
                record = json.loads(line)
                if number == 0:
                    self.settings = {str(key): str(value) for key, value in record["settings"].items()}
                else:
                    self._scores[record["text"]] = Score(float(record["nll"]), int(record["num_tokens"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{self._path} is not a file of scores ({error}); move it away") from error
