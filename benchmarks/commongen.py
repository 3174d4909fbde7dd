"""CommonGen: an independent check of coverage, large models beside redraft, blind pairs, and the time that forms take.

    python benchmarks/commongen.py references dev.tsv everyday.txt
    python benchmarks/commongen.py check outputs.jsonl
    python benchmarks/commongen.py lite lite-dev.jsonl --out lite.jsonl
    python benchmarks/commongen.py models dev.tsv lite-dev.jsonl outputs.jsonl
    python benchmarks/commongen.py pairs lite-dev.jsonl outputs.jsonl --model Llama-2-7b-chat-hf --out pairs/lite
    python benchmarks/commongen.py seconds inputs.jsonl --num 20

``references`` says what people do with the concepts, and how many of their sentences the training text has.
``check`` shares no code with redraft: it looks for the lemmas of all words of a text, and takes irregular forms from a
list of its own. ``lite`` writes inputs for ``redraft generate``, ``models`` compares their outputs with those of large
models, ``pairs`` prepares pairs for a blind reader.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sense import COLUMNS, material, measure, table, used

import redraft
from redraft.evaluation.commongen import keyword
from redraft.evaluation.judge import load_judge
from redraft.records import constraints_of

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_POS = {"V": "VERB", "N": "NOUN", "A": "ADJ"}
# The lemma, then forms that no rule gives.
_IRREGULAR = """
be am is are was were been | beat beaten | become became | begin began begun | bend bent | bite bit bitten | bleed bled
blow blew blown | break broke broken | bring brought | build built | burn burnt | buy bought | catch caught
choose chose chosen | come came | creep crept | deal dealt | dig dug | do does did done | draw drew drawn | dream dreamt
drink drank drunk | drive drove driven | eat ate eaten | fall fell fallen | feed fed | feel felt | fight fought
find found | flee fled | fly flew flown flies | forget forgot forgotten | freeze froze frozen | get got gotten
give gave given | go went gone goes | grind ground | grow grew grown | hang hung | have has had | hear heard
hide hid hidden | hold held | keep kept | kneel knelt | know knew known | lay laid | lead led | lean leant | leap leapt
leave left | lend lent | lie lay lain lying | light lit | lose lost | make made | mean meant | meet met | mow mown
pay paid | ride rode ridden | ring rang rung | rise rose risen | run ran | say said | see saw seen | sell sold
send sent | sew sewn | shake shook shaken | shine shone | shoot shot | show shown | shrink shrank shrunk
sing sang sung | sink sank sunk | sit sat | sleep slept | slide slid | speak spoke spoken | spend spent | spin spun
spring sprang sprung | stand stood | steal stole stolen | stick stuck | sting stung | strike struck | sweep swept
swim swam swum | swing swung | take took taken | teach taught | tear tore torn | tell told | think thought
throw threw thrown | tie tying | understand understood | wake woke woken | wear wore worn | weave wove woven
weep wept | win won | wind wound | write wrote written | child children | foot feet | goose geese | half halves
knife knives | leaf leaves | life lives | loaf loaves | man men | mouse mice | person people | scarf scarves
shelf shelves | tooth teeth | wife wives | wolf wolves | woman women | good better best | bad worse worst
far further furthest farther farthest
"""
_ENTRIES = [entry.split() for entry in re.split(r"[|\n]", _IRREGULAR) if entry]
_LEMMA = {form: lemma for lemma, *forms in _ENTRIES for form in forms}


def lemmas(word: str) -> set[str]:
    """The words that a word of a text may be a form of, by the dictionary of lemminflect in reverse and by the list.

    A word that the dictionary lacks, such as "peelers", may have a regular ending.
    """
    from lemminflect import getAllLemmas

    found = {lemma for several in getAllLemmas(word).values() for lemma in several}
    found = found or {word.removesuffix(ending) for ending in ("s", "es", "ed", "ing")}
    return {word, *found, *([_LEMMA[word]] if word in _LEMMA else [])}


def has_all(text: str, concepts: Sequence[str]) -> bool:
    """Whether each concept has a word of its own in the text that is a form of it."""
    found = [lemmas(one.lower()) for one in _WORD.findall(text)]

    def can_place(number: int, taken: frozenset[int]) -> bool:
        return number == len(concepts) or any(
            concepts[number] in several and i not in taken and can_place(number + 1, taken | {i})
            for i, several in enumerate(found)
        )

    return can_place(0, frozenset())


def references(args: argparse.Namespace) -> None:
    """Print the shares of human sentences with all concepts as they are, and with all of them in their order."""
    seen = {tuple(_WORD.findall(line.lower())) for line in args.training.read_text(encoding="utf-8").splitlines()}
    num = num_verbatim = num_ordered = num_seen = 0
    for line in args.references.read_text(encoding="utf-8").splitlines():
        concepts, *several = line.split("\t")
        for words in (_WORD.findall(one.lower()) for one in several if one.strip()):
            left = iter(words)
            num += 1
            num_verbatim += set(concepts.split()) <= set(words)
            num_ordered += all(concept in left for concept in concepts.split())
            num_seen += tuple(words) in seen
    print(f"{num} human sentences, {num_seen} of them in the training text")
    print(f"all concepts as they are: {num_verbatim / num:.1%}; in their order, too: {num_ordered / num:.1%}")


def check(args: argparse.Namespace) -> None:
    """Print the share of outputs with all concepts; as a control, with those of the next input."""
    lines = _records(args.outputs)
    wanted = [[one.partition("~")[0].lower() for one in line["input"]["keywords"]] for line in lines]
    missed = [line for line, concepts in zip(lines, wanted, strict=True) if not has_all(line["text"], concepts)]
    for line in missed:
        print(f"missed: {line['id']} {line['input']['keywords']} in {line['text']!r}")
    others = sum(
        has_all(line["text"], concepts) for line, concepts in zip(lines, [*wanted[1:], wanted[0]], strict=True)
    )
    print(f"{len(lines) - len(missed)} of {len(lines)} outputs have all concepts; of the next input: {others}")
    sys.exit(bool(missed))


def lite(args: argparse.Namespace) -> None:
    """Write the concepts as inputs, each in any form, in any order."""
    with args.out.open("w", encoding="utf-8") as file:
        for record in _records(args.models):
            named = [one.rsplit("_", 1) for one in record["concepts"]]
            keywords = [keyword(name, _POS[pos]) for name, pos in named]
            file.write(json.dumps({"id": record["id"], "keywords": keywords, "order": "any"}) + "\n")


def models(args: argparse.Namespace) -> None:
    """Print the metrics of redraft and of every large model, against human captions of other concepts."""
    ours = {line["id"]: line["text"] for line in _records(args.outputs)}
    records = [record for record in _records(args.models) if record["id"] in ours]
    rng = np.random.default_rng(args.seed)
    human = [line.split("\t")[1] for line in args.references.read_text(encoding="utf-8").splitlines()]
    references = [human[i] for i in rng.permutation(len(human))[: len(records)]]
    texts = {"redraft": [ours[record["id"]] for record in records]}
    texts |= {name: [record["outputs"][name] for record in records] for name in records[0]["outputs"]}
    concepts = [[concept.rsplit("_", 1)[0] for concept in record["concepts"]] for record in records]
    materials = {name: material(several, references, used(several, concepts)) for name, several in texts.items()}
    columns = COLUMNS | {"keyword_fit": "keyword fit, nats", "coverage_forms": "keywords found, %"}
    del columns["keyword_fit_to_human"]
    print(table(measure(materials, load_judge(args.judge)), columns))


def pairs(args: argparse.Namespace) -> None:
    """Write pairs of sentences in random order and on random sides, and the key: A is redraft, B the model."""
    ours = {line["id"]: line["text"] for line in _records(args.outputs)}
    records = [record for record in _records(args.models) if record["id"] in ours]
    rng = np.random.default_rng(args.seed)
    shown, key = [], {}
    for number, i in enumerate(rng.permutation(len(records))[: args.num], 1):
        record, sides = records[i], ["A", "B"] if rng.random() < 0.5 else ["B", "A"]
        texts = {"A": ours[record["id"]], "B": record["outputs"][args.model]}
        words = ", ".join(concept.rsplit("_", 1)[0] for concept in record["concepts"])
        left, right = (texts[side] for side in sides)
        shown.append(f"{number}. words, in any form and order: {words}\n   L: {left}\n   R: {right}\n")
        key[number] = sides
    args.out.with_suffix(".txt").write_text("".join(shown), encoding="utf-8")
    args.out.with_suffix(".key").write_text(json.dumps(key), encoding="utf-8")


def seconds(args: argparse.Namespace) -> None:
    """Time the same inputs with forms and with the words as they are, both in any order, in turns."""
    inputs = _records(args.inputs)[: args.num]
    forms = [constraints_of({"keywords": one["keywords"], "order": "any"}) for one in inputs]
    plain = [
        constraints_of({"keywords": [word.partition("~")[0] for word in one["keywords"]], "order": "any"})
        for one in inputs
    ]
    writer = redraft.load(particles=args.particles)
    writer.write_many(forms[:1], redraft.Settings(seed=0))  # the models are loaded when they are needed
    totals = np.zeros((2, len(inputs)))
    for number in range(len(inputs)):
        for arm, several in enumerate((forms, plain)):
            started = time.process_time()
            writer.write_many([several[number]], redraft.Settings(seed=args.seed), numbers=[number])
            totals[arm, number] = time.process_time() - started
    with_forms, without = totals.mean(1)
    print(f"processor seconds per input: {with_forms:.2f} with forms, {without:.2f} without")
    print(f"ratio {with_forms / without:.2f}")


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", default="gemma-270m")
    parser.add_argument("--seed", type=int, default=0)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("references")
    for name in ("references", "training"):
        one.add_argument(name, type=Path)
    one.set_defaults(run=references)
    one = commands.add_parser("check")
    one.add_argument("outputs", type=Path)
    one.set_defaults(run=check)
    one = commands.add_parser("lite")
    one.add_argument("models", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=lite)
    one = commands.add_parser("models")
    for name in ("references", "models", "outputs"):
        one.add_argument(name, type=Path)
    one.set_defaults(run=models)
    one = commands.add_parser("pairs")
    one.add_argument("models", type=Path)
    one.add_argument("outputs", type=Path)
    one.add_argument("--model", default="Llama-2-7b-chat-hf")
    one.add_argument("--num", type=int, default=40)
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=pairs)
    one = commands.add_parser("seconds")
    one.add_argument("inputs", type=Path)
    one.add_argument("--num", type=int, default=20)
    one.add_argument("--particles", type=int)
    one.set_defaults(run=seconds)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
