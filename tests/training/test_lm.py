"""Scores of single words, as the text has them, are those of all sentences together."""

from pathlib import Path

import pytest
import torch

from redraft.corpus import is_held_out
from redraft.evaluation.lstm_nll import DIRECTIONS, Direction, nll_per_word, word_nll
from redraft.models.lstm.network import LstmConfig, LstmLM
from redraft.models.vocabulary import END, SPECIALS, START, Vocabulary
from redraft.training.word_data import encode_words, prepare_words

_LINES = ["A dog sees the sea .", "The dog .", "Sea ?", "the dog sees a dog , but not the sea ."]


def test_what_is_kept_is_that_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("".join(f"A dog sees the sea number {n} .\n" for n in range(2000)))
    first = prepare_words(tmp_path, 50, tmp_path / "kept.npz", quiet=True)
    assert prepare_words(tmp_path, 50, tmp_path / "kept.npz", quiet=True).vocabulary.words == first.vocabulary.words
    (tmp_path / "one.txt").write_text((tmp_path / "one.txt").read_text().replace("dog", "cat"))
    changed = prepare_words(tmp_path, 50, tmp_path / "kept.npz", quiet=True)
    assert "cat" in changed.vocabulary
    assert "dog" not in changed.vocabulary


def test_words_of_held_out_sentences_alone_are_unknown(tmp_path: Path) -> None:
    lines = [f"A dog sees the sea number w{n} ." for n in range(2000)]
    (tmp_path / "one.txt").write_text("\n".join(lines))
    vocabulary = prepare_words(tmp_path, 5000, quiet=True).vocabulary
    assert all((line.split()[-2] in vocabulary) != is_held_out(line) for line in lines)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_words_one_by_one(direction: Direction) -> None:
    words = sorted({word for line in _LINES for word in line.split()})
    vocabulary = Vocabulary([*SPECIALS, *words])
    torch.manual_seed(0)
    network = LstmLM(LstmConfig.small(len(vocabulary))).eval()
    data = encode_words(vocabulary, _LINES)
    found = word_nll(network, data, direction, batch=3)
    for line, nll in zip(_LINES, found, strict=True):
        (alone,) = word_nll(network, encode_words(vocabulary, [line]), direction)
        assert nll == pytest.approx(alone, rel=1e-5)
        read = [START, *vocabulary.ids(line.split() if direction == "forward" else line.split()[::-1]), END]
        with torch.inference_mode():
            log_probs = network.softmax.log_prob(network(torch.tensor(read[:-1])[:, None])[0][:, 0])
        by_hand = [-float(row[target]) for row, target in zip(log_probs, read[1:], strict=True)]
        if direction == "backward":
            by_hand = [*by_hand[-2::-1], by_hand[-1]]
        assert nll == pytest.approx(by_hand, rel=1e-5)
    with torch.inference_mode():
        mean = nll_per_word(network, data, direction)
    assert sum(nll.sum() for nll in found) / (data.lengths + 1).sum() == pytest.approx(mean, rel=1e-5)
