"""The gradient for a free vector is that of finite differences; the nearest words are the nearest."""

import numpy as np
import pytest
import torch
from tests.lstms import make_lstm, reader, vocabulary_of

from redraft.models.lstm.embeddings import EmbeddingSpace
from redraft.models.vocabulary import END

_VOCABULARY = vocabulary_of("the The dog sees a sea .")
_SENTENCES = [("the", "dog", "sees", "the", "sea", "."), ("a", "dog", "."), ("dog",)]


def test_the_gradient_is_that_of_finite_differences() -> None:
    network = make_lstm(len(_VOCABULARY), seed=1).double()
    space, scorer = EmbeddingSpace(network), reader(network, _VOCABULARY)
    readings = scorer.read(_SENTENCES, [None] * 3)
    positions = [2, 0, 0]
    vectors = space.vectors([reading.ids[at] for reading, at in zip(readings, positions, strict=True)])
    vectors = vectors + torch.linspace(-0.5, 0.5, vectors.numel()).view_as(vectors)
    gradients = space.gradients(vectors, readings, positions)
    states = tuple(
        torch.stack([r.state[part][:, at] for r, at in zip(readings, positions, strict=True)], 1) for part in (0, 1)
    )
    following = [[*r.ids[at + 1 :], END] for r, at in zip(readings, positions, strict=True)]
    step = 1e-5
    for column in range(vectors.shape[1]):
        shift = torch.zeros_like(vectors)
        shift[:, column] = step
        with torch.no_grad():
            above, below = (space.nll_after(vectors + sign * shift, states, following) for sign in (1, -1))
        assert torch.allclose(gradients[:, column], (above - below) / (2 * step), atol=1e-6)
    assert bool((gradients.norm(dim=1) > 1e-3).all())
    assert all(weight.grad is None for weight in network.parameters())


def test_a_vector_at_its_word_has_the_nll_of_the_sentence() -> None:
    network = make_lstm(len(_VOCABULARY), seed=2)
    space, scorer = EmbeddingSpace(network), reader(network, _VOCABULARY)
    (found,) = scorer.read(_SENTENCES[:1], [None])
    for at in range(len(found.ids)):
        state = found.state[0][:, at : at + 1].clone(), found.state[1][:, at : at + 1].clone()
        nll = space.nll_after(space.vectors([found.ids[at]]), state, [[*found.ids[at + 1 :], END]])
        before = float(found.log_probs[: at + 1].sum())
        assert float(nll.detach()) - before == pytest.approx(-scorer.log_prob(found), abs=1e-4)


def test_a_row_has_the_same_gradient_alone_and_in_a_batch() -> None:
    network = make_lstm(len(_VOCABULARY), seed=3)
    space = EmbeddingSpace(network)
    readings = reader(network, _VOCABULARY).read(_SENTENCES, [None] * 3)
    vectors = space.vectors([reading.ids[0] for reading in readings])
    together = space.gradients(vectors, readings, [0, 0, 0])
    for row in range(3):
        alone = space.gradients(vectors[row : row + 1], readings[row : row + 1], [0])
        assert torch.allclose(alone[0], together[row], atol=1e-5)


def test_the_nearest_words() -> None:
    network = make_lstm(len(_VOCABULARY), seed=4)
    space = EmbeddingSpace(network)
    vectors = torch.randn(5, network.config.size)
    allowed = np.random.default_rng(0).random((5, len(_VOCABULARY))) < 0.6
    distances = torch.cdist(vectors, network.embedding.weight.detach()).numpy()
    for num in (2, 100):
        for row, found in enumerate(space.nearest(vectors, allowed, num)):
            expected = [i for i in np.argsort(distances[row]) if allowed[row, i]]
            assert found == expected[:num]
