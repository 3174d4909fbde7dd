from pathlib import Path

import pytest
import sentencepiece

from redraft.errors import InputError, PackError
from redraft.predict.pieces import HubPieces, PieceEncoder, SentencePieces
from redraft.training.pieces import train_pieces


def test_the_layout_is_xlnets(pieces: Path) -> None:
    model = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    names = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    assert [model.id_to_piece(i) for i in range(9)] == names
    assert not list(pieces.parent.glob(".*"))  # nothing of the training is left behind


def test_the_first_piece_stands_for_the_word(pieces: Path) -> None:
    model = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    ids, firsts = PieceEncoder(SentencePieces(pieces)).encode(["the", "fine-tuning", "likes", "apple"])
    names = [model.id_to_piece(i) for i in ids]
    assert names[0] == "<s>"
    assert names[-1] == "</s>"
    assert len(firsts) == 5  # four words and the end
    assert firsts[-1] == len(ids) - 1
    assert all(names[first].startswith("▁") for first in firsts[:-1])
    word = "".join(names[firsts[1] : firsts[2]])
    assert word == "▁fine-tuning"
    assert names[firsts[1]] == "▁fine"
    assert firsts[2] - firsts[1] > 2


def test_words_are_encoded_as_a_sentence_would_be(pieces: Path) -> None:
    model = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    words = ["The", "old", "man", "'s", "fine-tuning", ",", "sees", "."]
    assert PieceEncoder(SentencePieces(pieces)).encode(words).ids[1:-1] == model.encode(" ".join(words))


def test_the_opening_word_is_shown_with_its_capital(pieces: Path) -> None:
    encoder = PieceEncoder(SentencePieces(pieces))
    assert encoder.encode(["the", "dog"]) == encoder.encode(["The", "dog"])
    assert encoder.encode(["dog", "the"]) != encoder.encode(["dog", "The"])


def test_every_word_has_a_piece(pieces: Path) -> None:
    encoder = PieceEncoder(SentencePieces(pieces))
    ids, firsts = encoder.encode(["\u200b", "漢字", "\u200b\u200b"])
    assert firsts == sorted(set(firsts))
    assert ids[firsts[0]] == 0  # unknown


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_text("no model")
    with pytest.raises(PackError, match="not a SentencePiece model"):
        SentencePieces(tmp_path / "spiece.model")
    with pytest.raises(PackError, match="not a SentencePiece model"):
        SentencePieces(tmp_path / "missing.model")


def test_too_many_pieces_are_refused(made_corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot train 16,000 pieces"):
        train_pieces(made_corpus, tmp_path / "spiece.model")
    assert not list(tmp_path.glob("*"))


class _Tokenizer:
    """As transformers makes them: some begin with [CLS], some with <s>."""

    bos_token_id, cls_token_id, eos_token_id, sep_token_id = None, 7, None, 8
    pad_token_id, unk_token_id = 9, 3

    def __len__(self) -> int:
        return 100

    def encode(self, word: str, *, add_special_tokens: bool) -> list[int]:
        assert word.startswith(" ")
        assert not add_special_tokens
        return [ord(letter) % 90 + 10 for letter in word.strip()]


def test_any_tokenizer_of_transformers() -> None:
    splitter = HubPieces(_Tokenizer())
    assert (splitter.begin, splitter.end, splitter.padding, splitter.size) == (7, 8, 9, 100)
    assert PieceEncoder(splitter).encode(["ab", "c"]).firsts == [1, 3, 4]
    assert splitter.split(" ") == (3,)
    nameless = _Tokenizer()
    nameless.cls_token_id = None  # type: ignore[assignment]
    with pytest.raises(PackError, match="begin or the end"):
        HubPieces(nameless)
