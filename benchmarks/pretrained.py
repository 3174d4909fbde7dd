"""How good a draft is after how many seconds, when a pretrained model decides: the choice of the default's settings.

    redraft testset keywords --from SENTENCES.txt --k 4 --num 100 --out sets
    python benchmarks/pretrained.py run sets/keywords-k4.jsonl --out curve --scored 1,2,4,8,16,50 [--beam 10]
    python benchmarks/pretrained.py search sets/keywords-k4.jsonl --out curve
    python benchmarks/pretrained.py prompt sets/keywords-k4.jsonl --out curve
    python benchmarks/pretrained.py show curve --judge gemma-270m --picture curve.png

Inputs are written one after the other, as for a person who waits, and the best draft so far is noted with the time.
``search`` is grid beam search alone; ``prompt`` asks the same model to write the sentence. A run that was ended goes on
where it stopped.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from redraft import recipes, text
from redraft.evaluation.judge import load_judge
from redraft.models.pack import DEFAULT, open_pack
from redraft.records import constraints_of
from redraft.sentence import Constraints
from redraft.systems import ChainSystem, load
from redraft.writer import Settings, Shaping, Writer

_STEPS = 10_000  # the time limit ends a run
_TARGET = "smollm2"
_HUMAN = "human"
Look = tuple[float, str]  # seconds, the best draft then


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def left(inputs: Sequence[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    done = {line["id"] for line in read_lines(path)} if path.exists() else set()
    return [one for one in inputs if one["id"] not in done]


def note(path: Path, given: dict[str, Any], looks: Sequence[Look]) -> None:
    kept = {key: given[key] for key in ("id", "keywords", "reference")}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**kept, "looks": looks}) + "\n")


def looks_of(writer: Writer, constraints: Constraints, settings: Settings) -> list[Look]:
    """The drafts of one input, each from the moment on when it was the best."""
    looks: list[Look] = []
    started = time.perf_counter()

    def observe(_step: int, sentence: Any, _nll: float) -> bool:
        if not looks or looks[-1][1] != sentence.text:
            looks.append((round(time.perf_counter() - started, 3), sentence.text))
        return True

    (draft,) = writer.write(constraints, replace(settings, seed=0), observe)
    if not looks or looks[-1][1] != draft.text:
        looks.append((round(time.perf_counter() - started, 3), draft.text))
    return looks


def run(args: argparse.Namespace) -> None:
    pack = open_pack(args.pack)
    args.out.mkdir(parents=True, exist_ok=True)
    for scored in map(int, args.scored.split(",")):
        recipe = recipes.recipe(args.recipe or recipes.revising(pack).name, num_scored=scored)
        recipe = replace(recipe, beam=args.beam)
        path = args.out / f"{recipe.name}, {scored} scored, beam {args.beam}, {args.chains} chains.jsonl"
        writer = ChainSystem(recipe).open(pack, Shaping())
        settings = Settings(_STEPS, args.chains, time_limit=args.seconds)
        looks_of(writer, Constraints(("warm", "up")), Settings(5))  # a first call is slower than the others
        for given in left(read_lines(args.inputs), path):
            looks = looks_of(writer, constraints_of(given), settings)
            note(path, given, looks)
            print(scored, given["id"], looks[-1], flush=True)


def search(args: argparse.Namespace) -> None:
    """Grid beam search alone: by the pack's forward model, and by the target itself."""
    pack = open_pack(args.pack)
    args.out.mkdir(parents=True, exist_ok=True)
    for target in (None, _TARGET):
        path = args.out / f"{target or 'LSTM'}, grid beam search.jsonl"
        writer = load(pack, "gbs", target=target)
        for given in left(read_lines(args.inputs), path):
            looks = looks_of(writer, constraints_of(given), Settings(0))
            note(path, given, looks)
            print(given["id"], looks[-1], flush=True)


def prompt(args: argparse.Namespace) -> None:
    import torch

    from redraft.models.causal import hub
    from redraft.models.pull import pulled

    tokenizer, model = hub.load(str(pulled(_TARGET)))
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{_TARGET}, prompted, {args.beams} beams.jsonl"
    for given in left(read_lines(args.inputs), path):
        asked = f"Write one sentence that contains these words in this order: {', '.join(given['keywords'])}."
        started = time.perf_counter()
        messages = [{"role": "user", "content": asked}]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        with torch.inference_mode():
            written = model.generate(**ids, max_new_tokens=60, do_sample=False, num_beams=args.beams)
        answer = tokenizer.decode(written[0, ids["input_ids"].shape[1] :], skip_special_tokens=True).strip()
        first = answer.split("\n")[0].strip('" ')
        note(path, given, [(round(time.perf_counter() - started, 3), first)])
        print(given["id"], first, flush=True)


def at(looks: Sequence[Look], seconds: float) -> str:
    """The best draft after some seconds; the first one before there was any."""
    return [draft for when, draft in looks if when <= seconds or draft == looks[0][1]][-1]


def is_covered(line: dict[str, Any], shown: str) -> bool:
    """Whether the keywords stand in the text as words, in their order."""
    words = iter(word.lower() for word in text.tokenise(shown))
    return all(word.lower() in words for keyword in line["keywords"] for word in text.tokenise(keyword))


def show(args: argparse.Namespace) -> None:
    files = {path.stem: read_lines(path) for path in sorted(args.folder.glob("*.jsonl"))}
    if not files:
        raise SystemExit(f"{args.folder} holds no results; run the other commands first")
    grid = [float(one) for one in args.seconds.split(",")]
    texts = sorted(set(_all_texts(files, grid)))
    judge = load_judge(args.judge)
    nll = {shown: score.nll / score.num_tokens for shown, score in zip(texts, judge.score(texts), strict=True)}
    print(f"NLL per token by {judge.name}\n")
    print("| system | inputs | coverage | " + " | ".join(f"{t:g} s" for t in grid) + " | human | last over human |")
    print("|---|" + "---|" * (len(grid) + 4))
    curves = {}
    for name, lines in files.items():
        curve = [float(np.mean([nll[at(line["looks"], t)] for line in lines])) for t in grid]
        covered = np.mean([is_covered(line, line["looks"][-1][1]) for line in lines])
        cells = " | ".join(f"{value:.3f}" for value in curve)
        human = float(np.mean([nll[line["reference"]] for line in lines]))
        curves[name] = [value / human for value in curve]
        print(f"| {name} | {len(lines)} | {covered:.1%} | {cells} | {human:.3f} | {curves[name][-1]:.3f} |")
    if args.picture:
        draw(grid, curves, args.picture)


def _all_texts(files: dict[str, list[dict[str, Any]]], grid: Sequence[float]) -> Iterator[str]:
    for lines in files.values():
        for line in lines:
            yield line["reference"]
            yield from (at(line["looks"], seconds) for seconds in grid)


def draw(grid: Sequence[float], curves: dict[str, list[float]], path: Path) -> None:
    from redraft.experiments.pictures import colour_of, new_figure, save, tidy

    figure = new_figure(8, 4.5)
    axes = figure.subplots()
    for index, (name, curve) in enumerate(curves.items()):
        axes.plot(grid, curve, marker="o", markersize=3, color=colour_of(index), label=name)
    axes.axhline(1, color="#8a8a8a", linestyle="--", label=_HUMAN)
    axes.set_xlabel("seconds on two cores")
    axes.set_ylabel("NLL per token by the judge, over that of human text")
    axes.legend(fontsize=7)
    tidy(axes)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, command in (("run", run), ("search", search), ("prompt", prompt)):
        sub = commands.add_parser(name)
        sub.add_argument("inputs", type=Path)
        sub.add_argument("--out", type=Path, required=True)
        sub.set_defaults(command=command)
        if command is not prompt:
            sub.add_argument("--pack", default=DEFAULT)
        if command is run:
            sub.add_argument("--recipe")
            sub.add_argument("--scored", default="1,2,4,8,16,50")
            sub.add_argument("--beam", type=int, default=10)
            sub.add_argument("--chains", type=int, default=1)
            sub.add_argument("--seconds", type=float, default=10.0)
        if command is prompt:
            sub.add_argument("--beams", type=int, default=1)
    sub = commands.add_parser("show")
    sub.add_argument("folder", type=Path)
    sub.add_argument("--judge", default="gemma-270m")
    sub.add_argument("--seconds", default="1,2,3,4,5,7,10")
    sub.add_argument("--picture", type=Path)
    sub.set_defaults(command=show)
    args = parser.parse_args()
    args.command(args)


if __name__ == "__main__":
    main()
