"""Scores of the judge, cached by text in one file: each text is scored once, whichever system wrote it.

A record holds the NLL of a text and, if the two-sample test needs it, its features in half precision.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from redraft.errors import InputError, OutputError
from redraft.evaluation.evaluate import Judged
from redraft.evaluation.judge import JudgeReading, JudgeScore, load_judge
from redraft.experiments.run_systems import ProgressListener
from redraft.models.pull import SOURCES, is_pulled
from redraft.recipes import RECIPES

UNITS = 5  # units of work per text; a step of a chain is one
_CHUNK = 64  # texts between two writes


def default_judge() -> str | None:
    """The first judge that was pulled, preferably one that is not the target of a recipe; None if there is none."""
    deciding = {recipe.target for recipe in RECIPES.values()}
    return next((name for name in sorted(SOURCES, key=deciding.__contains__) if is_pulled(name)), None)


class JudgeTexts(NamedTuple):
    """Texts for a judge: ``read`` ones need features and a score, ``scored`` ones only a score."""

    read: Sequence[str] = ()
    scored: Sequence[str] = ()


class ScoreFile:
    """A file of scores by text. Its first line names the judge."""

    def __init__(self, path: Path, judge: str):
        self._path, self.judge = path, judge
        self.settings: Mapping[str, str] = {}
        self._readings: dict[str, JudgeReading] = {}
        self._read_texts: set[str] = set()  # texts whose features were requested, whether or not the judge has any
        if path.exists():
            self._read()

    def missing(self, texts: JudgeTexts) -> list[str]:
        """The distinct texts that lack a score, or the features that they need."""
        unread = [one for one in texts.read if one not in self._read_texts]
        return list(dict.fromkeys([*unread, *(one for one in texts.scored if one not in self._readings)]))

    @property
    def judged(self) -> Judged:
        """All scores."""
        return Judged(self._readings, dict(self.settings))

    def add(self, texts: JudgeTexts, listener: ProgressListener) -> bool:
        """Score the missing texts; returns False if stopped."""
        left, read = self.missing(texts), set(texts.read)
        if not left:
            return True
        listener.say(f"{self.judge} judges {len(left)} sentences")
        judge = load_judge(self.judge)
        if self.settings and self.settings != judge.settings:
            raise OutputError(
                f"{self._path} holds scores of a different {self.judge}; move it away or choose another --out"
            )
        with self._append() as file:
            if not self.settings:
                self.settings = judge.settings
                self._keep(file, [{"settings": judge.settings}])
            for start in range(0, len(left), _CHUNK):
                if listener.stopped():
                    return False
                chunk = left[start : start + _CHUNK]
                readings = judge.read(chunk, lambda num: listener.advance(num * UNITS))
                pairs = list(zip(chunk, readings, strict=True))
                records = [_record(text, reading, with_features=text in read) for text, reading in pairs]
                self._keep(file, records)
                # Rounded as in the file, so that a resumed run gives the same figures.
                for record in records:
                    self._take(record)
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
        if len(whole) < len(content):  # truncated by a kill
            self._path.write_bytes(whole)
        try:
            for number, line in enumerate(whole.split(b"\n")[:-1]):
                record = json.loads(line)
                if number == 0:
                    self.settings = {str(key): str(value) for key, value in record["settings"].items()}
                else:
                    self._take(record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{self._path} is not a file of scores ({error}); move it away") from error

    def _take(self, record: Mapping[str, Any]) -> None:
        self._readings[record["text"]] = _reading(record)
        if "features" in record:
            self._read_texts.add(record["text"])


def _record(text: str, reading: JudgeReading, *, with_features: bool) -> dict[str, Any]:
    record = {"text": text, "nll": reading.score.nll, "num_tokens": reading.score.num_tokens}
    if not with_features:
        return record
    if reading.features is None:
        return {**record, "features": ""}
    return {**record, "features": base64.b64encode(reading.features.astype("<f2").tobytes()).decode()}


def _reading(record: Mapping[str, Any]) -> JudgeReading:
    """Parse a record; raises ValueError, KeyError or TypeError if it is invalid."""
    score = JudgeScore(float(record["nll"]), int(record["num_tokens"]))
    return JudgeReading(score, _features(record.get("features")))


def _features(given: str | None) -> NDArray[np.float32] | None:
    if not given:
        return None
    return np.frombuffer(base64.b64decode(given, validate=True), "<f2").astype(np.float32)
