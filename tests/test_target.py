import numpy as np
import pytest

from redraft.errors import ConstraintError, InputError
from redraft.target import SoftScore, Target, penalise_repetition, prefer, prefer_length
from tests.exact.toy import Bigrams

_SENTENCE = ("the", "River", "runs", "to", "the", "river", ".")


def test_soft_scores() -> None:
    assert prefer("river", 2.0).log_weight(_SENTENCE) == 2
    assert prefer("cafe\u0301", 2.0).log_weight(("caf\u00e9",)) == 2
    assert prefer("sea", 2.0).log_weight(_SENTENCE) == 0
    assert prefer("runs to", 2.0).log_weight(_SENTENCE) == 2
    assert prefer("to runs", 2.0).log_weight(_SENTENCE) == 0
    assert prefer_length(8, 0.5).log_weight(_SENTENCE) == -1
    for words, strength in ((0, 0.5), (-5, 0.5), (8, -1.0), (8, float("nan"))):
        with pytest.raises(InputError, match="a length must be at least 1"):
            prefer_length(words, strength)
    assert penalise_repetition(0.7).log_weight(_SENTENCE) == pytest.approx(-0.7)


def test_a_target_adds_up_and_has_a_name() -> None:
    own = SoftScore("mine", lambda words: -float(len(words)))
    target = Target(Bigrams("a b"), 0.5, (prefer("b", 3.0), own))
    weights = target.log_weights(np.array([-4.0, -6.0]), [("a",), ("a", "b")])
    assert weights == pytest.approx([-2 - 1, -3 + 3 - 2])
    assert target.name == "bigrams^0.5 + prefer b=3 + mine"


def test_what_cannot_be_a_target() -> None:
    for power in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="power"):
            Target(Bigrams("a"), power)
    with pytest.raises(InputError, match="weight of 'x'"):
        prefer("x", float("nan"))
    with pytest.raises(ConstraintError, match=r"preferred is not UTF-8 text \(U\+DCE9\)"):
        prefer("caf\udce9", 1.0)
    with pytest.raises(InputError, match="must not be empty"):
        prefer(" ", 1.0)
    for strength in (-1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="at least 0"):
            penalise_repetition(strength)
