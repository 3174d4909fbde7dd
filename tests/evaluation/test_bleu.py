"""Golden: nltk and sacrebleu agree with our BLEU to 1e-6."""

import pytest
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu, sentence_bleu
from sacrebleu.metrics import BLEU

from redraft.evaluation.bleu import bleu
from tests.evaluation.making import sentences

OUTPUTS = sentences(60, seed=1)
REFERENCES = [[*words[:5], *more] for words, more in zip(OUTPUTS, sentences(60, seed=2), strict=True)]
METRICS = {metric.name: metric for metric in bleu(OUTPUTS, REFERENCES)}
WEIGHTS = {2: (0.5, 0.5), 4: (0.25,) * 4}


def penalty(outputs, references) -> float:
    from nltk.translate.bleu_score import brevity_penalty

    return brevity_penalty(sum(map(len, references)), sum(map(len, outputs)))


@pytest.mark.parametrize("order", [2, 4])
def test_corpus_bleu_equals_sacrebleu_and_nltk(order):
    value = METRICS[f"bleu{order}_corpus"].value
    lines = [" ".join(words) for words in OUTPUTS], [[" ".join(words) for words in REFERENCES]]
    theirs = BLEU(tokenize="none", smooth_method="none", max_ngram_order=order).corpus_score(*lines).score
    assert value == pytest.approx(theirs, abs=1e-6)
    assert value / 100 == pytest.approx(corpus_bleu([[r] for r in REFERENCES], OUTPUTS, WEIGHTS[order]), abs=1e-6)


@pytest.mark.parametrize("order", [2, 4])
def test_corpus_bleu_without_penalty_is_the_geometric_mean(order):
    with_penalty = corpus_bleu([[r] for r in REFERENCES], OUTPUTS, WEIGHTS[order])
    assert penalty(OUTPUTS, REFERENCES) < 1
    expected = with_penalty / penalty(OUTPUTS, REFERENCES)
    assert METRICS[f"bleu{order}_corpus_no_bp"].value / 100 == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("order", [2, 4])
def test_sentence_bleu_equals_nltk_method_1(order):
    smooth = SmoothingFunction().method1
    outputs = [*OUTPUTS, ["Yes", "."], ["the", "doctor"], ["nothing"], []]  # too short for some orders, or no match
    references = [*REFERENCES, ["Yes", "."], ["the", "doctor", "said"], ["it"], ["the", "end"]]
    ours = {metric.name: metric for metric in bleu(outputs, references)}
    theirs = [
        sentence_bleu([reference], output, WEIGHTS[order], smooth)
        for output, reference in zip(outputs, references, strict=True)
    ]
    scores = ours[f"bleu{order}_sentence"].statistics[:, 0] / 100
    assert scores == pytest.approx(theirs, abs=1e-6)
    unpenalised = [
        score / penalty([output], [reference]) if score else 0.0
        for score, output, reference in zip(theirs, outputs, references, strict=True)
    ]
    assert ours[f"bleu{order}_sentence_no_bp"].statistics[:, 0] / 100 == pytest.approx(unpenalised, abs=1e-6)


def test_a_copy_scores_100():
    assert {round(metric.value, 9) for metric in bleu(REFERENCES, REFERENCES)} == {100}


def test_signature_names_sacrebleu():
    assert METRICS["bleu4_corpus"].settings["sacrebleu"].startswith("2.")
    assert METRICS["bleu4_corpus_no_bp"].settings["bp"] == "no"
