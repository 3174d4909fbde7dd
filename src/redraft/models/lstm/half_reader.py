"""An LSTM that continues some given words, or none, to the end of the sentence or to its beginning."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from redraft.models.base import Words
from redraft.models.lstm.network import LstmLM, LstmState
from redraft.models.vocabulary import END, SPECIALS, Vocabulary


class HalfReader:
    """Reads words one by one from a start state, each as it is spelt: nothing is capitalised.

    A backward reader reads from right to left. If the given words open the sentence (``opens``), the first of them is
    read with a capital. Every state is [layers, 1, size].
    """

    end = END  # the column of the end, or for a backward reader the beginning, of the sentence

    def __init__(
        self,
        network: LstmLM,
        vocabulary: Vocabulary,
        start: LstmState,
        *,
        backward: bool = False,
        opens: bool = False,
    ):
        self._network, self.vocabulary, self._start = network.eval(), vocabulary, start
        self.is_backward, self._opens = backward, opens

    @property
    def words(self) -> tuple[str, ...]:
        """The columns of a distribution."""
        return self.vocabulary.words

    @property
    def proposable(self) -> NDArray[np.bool_]:
        """Which words may continue a sentence. Special symbols may not."""
        return np.arange(len(self.vocabulary)) >= len(SPECIALS)

    @property
    def may_open(self) -> NDArray[np.bool_]:
        """Which words can open a sentence as it is written."""
        return self.vocabulary.may_open

    def opening_form(self, word: str) -> str:
        """A word as it is read where it opens a sentence."""
        return self.vocabulary.opening_form(word)

    def plain(self, word: str) -> str:
        """The form in which a sentence holds a word that opens it."""
        return self.vocabulary.plain(word)

    @torch.inference_mode()
    def begin(self, given: Words) -> LstmState:
        """Read the given words, which are in text order. There may be none."""
        if not given:
            return self._start
        ids = self.vocabulary.surface_ids(given) if self._opens else self.vocabulary.ids(given)
        if self.is_backward:
            ids.reverse()
        _, state = self._network(torch.tensor(ids)[:, None], self._start)
        return (state[0], state[1])

    @torch.inference_mode()
    def extend(self, states: Sequence[LstmState], words: Sequence[str]) -> list[LstmState]:
        """Read one more word after each state."""
        joined = torch.cat([hidden for hidden, _ in states], 1), torch.cat([cell for _, cell in states], 1)
        _, (hidden, cell) = self._network(torch.tensor([self.vocabulary.ids(words)]), joined)
        return list(zip(hidden.split(1, 1), cell.split(1, 1), strict=True))

    @torch.inference_mode()
    def log_dists(self, states: Sequence[LstmState]) -> NDArray[np.float32]:
        """Log-probabilities [states, words] of the next word, the end among them."""
        dists: NDArray[np.float32] = self._network.softmax.log_prob(torch.cat([h[-1] for h, _ in states])).numpy()
        return dists

    @torch.inference_mode()
    def log_probs_of(self, states: Sequence[LstmState], word: str) -> NDArray[np.float32]:
        """Log-probabilities [states] of one word, which costs less than those of all words."""
        return self._log_probs_of(states, self.vocabulary.id(word))

    @torch.inference_mode()
    def log_ends(self, states: Sequence[LstmState]) -> NDArray[np.float32]:
        """Log-probabilities [states] that the half ends here."""
        return self._log_probs_of(states, END)

    def _log_probs_of(self, states: Sequence[LstmState], column: int) -> NDArray[np.float32]:
        hidden = torch.cat([h[-1] for h, _ in states])
        found: NDArray[np.float32] = self._network.softmax.log_prob_of(
            hidden, torch.full((len(hidden),), column)
        ).numpy()
        return found
