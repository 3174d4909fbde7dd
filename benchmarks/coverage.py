"""Are all given words in the output? Draws keyword sets from real sentences, writes with few steps, reads the text.

    python benchmarks/coverage.py SENTENCES.txt [--num 2000] [--steps 20] [--pack NAME|DIR] [--recipe NAME]

Keywords are words and phrases of two or three words, common and rare, one to six of them a set. The check does not use
redraft's own words: it looks for each keyword in the written text, as a whole word, in order.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np

import redraft
from redraft import text
from redraft.errors import ConstraintError
from redraft.sentence import Constraints
from redraft.writer import Settings

_BATCH = 50


def _keywords(words: list[str], rng: np.random.Generator) -> tuple[str, ...]:
    """One to six spans of a sentence, in order, a fifth of them phrases."""
    spans, at = [], int(rng.integers(0, 4))
    for _ in range(int(rng.integers(1, 7))):
        length = int(rng.choice([1, 2, 3], p=[0.8, 0.12, 0.08]))
        spans.append(text.detokenise(words[at : at + length]))
        at += length + int(rng.integers(0, 4))
        if at >= len(words):
            break
    return tuple(spans)


def draw_inputs(path: Path, num: int, seed: int = 0) -> list[Constraints]:
    rng = np.random.default_rng(seed)
    lines = path.read_text(encoding="utf-8").splitlines()
    inputs: list[Constraints] = []
    while len(inputs) < num:
        words = text.tokenise(lines[int(rng.integers(len(lines)))])
        try:
            inputs.append(Constraints(_keywords(words, rng)))
        except ConstraintError:
            continue  # a span of nothing but punctuation
    return inputs


def contains(shown: str, keywords: tuple[str, ...]) -> bool:
    """Whether the keywords stand in the text, in order, not as parts of longer words; the first may be capitalised."""
    at = 0
    for keyword in keywords:
        spaced = r"\s*".join(
            re.escape(word) for word in text.tokenise(keyword)
        )  # white space is the writer's to choose
        capital = r"\s*".join(re.escape(word) for word in text.surface(text.tokenise(keyword)))
        # "'s" leans on the word before it; U+02BC, a letter to regular expressions, is an apostrophe here.
        left = r"(?<![^\W\u02bc])" if text.is_word(keyword[0]) else ""
        right = r"(?![^\W\u02bc]|['\u2019]t\b)" if text.is_word(keyword[-1]) else ""  # "can" is not in "can't"
        start = f"{left}{spaced}" if at else rf"(?:{left}{spaced}|^\W*{capital})"
        found = re.compile(start + right).search(shown, at)
        if found is None:
            return False
        at = found.end()
    return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--num", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pack", default="english")
    parser.add_argument("--recipe", default="l-mcmc")
    arguments = parser.parse_args()
    inputs = draw_inputs(arguments.sentences, arguments.num)
    writer = redraft.load(arguments.pack, arguments.recipe)
    missed = 0
    for start in range(0, len(inputs), _BATCH):
        batch = inputs[start : start + _BATCH]
        for constraints, drafts in zip(
            batch, writer.write_many(batch, Settings(arguments.steps, seed=start)), strict=True
        ):
            if not (drafts[0].constraints_met and contains(drafts[0].text, constraints.keywords)):
                missed += 1
                print(f"missed: {constraints.keywords} in {drafts[0].text!r}")
        print(f"\r{start + len(batch)}/{len(inputs)}", end="", file=sys.stderr)
    print(f"\n{len(inputs) - missed} of {len(inputs)} outputs contain every keyword, in order")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
