"""Do the metrics of sense work, and what do they say of the systems? Makes the tables of docs/results/sense.md.

    redraft testset keywords --from dev.txt --k 4 --num 100 --out sets
    redraft generate --input sets/keywords-k4.jsonl --recipe gbs --output outputs/gbs.jsonl   (and so on)
    python benchmarks/sense.py prompt sets/keywords-k4.jsonl --out outputs/prompted.jsonl
    python benchmarks/sense.py controls dev.txt
    python benchmarks/sense.py captions commongen/dev.tsv commongen/lite-dev.jsonl
    python benchmarks/sense.py systems outputs/gbs.jsonl outputs/prompted.jsonl ...
    python benchmarks/sense.py curve outputs/particles-1.jsonl outputs/particles-4.jsonl ... --picture curve.png

``controls`` measures human text against other human text, and against itself with the words shuffled. ``captions``
ranks large language models, one of them also with its words shuffled. A metric that ranks that high is useless.
``curve`` shows quality against seconds per input.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from redraft import text
from redraft.evaluation.evaluate import (
    Judged,
    Material,
    figures,
    metrics_of,
    swapped_texts_to_judge,
    texts_to_judge,
)
from redraft.evaluation.judge import Judge, load_judge
from redraft.evaluation.metric import Bootstrap, Figure
from redraft.evaluation.outputs import SystemOutput, own_references, read_outputs
from redraft.evaluation.testsets import read_sentences
from redraft.inflect import family
from redraft.records import constraints_of
from redraft.sentence import Constraints

COLUMNS = {
    "two_sample_accuracy": "two-sample accuracy, %",
    "two_sample_auc": "AUC, %",
    "nll_token_to_human": "NLL / human",
    "self_bleu4_to_human": "Self-BLEU-4 / human",
    "distinct2_to_human": "Distinct-2 / human",
    "entropy4_to_human": "Entropy-4 / human",
    "length_to_human": "length / human",
    "keyword_fit_to_human": "keyword fit / human",
    "stock_phrases": "stock phrases, %",
}
SHUFFLED = "gpt-4, words shuffled"
MODELS = {
    "gpt-4-0613": "gpt-4",
    "gpt-3.5-turbo": "gpt-3.5",
    "Mixtral-8x7B-Instruct-v0.1": "Mixtral-8x7B",
    "Llama-2-7b-chat-hf": "Llama-2-7b",
}


def measure(materials: Mapping[str, Material], judge: Judge) -> dict[str, dict[str, Figure]]:
    """All figures by the name of what was measured; the judge reads every text once."""
    needed = [t for one in materials.values() for t in (*texts_to_judge(one), *swapped_texts_to_judge(one))]
    texts = list(dict.fromkeys(needed))
    judged = Judged(dict(zip(texts, judge.read(texts), strict=True)), judge.settings)
    return {
        name: {
            figure.name: figure
            for figure in figures(
                metrics_of(Material(one.outputs, one.constraints, one.references, judged)).metrics, Bootstrap()
            )
        }
        for name, one in materials.items()
    }


def table(found: Mapping[str, Mapping[str, Figure]], columns: Mapping[str, str] = COLUMNS) -> str:
    shown = {name: title for name, title in columns.items() if any(name in row for row in found.values())}
    lines = [f"| | {' | '.join(shown.values())} |", "|---" * (len(shown) + 1) + "|"]
    for title, row in found.items():
        lines.append(f"| {title} | {' | '.join(_cell(row.get(name)) for name in shown)} |")
    return "\n".join(lines)


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    digits = 0 if figure.unit == "%" else 2
    interval = "" if figure.low is None else f" ({figure.low:.{digits}f} to {figure.high:.{digits}f})"
    return f"{figure.value:.{digits}f}{interval}"


def material(texts: Sequence[str], references: Sequence[str], constraints: Sequence[Constraints] | None) -> Material:
    outputs = [SystemOutput(str(i), one, tuple(text.tokenise(one))) for i, one in enumerate(texts)]
    return Material(outputs, constraints, [(one,) for one in references])


def shuffled(sentence: str, rng: np.random.Generator) -> str:
    words = text.tokenise(sentence)
    return text.detokenise([words[i] for i in rng.permutation(len(words))])


def controls(args: argparse.Namespace) -> None:
    sentences = [text.detokenise(words) for words in read_sentences(args.sentences)]
    rng = np.random.default_rng(args.seed)
    chosen = [sentences[i] for i in rng.permutation(len(sentences))[: 2 * args.num]]
    references, others = chosen[: args.num], chosen[args.num :]
    materials = {
        "other human sentences": material(others, references, None),
        "the same, words shuffled": material([shuffled(one, rng) for one in references], references, None),
    }
    print(table(measure(materials, load_judge(args.judge))))


def captions(args: argparse.Namespace) -> None:
    rng = np.random.default_rng(args.seed)
    records = [json.loads(line) for line in args.models.read_text(encoding="utf-8").splitlines()]
    human = [line.split("\t")[1] for line in args.references.read_text(encoding="utf-8").splitlines()]
    order = rng.permutation(len(human))
    references = [human[i] for i in order[: len(records)]]
    texts = {"other human captions": [human[i] for i in order[len(records) : 2 * len(records)]]}
    texts |= {title: [record["outputs"][name] for record in records] for name, title in MODELS.items()}
    texts[SHUFFLED] = [shuffled(one, rng) for one in texts["gpt-4"]]
    concepts = [[concept.rsplit("_", 1)[0] for concept in record["concepts"]] for record in records]
    materials = {
        title: material(several, references, None if title.startswith("other") else used(several, concepts))
        for title, several in texts.items()
    }
    # People wrote for other concepts here: no ratio of keyword fit, but its own value, and coverage.
    columns = COLUMNS | {"keyword_fit": "keyword fit, nats", "coverage_forms": "keywords found, %"}
    del columns["keyword_fit_to_human"]
    print(table(measure(materials, load_judge(args.judge)), columns))


def used(texts: Sequence[str], concepts: Sequence[Sequence[str]]) -> list[Constraints]:
    """The concepts as each text writes them; as they are given where it has no form of them."""
    found = []
    for one, wanted in zip(texts, concepts, strict=True):
        words = text.tokenise(one)
        written = [next((w for w in words if w.lower() in family(concept)), concept) for concept in wanted]
        found.append(Constraints(tuple(written)))
    return found


def measured(paths: Sequence[Path], judge: str) -> dict[str, dict[str, Figure]]:
    """All figures of files of outputs, by the name of the file."""
    materials = {}
    for path in paths:
        outputs = read_outputs(path)
        constraints = [constraints_of(dict(one.input)) for one in outputs]
        materials[path.stem] = Material(outputs, constraints, own_references(outputs))
    return measure(materials, load_judge(judge))


def curve(args: argparse.Namespace) -> None:
    found = measured(args.outputs, args.judge)
    for path in args.outputs:
        seconds = [json.loads(line)["seconds"] for line in path.read_text(encoding="utf-8").splitlines()]
        found[path.stem]["seconds"] = Figure(
            "seconds", float(np.mean(seconds)), None, None, "s", "wall clock", len(seconds)
        )
    columns = {"seconds": "seconds per input", **COLUMNS}
    print(table(found, columns))
    if args.picture:
        draw(found, args.picture)


def draw(found: Mapping[str, Mapping[str, Figure]], path: Path) -> None:
    """Two metrics of sense against seconds per input, with the values of human text as lines."""
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(9, 3.5), layout="constrained")
    shown = {"two_sample_accuracy": 50.0, "nll_token_to_human": 1.0}
    for axes, (name, human) in zip(picture.subplots(1, 2), shown.items(), strict=True):
        seconds, values = ([row[key].value for row in found.values()] for key in ("seconds", name))
        low, high = ([row[name].low for row in found.values()], [row[name].high for row in found.values()])
        errors = [np.subtract(values, low), np.subtract(high, values)]
        axes.errorbar(seconds, values, errors, marker="o", capsize=3, color="#0072b2")
        axes.axhline(human, color="#8a8a8a", linestyle="--")
        axes.annotate("human", (max(seconds), human), ha="right", va="bottom", color="#8a8a8a")
        for x, y, title in zip(seconds, values, found, strict=True):
            axes.annotate(title, (x, y), textcoords="offset points", xytext=(6, 6), fontsize=8)
        axes.set(xscale="log", xlabel="seconds per input", title=COLUMNS[name])
        axes.set_xticks(seconds, [f"{one:.1f}" for one in seconds])
        axes.minorticks_off()
    picture.savefig(path, dpi=110)


def systems(args: argparse.Namespace) -> None:
    found = measured(args.outputs, args.judge)
    print(table(found))
    for name, row in found.items():
        print(f"{name}: {'; '.join(row['stock_phrases'].details[:3]) or 'no stock phrase'}")


def prompt(args: argparse.Namespace) -> None:
    """SmolLM2 asked in words to write the sentence, at its usual temperature, once, whatever it makes of it."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from redraft.models.pull import pulled

    tokenizer = AutoTokenizer.from_pretrained(pulled("smollm2"))
    model = AutoModelForCausalLM.from_pretrained(pulled("smollm2"))
    torch.manual_seed(args.seed)
    inputs = [json.loads(line) for line in args.inputs.read_text(encoding="utf-8").splitlines()]
    with args.out.open("w", encoding="utf-8") as file:
        for given in inputs:
            asked = f"Write one sentence of news that contains these words: {', '.join(given['keywords'])}."
            chat = [{"role": "user", "content": asked}]
            ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")["input_ids"]
            made = model.generate(ids, max_new_tokens=60, do_sample=True, temperature=0.7, top_p=0.9)
            answer = tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True).strip().split("\n")[0]
            file.write(json.dumps({"id": given["id"], "text": answer or "-", "input": given}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", default="gemma-270m")
    parser.add_argument("--seed", type=int, default=0)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("controls")
    one.add_argument("sentences", type=Path)
    one.add_argument("--num", type=int, default=200)
    one.set_defaults(run=controls)
    one = commands.add_parser("captions")
    one.add_argument("references", type=Path)
    one.add_argument("models", type=Path)
    one.set_defaults(run=captions)
    one = commands.add_parser("systems")
    one.add_argument("outputs", type=Path, nargs="+")
    one.set_defaults(run=systems)
    one = commands.add_parser("curve")
    one.add_argument("outputs", type=Path, nargs="+")
    one.add_argument("--picture", type=Path)
    one.set_defaults(run=curve)
    one = commands.add_parser("prompt")
    one.add_argument("inputs", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=prompt)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
