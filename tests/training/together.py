"""What test_processes runs in one process and in two: a short training of an LSTM and of an XLNet.

python -m tests.training.together CORPUS PIECES OUT
"""

import sys
from pathlib import Path

from redraft.models.lstm.network import LstmConfig
from redraft.models.pieces import SentencePieces
from redraft.models.xlnet.network import ReadingOrder
from redraft.training.lm import LmTask
from redraft.training.loop import Schedule, train
from redraft.training.piece_data import prepare_pieces
from redraft.training.word_data import prepare_words
from redraft.training.xlnet import new_xlnet
from redraft.training.xlnet_task import XlnetTask

SHAPE = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}


def main(corpus: Path, pieces: Path, out: Path) -> None:
    words = prepare_words(corpus)
    # No dropout: what is dropped depends on the share of the batch that a process sees.
    config = LstmConfig.small(len(words.vocabulary))
    # The second batch size gives batches of one sentence, of which one of two processes has nothing.
    for name, size, tokens in (("lstm", 256, 4000), ("single", 8, 120)):
        task = LmTask(words, "forward", config=config, batch_tokens=size)
        train(task, Schedule(tokens, learning_rate=1e-2, validate_every=tokens // 4), out / name, quiet=True)
    data = prepare_pieces(corpus, pieces)
    network, splitter = new_xlnet(pieces, SHAPE), SentencePieces(pieces)
    three = XlnetTask(network, splitter, data, list(ReadingOrder), batch_pieces=256)
    train(three, Schedule(3000, learning_rate=1e-2, validate_every=750), out / "xlnet", quiet=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
