"""Words to the pieces of a SentencePiece model. A word's pieces do not hang on its neighbours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from redraft import text
from redraft.errors import PackError

PIECES = "spiece.model"
_MARK = "▁"  # stands before a piece that begins a word


class Splitter(Protocol):
    """Splits one word. ``begin`` and ``end`` are the ids that stand for BOS and EOS."""

    begin: int
    end: int
    padding: int
    size: int

    def split(self, word: str) -> tuple[int, ...]:
        """Ids of a word's pieces, at least one."""


class SentencePieces:
    """A SentencePiece model laid out as XLNet's."""

    def __init__(self, path: Path):
        import sentencepiece

        if not path.is_file():
            raise PackError(
                f"{path} is not a SentencePiece model: there is no such file; copy it from where it was made"
            )
        try:
            self._model: Any = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise PackError(f"{path} is not a SentencePiece model: {error}") from error
        self.size: int = self._model.get_piece_size()
        self.begin, self.end, self.padding = (self._model.piece_to_id(name) for name in ("<s>", "</s>", "<pad>"))
        if self._model.unk_id() in (self.begin, self.end, self.padding):
            raise PackError(f"{path} lacks <s>, </s> or <pad>; it is not the vocabulary of an XLNet")
        self._bare: int = self._model.piece_to_id(_MARK)

    def split(self, word: str) -> tuple[int, ...]:
        ids = tuple(self._model.encode(word))
        if len(ids) > 1 and ids[0] == self._bare and self._model.unk_id() not in ids and _leans(word):
            # Trained on natural text, a model has met "," after a word, never after a space.
            ids = ids[1:]
        # A word of nothing but invisible characters has no pieces: it is unknown.
        return ids or (self._model.unk_id(),)

    def join(self, pieces: Sequence[int]) -> str:
        """The text of pieces."""
        joined: str = self._model.decode(list(pieces))
        return joined

    def whole_words(self) -> list[tuple[str, int]]:
        """The words that are one piece, each with its id, in the order of the ids. No piece that would glue."""
        pieces = ((self._model.id_to_piece(i).removeprefix(_MARK), i) for i in range(self.size) if self._is_text(i))
        return [(word, i) for word, i in pieces if self.split(word) == (i,) and text.tokenise(word) == [word]]

    def _is_text(self, piece: int) -> bool:
        return not (self._model.is_control(piece) or self._model.is_unknown(piece) or self._model.is_unused(piece))


def _leans(word: str) -> bool:
    """Whether natural text has no space before the word."""
    return text.detokenise(["x", word]) == "x" + word
