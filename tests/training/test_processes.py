"""Training in several processes is training in one."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from redraft.training.loop import BEST, CHECKPOINT, LOG
from redraft.training.processes import Processes, Share, join
from tests.training import together
from tests.xlnets import make_pieces

_ROOT = Path(__file__).parents[2]
_LAUNCH = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"]
_QUIET = ["--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]


def _curve(out: Path) -> list[tuple[float, ...]]:
    rows = csv.DictReader((out / LOG).read_text().splitlines())
    return [tuple(float(row[key]) for key in ("step", "tokens", "train_loss", "valid_loss")) for row in rows]


def _launched(script: list[str]) -> None:
    command = [sys.executable, *_LAUNCH, *_QUIET, "-m", *script]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_two_processes_have_the_loss_curve_of_one(made_corpus: Path, tmp_path: Path) -> None:
    pieces = make_pieces(made_corpus, tmp_path)
    together.main(made_corpus, pieces, tmp_path / "one")
    _launched(["tests.training.together", *map(str, (made_corpus, pieces, tmp_path / "two"))])
    for name in ("lstm", "single", "xlnet"):
        one, two = (_curve(tmp_path / out / name) for out in ("one", "two"))
        assert len(one) >= 4
        assert two == [pytest.approx(row, abs=2e-4) for row in one]
        assert one[-1][-1] < one[0][-1]
    a, b = (load_file(tmp_path / out / "lstm" / BEST) for out in ("one", "two"))
    for name in a:
        torch.testing.assert_close(a[name], b[name], atol=2e-4, rtol=0)


@pytest.mark.slow
def test_the_command_line_in_two_processes_and_resumed_in_one(made_corpus: Path, tmp_path: Path) -> None:
    pieces = make_pieces(made_corpus, tmp_path)
    options = ["--corpus", str(made_corpus), "--out", str(tmp_path / "out"), "--pieces", str(pieces), "--batch", "256"]
    small = ["train", "xlnet-lm", *options, "--layers", "1", "--inner", "32"]
    _launched(["redraft", *small, "--tokens", "1000"])
    first = torch.load(tmp_path / "out" / CHECKPOINT, weights_only=True)["run"]
    again = subprocess.run(
        [sys.executable, "-m", "redraft", *small, "--tokens", "2000"], cwd=_ROOT, capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr[-3000:]
    run = torch.load(tmp_path / "out" / CHECKPOINT, weights_only=True)["run"]
    assert run["step"] > first["step"] > 0
    assert run["tokens"] >= 2000


def test_shares_make_up_the_whole() -> None:
    rows = list(range(10))
    shares = [Share(index, 3).of(rows) for index in range(3)]
    assert sorted(row for share in shares for row in share) == rows
    assert Share().of(rows) == rows


def test_a_process_alone_is_the_first_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    alone = join()
    assert alone == Processes()
    assert alone.is_first
    assert alone.sum(3.5) == alone.agree(3.5) == 3.5
    parameter = torch.nn.Parameter(torch.ones(2))
    alone.sum_gradients([parameter])
    assert parameter.grad is None
