"""Split words into the pieces of a SentencePiece model. The pieces of a word do not depend on its neighbours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from redraft import text
from redraft.errors import PackError

PIECES = "spiece.model"
_MARK = "▁"  # prefix of a piece that begins a word


class Splitter(Protocol):
    """Splits words into pieces. ``begin`` and ``end`` are the ids of BOS and EOS."""

    begin: int
    end: int
    padding: int
    size: int

    def split(self, word: str) -> tuple[int, ...]:
        """The ids of a word's pieces, at least one."""


class SentencePieces:
    """A SentencePiece model with the special pieces of XLNet."""

    def __init__(self, path: Path):
        import sentencepiece

        if not path.is_file():
            raise PackError(f"{path} is not a SentencePiece model: there is no such file; copy it from its source")
        try:
            self._model: Any = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise PackError(f"{path} is not a SentencePiece model: {error}") from error
        self.size: int = self._model.get_piece_size()
        self.begin, self.end, self.padding = (self._model.piece_to_id(name) for name in ("<s>", "</s>", "<pad>"))
        if self._model.unk_id() in (self.begin, self.end, self.padding):
            raise PackError(f"{path} lacks <s>, </s> or <pad>; it is not an XLNet vocabulary")
        self._bare: int = self._model.piece_to_id(_MARK)

    def split(self, word: str) -> tuple[int, ...]:
        ids = tuple(self._model.encode(word))
        if len(ids) > 1 and ids[0] == self._bare and self._model.unk_id() not in ids and _leans(word):
            # In natural text "," follows a word without a space, so the model was trained without the mark.
            ids = ids[1:]
        # A word of invisible characters has no pieces. It is unknown.
        return ids or (self._model.unk_id(),)

    def join(self, pieces: Sequence[int]) -> str:
        """The text of pieces."""
        joined: str = self._model.decode(list(pieces))
        return joined

    def whole_words(self) -> list[tuple[str, int]]:
        """The words of one piece, each with its id, by increasing id. Pieces that only continue a word are left out."""
        pieces = ((self._model.id_to_piece(i).removeprefix(_MARK), i) for i in range(self.size) if self._is_text(i))
        return [(word, i) for word, i in pieces if self.split(word) == (i,) and text.tokenise(word) == [word]]

    def _is_text(self, piece: int) -> bool:
        return not (self._model.is_control(piece) or self._model.is_unknown(piece) or self._model.is_unused(piece))


def _leans(word: str) -> bool:
    """Return whether natural text has no space before the word."""
    return text.detokenise(["x", word]) == "x" + word
