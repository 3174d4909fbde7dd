"""Training the sub-word vocabulary of the XLNet models: a cased SentencePiece model with XLNet's special symbols."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from redraft import corpus, text
from redraft.errors import CorpusError, InputError
from redraft.files import replacing

NUM_PIECES = 16_000
_NUM_SENTENCES = 500_000  # more cost memory and change almost nothing
# XLNet's ids: <unk> 0, <s> 1, </s> 2, then these. A model with the same layout loads as an XLNet tokenizer.
_CONTROL = ("<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")


def train_pieces(folder: Path, out: Path, *, num_pieces: int = NUM_PIECES, num_sentences: int = _NUM_SENTENCES) -> None:
    """Train pieces on a corpus folder and write the model to ``out``. Held-out sentences are not used."""
    import sentencepiece

    with replacing(out) as partial:
        # The library appends .model to the prefix.
        written = partial.with_name(partial.name + ".model")
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_sample(folder, num_sentences),
                model_prefix=str(partial),
                vocab_size=num_pieces,
                model_type="unigram",
                character_coverage=1.0,
                split_by_unicode_script=False,  # lets "'s" and "U.S." be one piece, so it can be proposed as a word
                unk_id=0,
                bos_id=1,
                eos_id=2,
                pad_id=-1,
                control_symbols=list(_CONTROL),
                num_threads=1,  # makes the result reproducible: the order of sums is fixed
                minloglevel=2,
            )
        except RuntimeError as error:
            advice = "give more text, or a vocabulary with --pieces"
            raise InputError(f"cannot train {num_pieces:,} pieces on {folder}; {advice} ({error})") from error
        finally:
            partial.with_name(partial.name + ".vocab").unlink(missing_ok=True)
        written.replace(partial)


def _sample(folder: Path, num: int) -> Iterator[str]:
    """Sentences spread evenly over the corpus, tokenised: the models see words separated by spaces."""
    total = sum(1 for _ in _lines(folder))
    if not total:
        raise CorpusError(f"{folder} has no sentence to train on")
    for line in islice(_lines(folder), 0, None, max(1, total // num)):
        yield " ".join(text.tokenise(line))


def _lines(folder: Path) -> Iterator[str]:
    return (line for line in corpus.sentences(folder) if not corpus.is_held_out(line))
