"""The network against transformers', and the laws of a model of sentences: cached = uncached, batch = single."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.xlnets import TINY, make_network, make_pieces, readers

from redraft import text
from redraft.errors import PackError
from redraft.models.base import Slot
from redraft.models.output_layer import sample_columns
from redraft.models.pieces import SentencePieces
from redraft.models.vocabulary import SPECIALS
from redraft.models.xlnet import reader as xlnet_reader
from redraft.models.xlnet import scoring as xlnet_scoring
from redraft.models.xlnet.files import CONFIG, OLD_WEIGHTS, PIECES, WEIGHTS, load_xlnet, save_xlnet
from redraft.models.xlnet.masked import XlnetMaskedReader
from redraft.models.xlnet.network import XlnetConfig, XlnetLM
from redraft.models.xlnet.reader import XlnetReader
from redraft.models.xlnet.scoring import ScoreBound
from redraft.models.xlnet.words import PieceWords
from redraft.predict.prior import UniformPrior
from redraft.revise import lazy
from redraft.revise.candidates import CandidateGenerator
from redraft.revise.kernels import PaperKernel
from redraft.sampler import Chain, Sampler
from redraft.sentence import Constraints
from redraft.synthesis.masked_xlnet import FolderMaskedXlnet
from redraft.target import Target

transformers = pytest.importorskip("transformers")

_TIME = 9
_WORDS = ["the", "dog", "sees", "a", "fine-tuning", "doctor", "house", ",", ".", "grained", "thing", "not", "man"]
_sentences = st.lists(st.sampled_from(_WORDS), min_size=0, max_size=7).map(tuple)


@pytest.fixture(scope="session")
def pieces(made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pieces(made_corpus, tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="session")
def hub_folder(pieces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint as transformers saves it, in the layout of xlnet-base-cased."""
    folder = tmp_path_factory.mktemp("hub")
    torch.manual_seed(1)
    config = transformers.XLNetConfig(vocab_size=SentencePieces(pieces).size, **TINY)
    model = transformers.XLNetLMHeadModel(config)
    for parameter in model.parameters():  # transformers starts many of them at zero, which would hide mistakes
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    shutil.copyfile(pieces, folder / PIECES)
    return folder


@pytest.fixture(scope="session", params=[1, 2], ids=["one stream", "two streams"])
def network(pieces: Path, request: pytest.FixtureRequest) -> XlnetLM:
    return make_network(pieces).with_streams(request.param).eval()


@pytest.fixture(scope="session")
def three(network: XlnetLM, pieces: Path) -> tuple[XlnetReader, XlnetReader, XlnetMaskedReader]:
    return readers("tiny", network, SentencePieces(pieces))


@pytest.fixture(scope="session")
def forward(three: tuple[XlnetReader, XlnetReader, XlnetMaskedReader]) -> XlnetReader:
    return three[0]


@pytest.fixture(scope="session")
def backward(three: tuple[XlnetReader, XlnetReader, XlnetMaskedReader]) -> XlnetReader:
    return three[1]


@pytest.fixture(scope="session")
def masked(three: tuple[XlnetReader, XlnetReader, XlnetMaskedReader]) -> XlnetMaskedReader:
    return three[2]


def _theirs(model: Any, ids: torch.Tensor, hidden: torch.Tensor, **asked: torch.Tensor) -> torch.Tensor:
    """Logits of transformers for every place; ``hidden[..., i, j]``: i does not see j."""
    logits: torch.Tensor = model(ids, perm_mask=hidden.float().expand(len(ids), -1, -1), **asked).logits
    return logits


def _queries(ids: torch.Tensor) -> torch.Tensor:
    return torch.eye(ids.shape[1]).expand(len(ids), -1, -1)


def _theirs_in_turn(model: Any, ids: torch.Tensor, *, is_backward: bool = False, num_streams: int = 2) -> torch.Tensor:
    """Their logits of all pieces but the one that is read first, in reading order."""
    places = torch.arange(ids.shape[1])
    later = places[:, None] > places if is_backward else places[:, None] < places
    if num_streams == 1:  # a content sees itself and predicts the next piece
        logits = _theirs(model, ids, later)
        return logits.flip(1)[:, :-1] if is_backward else logits[:, :-1]
    logits = _theirs(model, ids, later | (places[:, None] == places), target_mapping=_queries(ids))
    return logits.flip(1)[:, 1:] if is_backward else logits[:, 1:]


def _hub_model(folder: Path) -> Any:
    return transformers.XLNetLMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()


def _ids(network: XlnetLM) -> torch.Tensor:
    return torch.randint(0, network.config.vocab_size, (3, _TIME), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("num_streams", [1, 2])
@pytest.mark.parametrize("is_backward", [False, True])
def test_one_side_is_what_transformers_computes(hub_folder: Path, is_backward: bool, num_streams: int) -> None:
    network = load_xlnet(hub_folder)[0].with_streams(num_streams)
    ids = _ids(network)
    reading = ids.flip(1) if is_backward else ids
    with torch.inference_mode():
        ours = network(network.transformer.causal(reading[:, :-1], backward=is_backward)[0])
        theirs = _theirs_in_turn(_hub_model(hub_folder), ids, is_backward=is_backward, num_streams=num_streams)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_both_sides_are_what_transformers_computes(hub_folder: Path) -> None:
    network = load_xlnet(hub_folder)[0]
    ids = _ids(network)
    asked = torch.zeros(ids.shape, dtype=torch.bool)
    asked[0, 3] = asked[1, 0] = asked[2, 5] = asked[2, 8] = True
    with torch.inference_mode():
        ours = network(network.transformer(ids, torch.ones_like(asked), asked))
        theirs = _theirs(
            _hub_model(hub_folder), ids, asked[:, None, :].expand(-1, _TIME, -1), target_mapping=_queries(ids)
        )
    torch.testing.assert_close(ours[asked], theirs[asked], rtol=1e-4, atol=1e-4)


def test_what_was_read_need_not_be_read_again(network: XlnetLM) -> None:
    ids = _ids(network)
    with torch.inference_mode():
        for is_backward in (False, True):
            whole, _ = network.transformer.causal(ids, backward=is_backward)
            first, memory = network.transformer.causal(ids[:, :4], backward=is_backward)
            rest, _ = network.transformer.causal(ids[:, 4:], backward=is_backward, memory=memory)
            torch.testing.assert_close(torch.cat([first, rest], 1), whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_streams", [1, 2])
def test_gradients_are_those_of_transformers(hub_folder: Path, num_streams: int) -> None:
    ours, theirs = load_xlnet(hub_folder)[0].with_streams(num_streams), _hub_model(hub_folder)
    ids = _ids(ours)
    hidden, _ = ours.transformer.causal(ids[:, :-1])
    ours.loss(hidden.flatten(0, 1), ids[:, 1:].flatten()).backward()
    logits = _theirs_in_turn(theirs, ids, num_streams=num_streams)
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum").backward()
    expected = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, expected[name].grad, rtol=1e-3, atol=1e-3, msg=name)


def test_reading_backward_is_reading_reversed_text_forward(network: XlnetLM) -> None:
    """Distances change their sign, which affects only the sines."""
    mirrored = XlnetLM(network.config).eval()
    mirrored.load_state_dict(network.state_dict())
    ids = _ids(network)
    with torch.inference_mode():
        for layer in mirrored.transformer.layer:
            layer.rel_attn.r[: network.config.d_model // 2] *= -1
        backward, _ = network.transformer.causal(ids, backward=True)
        torch.testing.assert_close(backward, mirrored.transformer.causal(ids)[0], rtol=1e-4, atol=1e-4)


def test_sampled_columns_stand_for_all(network: XlnetLM) -> None:
    generator = torch.Generator().manual_seed(0)
    hidden, target = torch.randn(6, 16, generator=generator), torch.tensor([3, 40, 77, 3, 120, 99])
    exact = network(hidden).exp().sum(1)
    estimates = []
    for _ in range(400):
        columns = sample_columns(target, network.config.vocab_size, 20, 30, generator)
        assert set(target.tolist()) <= set(columns.ids.tolist())
        estimates.append((network(hidden)[:, columns.ids] + columns.log_weights).exp().sum(1))
    torch.testing.assert_close(torch.stack(estimates).mean(0), exact, rtol=0.1, atol=0)
    everything = sample_columns(target, network.config.vocab_size, network.config.vocab_size, 0, generator)
    assert network.loss(hidden, target, everything).item() == pytest.approx(network.loss(hidden, target).item())


def test_a_saved_model_goes_both_ways(network: XlnetLM, pieces: Path, tmp_path: Path) -> None:
    save_xlnet(tmp_path, network, pieces)
    ids = _ids(network)
    loaded, splitter, folder = load_xlnet(str(tmp_path))
    assert splitter.size == network.config.vocab_size
    assert folder == tmp_path
    with torch.inference_mode():
        ours = loaded(loaded.transformer.causal(ids[:, :-1])[0])
        theirs = _theirs_in_turn(_hub_model(tmp_path), ids, num_streams=1 if network.config.one_stream else 2)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_checkpoint_of_older_days_loads(hub_folder: Path, tmp_path: Path) -> None:
    model = transformers.XLNetLMHeadModel.from_pretrained(hub_folder, dtype=torch.float32)
    for name in (CONFIG, PIECES):
        shutil.copyfile(hub_folder / name, tmp_path / name)
    torch.save(model.state_dict(), tmp_path / OLD_WEIGHTS)  # with the head, which is the embeddings once more
    ours, expected = load_xlnet(tmp_path)[0].state_dict(), load_xlnet(hub_folder)[0].state_dict()
    assert all(torch.equal(ours[name], expected[name]) for name in expected)


def test_a_model_in_the_hubs_cache_loads_by_name(
    hub_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tmp_path / "models--someone--tiny-xlnet"
    shutil.copytree(hub_folder, stored / "snapshots" / "0123abcd")
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("0123abcd")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert load_xlnet("someone/tiny-xlnet")[0].config.d_model == TINY["d_model"]
    # A cache that holds the configuration alone is no model: it has to be completed.
    (stored / "snapshots" / "0123abcd" / WEIGHTS).unlink()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PackError, match="is not on this machine and cannot be fetched"):
        load_xlnet("someone/tiny-xlnet")


def test_a_name_that_cannot_be_fetched_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PackError, match=r"xlnet-base-cased is not on this machine .*hf download") as caught:
        load_xlnet("xlnet/xlnet-base-cased")
    assert "\n" not in str(caught.value)
    with pytest.raises(PackError, match="neither a folder nor the name"):
        load_xlnet("/no/such/folder")


def _changed(folder: Path, **changes: object) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | changes))


def _pickled(folder: Path, content: bytes) -> Path:
    (folder / WEIGHTS).unlink()
    (folder / OLD_WEIGHTS).write_bytes(content)
    return folder / OLD_WEIGHTS


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda folder: _changed(folder, model_type="bert"), "type bert, not an XLNet"),
        (lambda folder: _changed(folder, clamp_len=5), r"does not support \(clamp_len: 5\)"),
        (lambda folder: _changed(folder, tie_word_embeddings=False), "tie_word_embeddings: false"),
        (lambda folder: _changed(folder, n_head=0), "n_head: 0"),
        (lambda folder: _changed(folder, n_layer="six"), "n_layer: six"),
        (lambda folder: _changed(folder, d_model=None), "d_model: None"),
        (lambda folder: _changed(folder, n_head=3, d_head=5), "n_head: 3"),
        (lambda folder: _changed(folder, vocab_size=141), "has 140 pieces, the model 141"),
        (lambda folder: _changed(folder, d_inner=32), "does not hold the weights"),
        (lambda folder: _changed(folder, redraft_pieces_sha256="0"), "not the vocabulary that the model was trained"),
        (lambda folder: (folder / PIECES).unlink(), r"lacks spiece\.model"),
        (lambda folder: (folder / PIECES).write_text("text"), "not a SentencePiece model"),
        (lambda folder: (folder / WEIGHTS).unlink(), "holds no readable weights"),
        (lambda folder: (folder / WEIGHTS).write_bytes(b"1234567890"), r"model\.safetensors is damaged"),
        (lambda folder: (folder / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1"), "git lfs pull"),
        (lambda folder: _pickled(folder, b""), "holds no readable weights: "),
        (lambda folder: _pickled(folder, b"version 1 of nothing"), "is damaged"),
        (lambda folder: torch.save([1], _pickled(folder, b"")), "holds no readable weights: "),
        (lambda folder: (folder / CONFIG).unlink(), "holds no model"),
        (lambda folder: (folder / CONFIG).write_text("[]"), "holds no model"),
    ],
)
def test_bad_checkpoints_are_refused_in_one_line(hub_folder: Path, tmp_path: Path, harm, message: str) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "model"
    shutil.copytree(hub_folder, folder)
    harm(folder)
    with pytest.raises(PackError, match=message) as caught:
        load_xlnet(folder)
    assert "\n" not in str(caught.value)


def test_only_whole_words_are_proposed(pieces: Path) -> None:
    words = PieceWords(SentencePieces(pieces))
    listed = words.vocabulary.words[len(SPECIALS) :]
    assert {"dog", "the", "The"} <= set(listed)
    assert all(len(words.split(word)) == 1 and text.tokenise(word) == [word] for word in listed)
    assert "fine-tuning" not in listed
    assert len(words.split("fine-tuning")) > 2
    assert not words.proposable[: len(SPECIALS)].any()
    assert words.proposable[len(SPECIALS) :].all()


class _NaturalPieces:
    """As xlnet-base-cased: punctuation has a piece only without the mark that begins a word."""

    names = ("<unk>", "<s>", "</s>", "<pad>", "▁", ",", "▁dog", "ing", "▁(", "s", "'")

    def encode(self, word: str) -> list[int]:
        found = {",": [4, 5], "dog": [6], "ing": [4, 7], "(": [8], "'s": [4, 10, 9], "☃": [4, 0]}
        return found.get(word, [4, 0])

    def id_to_piece(self, piece: int) -> str:
        return self.names[piece]

    def unk_id(self) -> int:
        return 0

    def is_control(self, piece: int) -> bool:
        return 0 < piece < 4

    def is_unknown(self, piece: int) -> bool:
        return piece == 0

    def is_unused(self, piece: int) -> bool:
        return False


def test_punctuation_is_read_as_natural_text_has_it(pieces: Path) -> None:
    splitter = SentencePieces(pieces)
    splitter._model, splitter.size, splitter._bare = _NaturalPieces(), 11, 4
    assert splitter.split(",") == (5,)
    assert splitter.split("'s") == (10, 9)
    assert splitter.split("ing") == (4, 7)  # a word of its own, not the end of the word before it
    assert splitter.split("☃") == (4, 0)
    assert splitter.whole_words() == [(",", 5), ("dog", 6), ("(", 8)]


def _plain(reader: XlnetReader, words: tuple[str, ...]) -> float:
    return reader.log_prob(reader.read([words], [None])[0])


@settings(max_examples=25)
@given(st.lists(_sentences, min_size=1, max_size=4), st.lists(_sentences, min_size=4, max_size=4))
def test_reading_on_from_an_old_reading_changes_nothing(forward, backward, sentences, others) -> None:  # type: ignore[no-untyped-def]
    for reader in (forward, backward):
        old = reader.read(others[: len(sentences)], [None] * len(sentences))
        resumed = reader.read(sentences, old)
        fresh = reader.read(sentences, [None] * len(sentences))
        for a, b in zip(resumed, fresh, strict=True):
            assert (a.ids, a.firsts) == (b.ids, b.firsts)
            for x, y in ((a.log_probs, b.log_probs), (a.hidden, b.hidden), (a.key, b.key), (a.value, b.value)):
                assert x.allclose(y, atol=1e-4)


@settings(max_examples=25)
@given(st.data())
def test_filled_slots_score_like_whole_sentences(forward, data) -> None:  # type: ignore[no-untyped-def]
    sentences = data.draw(st.lists(_sentences, min_size=1, max_size=3))
    slots, fills = [], []
    for words in sentences:
        start = data.draw(st.integers(0, len(words)))
        slots.append(Slot(words, start, data.draw(st.integers(start, min(start + 1, len(words))))))
        fills.append(data.draw(st.lists(st.lists(st.sampled_from(_WORDS), max_size=2).map(tuple), max_size=4)))
    scores = forward.log_probs_filled(slots, fills, forward.read(sentences, [None] * len(sentences)))
    for slot, words, score in zip(slots, fills, scores, strict=True):
        assert np.allclose(score, [_plain(forward, slot.fill(word)) for word in words], atol=1e-4)


@settings(max_examples=25)
@given(_sentences)
def test_a_sentence_scores_as_the_sum_of_its_conditionals(forward, words) -> None:  # type: ignore[no-untyped-def]
    """Word by word, for words of one piece. The first word is scored with its capital."""
    reading = forward.read([words], [None])[0]
    shown = text.surface(words)
    total = float(reading.log_probs[-1])
    for i, word in enumerate(words):
        dist = forward.log_dist([Slot(words[:i], i, i)], forward.read([words[:i]], [None]))[0]
        of_word = float(reading.log_probs[reading.firsts[i] : reading.firsts[i + 1]].sum())
        if shown[i] in forward.vocabulary and forward.vocabulary.is_plain[forward.vocabulary.id(word)]:
            assert of_word == pytest.approx(float(dist[forward.vocabulary.id(word)]), abs=1e-3)
        total += of_word
    assert forward.log_prob(reading) == pytest.approx(total, abs=1e-6)


def test_the_sum_over_pieces_is_one(network: XlnetLM, forward: XlnetReader, pieces: Path) -> None:
    """The score of a word of several pieces is the product of its pieces' conditionals, by transformers' definition."""
    splitter = SentencePieces(pieces)
    words = ("the", "fine-tuning", "sees", "a", "dog", ".")
    shown = text.surface(words)
    ids = torch.tensor([[splitter.begin, *(i for word in shown for i in splitter.split(word)), splitter.end]])
    with torch.inference_mode():
        log_probs = network(network.transformer.causal(ids[:, :-1])[0]).log_softmax(-1)
    expected = log_probs.gather(2, ids[:, 1:, None]).sum().item()
    assert _plain(forward, words) == pytest.approx(expected, abs=1e-4)


@settings(max_examples=15)
@given(st.lists(_sentences, min_size=2, max_size=5), st.integers(0, 7))
def test_a_batch_gives_what_each_gives_alone(three, sentences, place) -> None:  # type: ignore[no-untyped-def]
    slots = [Slot(words, min(place, len(words)), min(place + 1, len(words))) for words in sentences]
    for reader in three:
        together = reader.read(sentences, [None] * len(sentences))
        dists = reader.log_dist(slots, together)
        for words, slot, reading, dist in zip(sentences, slots, together, dists, strict=True):
            alone = reader.read([words], [None])
            assert np.allclose(dist, reader.log_dist([slot], alone)[0], atol=1e-4)
            if reading is not None:
                assert reading.log_probs.allclose(alone[0].log_probs, atol=1e-4)


def test_distributions_over_words_are_no_more_than_one(three) -> None:  # type: ignore[no-untyped-def]
    slots = [Slot((), 0, 0), Slot(("the", "dog"), 0, 0), Slot(("the", "fine-tuning"), 1, 2), Slot(("the", "dog"), 2, 2)]
    for reader in three:
        dist = reader.log_dist(slots, reader.read([slot.words for slot in slots], [None] * len(slots)))
        assert np.exp(dist.astype(np.float64)).sum(1).max() < 1 + 1e-5
        assert np.isneginf(dist[:, : len(SPECIALS)]).all()


def test_a_masked_slot_is_seen_from_both_sides(masked: XlnetMaskedReader) -> None:
    def dist(slot: Slot) -> np.ndarray:
        return masked.log_dist([slot], [None])[0]

    whole = ("the", "dog", "sees", "a", "man", ".")
    here = dist(Slot(whole, 1, 2))
    other_word = ("the", "house", *whole[2:])
    assert np.array_equal(here, dist(Slot(other_word, 1, 2)))  # not from what stands in it
    assert np.array_equal(here, dist(Slot(("the", *whole[2:]), 1, 1)))  # a gap is a slot like any other
    assert not np.allclose(here, dist(Slot((*whole[:5], "!"), 1, 2)))
    assert not np.allclose(here, dist(Slot(("a", *whole[1:]), 1, 2)))


def test_the_opening_word_is_read_with_its_capital(forward: XlnetReader, backward: XlnetReader, pieces: Path) -> None:
    split = SentencePieces(pieces).split
    assert forward.read([("the", "dog")], [None])[0].ids == (*split("The"), *split("dog"))
    assert backward.read([("the", "dog")], [None])[0].ids == (*split("dog"), *split("the"))


def test_the_masked_model_for_synthetic_data(network: XlnetLM, pieces: Path, tmp_path: Path) -> None:
    save_xlnet(tmp_path, network, pieces)
    model = FolderMaskedXlnet(str(tmp_path))()
    slots = [Slot(("the", "dog", "sees", "."), 1, 2), Slot(("a", "man"), 0, 0), Slot(("the", "dog"), 2, 2)]
    found = model.likeliest(slots, 5)
    assert [len(words) for words in found] == [5, 5, 5]
    assert found[1:2] == model.likeliest(slots[1:2], 5)
    assert not {word for words in found for word in words} & set(SPECIALS)
    assert model.card["kind"] == "masked XLNet"
    assert model.card["name"].startswith(f"{tmp_path.name}@")


def test_configurations_that_are_not_computed_are_told_apart() -> None:
    config = transformers.XLNetConfig(**TINY).to_dict()
    assert XlnetConfig.supports(config)
    assert not XlnetConfig.supports({**config, "attn_type": "uni"})


@pytest.fixture
def fresh(network: XlnetLM, pieces: Path) -> XlnetReader:
    """A forward reader that remembers nothing yet."""
    return XlnetReader("fresh", network, PieceWords(SentencePieces(pieces)))


def test_long_rows_are_read_in_parts(fresh: XlnetReader, forward: XlnetReader, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("the", "dog", "sees", "a", "man", ".")
    slots = [Slot(words, 1, 2), Slot(words, 4, 5)]
    fillings = [[("house",), ("dog", "house"), ("man",)], [("dog",)]]
    readings = forward.read([words, words], [None, None])
    whole = forward.log_probs_filled(slots, fillings, readings)
    calls: list[int] = []
    extend = fresh.extend

    def counting(rows, prefixes):  # type: ignore[no-untyped-def]
        calls.append(sum(map(len, rows)))
        return extend(rows, prefixes)

    monkeypatch.setattr(fresh, "extend", counting)
    monkeypatch.setattr("redraft.models.xlnet.reader._CALL_PAIRS", 120)
    monkeypatch.setattr("redraft.models.xlnet.reader._CALL_PIECES", 1)  # or parts would be joined again
    parts = fresh.log_probs_filled(slots, fillings, readings)
    assert sum(calls) == 4
    assert len(calls) > 1
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, rel=1e-5)


def test_nothing_is_scored_twice(fresh: XlnetReader, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("the", "dog", "sees", "a", "man", ".")
    replace, insert = Slot(words, 1, 2), Slot(("the", *words[2:]), 1, 1)  # the same sentences, once as a gap
    readings = fresh.read([words, insert.words], [None, None])
    fillings = [("house",), ("dog",)]
    (first,) = fresh.log_probs_filled([replace], [fillings], readings[:1])
    monkeypatch.setattr(fresh, "extend", None)
    (again,) = fresh.log_probs_filled([insert], [fillings], readings[1:])
    assert again.tolist() == first.tolist()
    with pytest.raises(TypeError):
        fresh.log_probs_filled([insert], [[("man",)]], readings[1:])


def test_what_was_asked_for_long_ago_is_forgotten(fresh: XlnetReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.models.xlnet.reader._KEPT", 5)
    slots = [Slot(("a", "b", "c"), at, at) for at in range(3)]
    fillings = [("x",), ("y",)]
    first, _ = fresh._bounds_of(slots[0], fillings)
    first.lower(-1.0, is_final=False)
    fresh._bounds_of(slots[1], fillings)
    assert fresh._bounds_of(slots[0], [("x",)]) == [first]
    fresh._bounds_of(slots[2], fillings)  # the second is the one that was not asked for since
    assert fresh._bounds_of(slots[0], fillings)[0] is first
    fresh._bounds_of(slots[1], fillings)
    fresh._bounds_of(slots[2], fillings)
    assert np.isinf(fresh._bounds_of(slots[0], fillings)[0].bound)


def test_a_bound_is_never_given_up_for_a_looser_one() -> None:
    score = ScoreBound()
    for bound, is_final, expected in (
        (-1.0, False, -1.0),
        (-0.5, False, -1.0),
        (-2.0, True, -2.0),
        (-3.0, False, -2.0),
    ):
        score.lower(bound, is_final=is_final)
        assert score.bound == expected
    assert score.is_final


def test_chains_that_ask_for_the_same_share_what_is_found(fresh: XlnetReader, forward: XlnetReader) -> None:
    words = ("the", "dog", "sees", "a", "man", ".")
    slot, fillings = Slot(words, 1, 2), [("house",), ("fine-tuning",)]
    readings = fresh.read([words, words], [None, None])
    exact = [_plain(forward, slot.fill(filling)) for filling in fillings]
    scoring = fresh.scoring([slot, slot], [fillings, fillings[::-1]], readings)
    for wanted, num in (([[0], []], 2), ([[], [1]], 1), ([[0], [1]], 1), ([[0, 1], [0]], 1), ([[], [0, 1]], None)):
        before = scoring.bounds
        scoring.advance(wanted, num)
        one, other = scoring.bounds
        assert one.tolist() == other[::-1].tolist()
        assert (one <= before[0]).all()
        done = scoring.num_left[0] == 0
        assert one[done] == pytest.approx(np.array(exact)[done], abs=1e-4)
    assert done.all()


def test_what_cannot_wait_is_completed_at_once(
    fresh: XlnetReader, forward: XlnetReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redraft.models.xlnet.scoring._HELD", 3)
    words = ("the", "dog", "sees", "a", "man", ".")
    slot, fillings = Slot(words, 1, 2), [("house",), ("man",)]
    scoring = fresh.scoring([slot], [fillings], fresh.read([words], [None]))
    assert scoring.num_left[0].tolist() == [0, 0]
    assert scoring.bounds[0] == pytest.approx([_plain(forward, slot.fill(one)) for one in fillings], abs=1e-4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_bounds_come_down_to_the_scores(network, pieces, forward, data) -> None:  # type: ignore[no-untyped-def]
    """Sentences may be advanced in any order. A second scoring continues from the bounds of the first."""
    reader = XlnetReader("new", network, forward.pieces)
    sentences = data.draw(st.lists(_sentences, min_size=1, max_size=3))
    slots, fills = [], []
    for words in sentences:
        start = data.draw(st.integers(0, len(words)))
        slots.append(Slot(words, start, data.draw(st.integers(start, min(start + 1, len(words))))))
        some = st.lists(st.lists(st.sampled_from(_WORDS), max_size=2).map(tuple), max_size=4, unique=True)
        fills.append(data.draw(some))
    readings = reader.read(sentences, [None] * len(sentences))
    exact = [[_plain(forward, slot.fill(words)) for words in fill] for slot, fill in zip(slots, fills, strict=True)]
    scoring = reader.scoring(slots, fills, readings)
    before = scoring.bounds
    for _ in range(data.draw(st.integers(0, 6))):
        wanted = [data.draw(st.lists(st.sampled_from(range(len(f))), unique=True)) if f else [] for f in fills]
        scoring.advance(wanted, data.draw(st.sampled_from([None, 1, 2])))
        if data.draw(st.booleans()):
            scoring = reader.scoring(slots, fills, readings)
        for now, old, score, left in zip(scoring.bounds, before, exact, scoring.num_left, strict=True):
            assert (now <= old + 1e-4).all()
            assert (now >= np.array(score) - 1e-4).all()
            assert now[left == 0] == pytest.approx(np.array(score)[left == 0], abs=1e-4)
        before = scoring.bounds
    scoring.advance([range(len(fill)) for fill in fills])
    assert not any(left.any() for left in scoring.num_left)
    for now, score in zip(scoring.bounds, exact, strict=True):
        assert now == pytest.approx(np.array(score), abs=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_lazy_chains_go_where_full_ones_go(three, rounded, monkeypatch: pytest.MonkeyPatch, precision: str) -> None:  # type: ignore[no-untyped-def]
    """The same states at every step, with fewer sums over all pieces."""
    forward, backward = (three if precision == "float32" else rounded)[:2]
    num_rows = []
    log_sums = xlnet_scoring.log_sum_exp

    def counting(hidden, weight, bias):  # type: ignore[no-untyped-def]
        num_rows[-1] += len(hidden) * len(bias)
        return log_sums(hidden, weight, bias)

    def walk(*, is_lazy: bool) -> list[list[tuple[str, ...]]]:
        own = [XlnetReader(one.name, one.network, one.pieces, backward=one.backward) for one in (forward, backward)]
        generator = CandidateGenerator(own, 12)
        sampler = Sampler(Target(own[0]), generator, UniformPrior(), PaperKernel(), PaperKernel.actions)
        sampler._is_lazy = is_lazy
        chains = [Chain(Constraints(("dog", "house")), np.random.default_rng(seed)) for seed in range(3)]
        states, seen = sampler.init(chains), []
        num_rows.append(0)
        for _ in range(40):
            states = [state for state, _ in sampler.step(chains, states)]
            seen.append([state.sentence.words for state in states])
        return seen

    monkeypatch.setattr(lazy, "_AT_ONCE", 0)
    monkeypatch.setattr(xlnet_scoring, "log_sum_exp", counting)
    assert walk(is_lazy=True) == walk(is_lazy=False)
    assert num_rows[0] < num_rows[1]


def test_threads_change_nothing(network: XlnetLM, pieces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates of several slots, in calls so small that every thread has several."""
    monkeypatch.setattr(xlnet_reader, "_CALL_PIECES", 30)
    monkeypatch.setattr(xlnet_scoring, "_PARTS", 3)
    sentences = [tuple(_WORDS[at : at + 5]) for at in range(6)]
    slots = [Slot(words, at % 4, at % 4 + at % 2) for at, words in enumerate(sentences)]
    fillings = [[(word,) for word in _WORDS]] * len(slots)
    before, found = torch.get_num_threads(), []
    try:
        for num in (1, 2):
            torch.set_num_threads(num)
            reader = readers("tiny", network, SentencePieces(pieces))[0]
            scores = reader.log_probs_filled(slots, fillings, reader.read(sentences, [None] * len(slots)))
            found.append(np.concatenate(scores))
    finally:
        torch.set_num_threads(before)
    assert found[1] == pytest.approx(found[0], abs=1e-4)


@pytest.fixture(scope="session")
def rounded(network: XlnetLM, pieces: Path) -> list[XlnetReader | XlnetMaskedReader]:
    """The three readers with the same weights in bfloat16."""
    return readers("rounded", copy.deepcopy(network).bfloat16(), SentencePieces(pieces))


@settings(max_examples=15)
@given(st.lists(_sentences, min_size=1, max_size=3))
def test_bfloat16_reads_nearly_the_same(three, rounded, sentences) -> None:  # type: ignore[no-untyped-def]
    """The weights are ten times as large as trained ones, and so are the rounding errors."""
    slots = [Slot(words, len(words) // 2, len(words) // 2) for words in sentences]
    nothing = [None] * len(sentences)
    exact, near = (reader.read(sentences, nothing) for reader in (three[0], rounded[0]))
    for a, b in zip(exact, near, strict=True):
        assert b.log_probs.dtype == torch.float64
        assert (a.log_probs - b.log_probs).abs().mean() < 0.3
        assert not torch.equal(a.log_probs, b.log_probs)  # it does compute in the other precision
    for whole, low in zip(three, rounded, strict=True):
        dist = low.log_dist(slots, low.read(sentences, nothing))
        assert dist.dtype == np.float32
        assert np.isfinite(dist).any(1).all()
        expected = whole.log_dist(slots, whole.read(sentences, nothing))
        assert np.abs(np.exp(dist) - np.exp(expected)).max() < 0.25
    fillings = [[("dog",), ("fine-tuning", "house")]] * len(sentences)
    whole, low = (
        reader.log_probs_filled(slots, fillings, read) for reader, read in ((three[0], exact), (rounded[0], near))
    )
    for a, b in zip(whole, low, strict=True):
        assert b == pytest.approx(a, abs=0.3 * 10)  # ten predictions or so
