"""redraft evaluate and redraft testset as a person calls them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft.app import evaluate as commands
from redraft.app.evaluate import evaluate
from redraft.errors import InputError
from redraft.text import render
from tests.evaluation.making import sentences

TEXTS = ["The doctor went home .", "A nurse saw the old market .", "The market fell by percent .", "The doctor said ."]
KEYWORDS = ["doctor", "nurse", "market", "patient"]


def write(path, texts, **changes):
    records = [
        {
            "id": i,
            "text": text,
            "steps": 4,
            "seconds": 0.5 + i,
            "trace": [{"action": "insert", "accepted": i % 2 == 0, "old": None, "new": "x"}],
            "input": {"id": i, "keywords": [keyword], "reference": f"The {keyword} went home ."},
            **changes,
        }
        for i, (text, keyword) in enumerate(zip(texts, KEYWORDS, strict=True))
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def run(command, *arguments):
    return CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture
def outputs(tmp_path):
    return write(tmp_path / "out.jsonl", TEXTS)


def test_json_has_every_figure(outputs, judge_folder):
    result = json.loads(run(evaluate, outputs, "--judge", judge_folder, "--json").stdout)
    figures = {figure["name"]: figure for figure in result["figures"]}
    assert result["num"] == 4
    assert list(figures) == [
        *("coverage", "coverage_words", "constraints_met", "coverage_forms", "coverage_forms_all"),
        *("nll_token", "nll_token_to_human", "nll_word", "keyword_fit"),
        *("bleu2_corpus", "bleu2_corpus_no_bp", "bleu4_corpus", "bleu4_corpus_no_bp"),
        *("bleu2_sentence", "bleu2_sentence_no_bp", "bleu4_sentence", "bleu4_sentence_no_bp"),
        *("caption_bleu4", "rouge_l", "cider_d"),
        *("self_bleu4", "self_bleu4_to_human", "distinct2", "distinct2_to_human", "entropy4", "entropy4_to_human"),
        "stock_phrases",
        *("repetition_unigram", "repetition_bigram", "repetition_trigram", "repetition_any"),
        *("repetition_unigram_content", "repetition_bigram_content", "repetition_trigram_content"),
        *("repetition_any_content", "length", "length_to_human"),
        *("acceptance_all", "acceptance_insert", "seconds", "seconds_per_step"),
    ]
    assert figures["coverage"]["value"] == 75
    assert figures["acceptance_insert"]["value"] == 50
    left_out = {one["name"]: one["reason"] for one in result["left_out"]}
    assert left_out["two_sample_accuracy"] == left_out["two_sample_auc"] == "needs at least 20 texts, not 4"
    # The references differ in their keywords alone, so each is as likely with the next one's.
    assert left_out["keyword_fit_to_human"].startswith("the references have a keyword_fit of")
    assert f"judge:{judge_folder.name}|sha256:" in figures["nll_token"]["signature"]
    assert all(figure["low"] <= figure["value"] + 1e-9 for figure in figures.values() if figure["low"] is not None)


def test_table_for_people(outputs):
    shown = run(evaluate, outputs, "--signatures").stdout
    assert re.search(r"^coverage +75\.000 +30\.064 to 95\.441 +%$", shown, re.MULTILINE)
    assert "nll_token" not in shown
    assert "self_bleu4|case:mixed|tok:redraft|smooth:method1|ci_by:influence|n:4|" in shown


def test_what_is_left_out_is_told(outputs, tmp_path, judge_folder):
    result = run(evaluate, outputs, "--judge", judge_folder)
    assert "left out: two_sample_accuracy: needs at least 20 texts, not 4\n" in result.stderr
    assert "left out" not in result.stdout
    alone = tmp_path / "alone.jsonl"
    alone.write_text('{"id": 1, "text": "The doctor ."}\n')
    assert "two_sample_auc: needs references" in run(evaluate, alone, "--judge", judge_folder).stderr
    assert run(evaluate, alone).stderr == ""


def test_many_outputs_are_compared_with_human_text(tmp_path, judge_folder):
    """Sentences that say one thing over and over, against varied ones."""
    references = [render(words) for words in sentences(30, seed=1)]
    lines = [{"id": i, "text": f"The doctor said to the nurse {i} .", "reference": references[i]} for i in range(30)]
    out, own = tmp_path / "out.jsonl", tmp_path / "own.jsonl"
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    own.write_text("".join(json.dumps({**line, "text": line["reference"]}) + "\n" for line in lines))
    figures = {
        f["name"]: f for f in json.loads(run(evaluate, out, "--judge", judge_folder, "--json").stdout)["figures"]
    }
    assert figures["two_sample_accuracy"]["value"] > 90
    assert figures["two_sample_auc"]["value"] > 95
    assert figures["stock_phrases"]["details"][0] == "doctor said to the (30 of 30)"
    assert "stock_phrases: doctor said to the (30 of 30); " in run(evaluate, out).stdout
    human = json.loads(run(evaluate, own, "--judge", judge_folder, "--json").stdout)
    ratios = [(f["value"], f["low"], f["high"]) for f in human["figures"] if f["name"].endswith("_to_human")]
    assert ratios == [(1.0, 1.0, 1.0)] * 5
    assert {one["reason"] for one in human["left_out"]} == {"the outputs are the references"}


def test_several_references(outputs, tmp_path):
    references = tmp_path / "refs.jsonl"
    lines = [{"id": i, "references": ["Nothing alike", text]} for i, text in enumerate(TEXTS)]
    references.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = json.loads(run(evaluate, outputs, "--references", references, "--json").stdout)
    figures = {figure["name"]: figure for figure in result["figures"]}
    assert figures["rouge_l"]["value"] == pytest.approx(100)
    assert figures["caption_bleu4"]["value"] == pytest.approx(100)
    assert "refs:2|" in figures["cider_d"]["signature"]


def test_outputs_with_text_alone(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text('{"id": 1, "text": "One word ."}\n')
    names = [figure["name"] for figure in json.loads(run(evaluate, path, "--json").stdout)["figures"]]
    assert names[0] == "distinct2"
    assert names[-1] == "length"


def test_references_of_a_file(outputs, tmp_path):
    references = tmp_path / "refs.txt"
    references.write_text("\n".join(TEXTS) + "\n")
    result = json.loads(run(evaluate, outputs, "--references", references, "--json").stdout)
    assert [f["value"] for f in result["figures"] if f["name"] == "bleu2_corpus"] == pytest.approx([100])


def test_comparison(outputs, tmp_path):
    other = write(tmp_path / "other.jsonl", [text.replace(".", "and home .") for text in TEXTS])
    result = json.loads(run(evaluate, outputs, "--compare", other, "--json").stdout)
    (length,) = [one for one in result["differences"] if one["name"] == "length"]
    assert (length["value"], length["first"], length["second"]) == (-2, 5.5, 7.5)
    assert length["p_value"] == pytest.approx(1 / 1001)
    assert "paired-bootstrap" in length["signature"]
    assert "first - second" in run(evaluate, outputs, "--compare", other).stdout


def test_bad_input_is_one_line(outputs, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    unknown = write(tmp_path / "unknown.jsonl", TEXTS, input={"keywords": ["a"], "colour": "red"})
    partly = tmp_path / "partly.jsonl"
    partly.write_text(outputs.read_text() + '{"id": 9, "text": "No input .", "reference": "None ."}\n')
    other = tmp_path / "short.jsonl"
    other.write_text("".join(outputs.read_text().splitlines(keepends=True)[:-1]))
    for arguments in (
        [empty],
        [tmp_path / "none"],
        [outputs, "--references", empty],
        [outputs, "--references", other],
        [outputs, "--compare", other],
        [outputs, "--judge", tmp_path],
        [outputs, "--judge", tmp_path / "none"],
        [outputs, "--draws", 0],
        [unknown],
        [partly],
    ):
        with pytest.raises(InputError) as caught:
            run(evaluate, *arguments)
        assert "\n" not in str(caught.value)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.txt"
    path.write_text("The old doctor went to the new market on a cold Friday .\nA young nurse saw many sick people .\n")
    return path


def test_keyword_sets(source, tmp_path):
    result = run(commands.testset, "keywords", "--from", source, "--k", "1,3", "--num", 2, "--out", tmp_path / "sets")
    records = [json.loads(line) for file in result.stdout.split() for line in Path(file).read_text().splitlines()]
    assert [len(record["keywords"]) for record in records] == [1, 1, 3, 3]


def test_infill_sets(source, tmp_path):
    out = tmp_path / "set.jsonl"
    arguments = ["--from", source, "--strategy", "middle", "--ratio", 50, "--num", 2, "--seed", 3, "--out", out]
    run(commands.testset, "infill", *arguments)
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [sorted(record) for record in records] == [["id", "lengths", "reference", "template"]] * 2


@pytest.mark.parametrize(
    "arguments",
    [["--k", "0"], ["--k", "one"], ["--k", ""], ["--num", 0], ["--num", 3], ["--seed", -1], ["--from", "none"]],
)
def test_bad_options_of_a_set(source, tmp_path, arguments):
    with pytest.raises(InputError):
        run(commands.testset, "keywords", "--from", source, "--num", 2, "--out", tmp_path / "sets", *arguments)
    assert not (tmp_path / "sets").exists()


def test_test_sets_are_read_by_generate(source, tmp_path):
    from redraft.records import constraints_of

    out = tmp_path / "all.jsonl"
    run(commands.testset, "keywords", "--from", source, "--k", "1,2", "--num", 2, "--out", out)
    assert [len(constraints_of(json.loads(line)).keywords) for line in out.read_text().splitlines()] == [1, 1, 2, 2]


def test_help_imports_nothing_heavy():
    code = "import sys, redraft.app.evaluate; print({'torch', 'transformers', 'sacrebleu', 'numpy'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
