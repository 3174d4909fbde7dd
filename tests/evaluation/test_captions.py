"""Golden: BLEU-4, ROUGE-L and CIDEr-D equal pycocoevalcap's classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from redraft.evaluation.captions import captions, cider_d, coverage_forms, rouge_l
from redraft.evaluation.metric import Bootstrap
from redraft.inflect import family
from redraft.sentence import Constraints
from tests.evaluation.making import sentences


def golden(outputs, references):
    given_texts = {i: [" ".join(words)] for i, words in enumerate(outputs)}
    wanted = {i: [" ".join(words) for words in several] for i, several in enumerate(references)}
    bleu, _ = Bleu(4).compute_score(wanted, given_texts, verbose=0)
    rouge, rouges = Rouge().compute_score(wanted, given_texts)
    cider, ciders = Cider().compute_score(wanted, given_texts)
    return (bleu[3], rouge, cider), rouges, ciders


def equal(outputs, references):
    means, rouges, ciders = golden(outputs, references)
    bleu, rouge, cider = captions(outputs, references)
    assert (bleu.value / 100, rouge.value / 100, cider.value) == pytest.approx(means, abs=1e-6)
    ours = [rouge_l(words, several) for words, several in zip(outputs, references, strict=True)]
    assert ours == pytest.approx(list(rouges), abs=1e-6)
    assert cider_d(outputs, references) == pytest.approx(list(ciders), abs=1e-6)


@pytest.mark.parametrize("num", [1, 2, 40])
def test_made_sentences(num):
    lowered = [[[w.lower() for w in words] for words in sentences(num, seed=seed)] for seed in range(5)]
    outputs, *others = lowered
    references = [several[: 1 + i % 4] for i, several in enumerate(zip(*others, strict=True))]
    references[0] = [*references[0], outputs[0]]
    equal(outputs, references)


_SENTENCE = st.lists(st.sampled_from("a b c d e .".split()), min_size=1, max_size=9)


@settings(deadline=None)
@given(st.lists(st.tuples(_SENTENCE, st.lists(_SENTENCE, min_size=1, max_size=3)), min_size=1, max_size=6))
def test_any_sentences(pairs):
    equal(*zip(*pairs, strict=True))


def test_words_are_lowered():
    bleu, rouge, _ = captions([["A", "Dog", "Runs", "."]], [[["a", "dog", "runs", "."]]])
    assert (bleu.value, rouge.value) == pytest.approx((100, 100))


def test_an_output_without_words():
    bleu, rouge, cider = captions([[], ["a", "b", "c", "d"]], [[["a"]], [["a", "b", "c", "d"]]])
    assert rouge.value == pytest.approx(50)
    assert np.isfinite([bleu.value, cider.value]).all()


def test_bleu_interval_is_from_summed_statistics():
    outputs, references = sentences(40, seed=1), [[words] for words in sentences(40, seed=2)]
    bleu, *_ = captions(outputs, references)
    bootstrap = Bootstrap()
    figure = bootstrap.figure(bleu, bootstrap.counts(40))
    assert figure.low <= bleu.value <= figure.high
    assert "refs:1|case:lower|tok:redraft|reflen:closest|" in figure.signature


def test_family():
    assert {"sew", "sews", "sewed", "sewn", "sewing"} <= family("sew")
    assert {"city", "cities"} <= family("Cities")
    assert {"blorp", "blorps", "blorping"} <= family("blorp")  # no dictionary knows it
    assert "cut" not in family("cat")


def test_coverage_of_forms_by_hand():
    inputs = [Constraints(keywords=("dog", "catch", "throw")), Constraints(keywords=("sewing machine",))]
    outputs = ["Two dogs caught it .".split(), "Machines that sew and sewing machines .".split()]
    by_word, complete = coverage_forms(outputs, inputs)
    assert by_word.value == pytest.approx(100 * 3 / 4)
    assert complete.value == pytest.approx(50)
    assert coverage_forms([["a"]], [Constraints(template="a ___")]) == []
