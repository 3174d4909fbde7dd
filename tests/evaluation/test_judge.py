"""Golden: the judge equals a plain loop of transformers over single sentences."""

import shutil
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from redraft.errors import InputError
from redraft.evaluation import judge as judge_module
from redraft.evaluation.fluency import fluency
from redraft.evaluation.judge import JudgeScore, JudgeSource, load_judge
from redraft.models.causal import hub
from redraft.text import render
from tests.evaluation.making import make_judge, sentences

TEXTS = [render(words) for words in sentences(60, seed=6, most=40)] + ["", "Unheard ."]


def plain_loop(folder, texts, start=None, end=None):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    first = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    scores = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False)
        ids = torch.tensor([[*(start or [first]), *ids, *(end or [tokenizer.eos_token_id])]])
        labels = ids.clone()
        labels[:, : len(start or [first])] = -100
        with torch.no_grad():
            loss = model.eval()(ids, labels=labels).loss.item()  # the mean over the scored tokens
        scores.append((loss, int((labels != -100).sum())))
    return scores


def test_equals_a_plain_loop(judge_folder):
    scores = load_judge(str(judge_folder)).score(TEXTS)
    expected = plain_loop(judge_folder, TEXTS)
    assert [score.num_tokens for score in scores] == [num for _, num in expected]
    assert [score.nll / score.num_tokens for score in scores] == pytest.approx([nll for nll, _ in expected], abs=1e-3)


def test_the_output_layer_is_taken_apart_only_where_nothing_follows_it(judge_folder, monkeypatch):
    judge = load_judge(str(judge_folder))
    assert judge.has_plain_head
    whole = replace(judge, has_plain_head=False).score(TEXTS)
    assert [score.nll for score in judge.score(TEXTS)] == pytest.approx([score.nll for score in whole], abs=1e-4)
    plain = judge.model.forward

    def capped(*arguments, **options):  # as some models do
        found = plain(*arguments, **options)
        found.logits = 2.0 * torch.tanh(found.logits / 2.0)
        return found

    monkeypatch.setattr(judge.model, "forward", capped)
    assert not judge_module._has_plain_head(judge.model, [1, 2])


def test_start_and_end_may_be_texts(judge_folder, monkeypatch):
    source = JudgeSource(str(judge_folder), start="said ,", end=".")
    monkeypatch.setattr(judge_module, "find_judge", lambda _: source)
    judge = load_judge("some-name")
    expected = plain_loop(judge_folder, TEXTS, start=list(judge.start), end=list(judge.end))
    assert len(judge.start) == 2
    assert [score.nll for score in judge.score(TEXTS)] == pytest.approx([nll * n for nll, n in expected], abs=1e-3)
    assert judge.settings["judge"] == "some-name"
    assert judge.settings["start"] == '"said ,"'


def test_batches_do_not_matter(judge_folder, monkeypatch):
    judge = load_judge(str(judge_folder))
    together = judge.score(TEXTS)
    monkeypatch.setattr(judge_module, "_MAX_BATCH", 1)
    done = []
    alone = judge.score(TEXTS, done.append)
    assert [score.nll for score in alone] == pytest.approx([score.nll for score in together], abs=1e-3)
    assert done == [1] * len(TEXTS)


def test_nothing_to_score(judge_folder):
    assert load_judge(str(judge_folder)).score([]) == []


def test_hash_is_of_the_weights_and_not_of_the_place(judge_folder, tmp_path):
    copy = shutil.copytree(judge_folder, tmp_path / "copy")
    judge, moved = load_judge(str(judge_folder)), load_judge(str(copy))
    assert judge.sha256 == moved.sha256
    assert judge.settings["sha256"] == judge.sha256[:12]
    assert (judge.name, moved.name) == (judge_folder.name, "copy")
    model = AutoModelForCausalLM.from_pretrained(copy)
    with torch.no_grad():
        next(model.parameters())[0, 0] += 1
    model.save_pretrained(copy)
    assert load_judge(str(copy)).sha256 != judge.sha256


def test_half_precision_is_read_as_single(judge_folder, tmp_path):
    copy = shutil.copytree(judge_folder, tmp_path / "half")
    AutoModelForCausalLM.from_pretrained(copy).to(torch.bfloat16).save_pretrained(copy)
    assert {p.dtype for p in load_judge(str(copy)).model.parameters()} == {torch.float32}


def test_too_long_for_the_judge(judge_folder):
    with pytest.raises(InputError, match="reads at most 64 tokens, and 102 are needed"):
        load_judge(str(judge_folder)).score(["home " * 100])


def test_no_such_folder():
    with pytest.raises(InputError, match="does not exist"):
        load_judge("./no/such/folder")


def test_unknown_name_is_asked_for_once(monkeypatch):
    asked = []

    def refuse(location):
        asked.append(location)
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr(hub, "_require_hub", refuse)
    with pytest.raises(InputError, match=r"no-such-judge cannot be loaded: .*no route to the hub"):
        load_judge("no-such-judge")
    assert asked == ["no-such-judge"]


@pytest.mark.parametrize("damage", ["empty", "config", "weights", "truncated", "pickle", "no end"])
def test_damaged_folder_is_one_line(tmp_path, damage):
    folder = tmp_path / "judge"
    folder.mkdir()
    if damage != "empty":
        make_judge(folder, "gpt2")
    weights = folder / "model.safetensors"
    if damage == "config":
        (folder / "config.json").write_text("{}")
    if damage == "weights":
        weights.write_bytes(b"nonsense")
    if damage == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    if damage == "pickle":
        weights.rename(folder / "pytorch_model.bin")
    if damage == "no end":
        settings = folder / "tokenizer_config.json"
        settings.write_text(settings.read_text().replace("eos_token", "no_token"))
    with pytest.raises(InputError, match="judge") as caught:
        load_judge(str(folder))
    assert "\n" not in str(caught.value)


def test_fluency_by_hand():
    per_token, per_word = fluency([["a", "."], ["b"]], [JudgeScore(8.0, 4), JudgeScore(3.0, 3)], {"judge": "x"})
    assert per_token.value == pytest.approx((2 + 1) / 2)
    assert per_word.value == pytest.approx((8 / 3 + 3 / 2) / 2)
    assert per_token.settings["judge"] == "x"
