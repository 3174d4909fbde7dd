import csv
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from redraft.errors import CorpusError, InputError, OutputError
from redraft.evaluation.lstm_nll import padded
from redraft.models.lstm.network import LstmConfig
from redraft.training import loop
from redraft.training.batches import Batches
from redraft.training.lm import LmTask
from redraft.training.loop import BEST, CHECKPOINT, LOG, Schedule, train
from redraft.training.processes import Share
from redraft.training.word_data import prepare_words
from tests.full_disk import file_limit


def _task(corpus: Path, **changes: int) -> LmTask:
    data = prepare_words(corpus)
    return LmTask(data, "forward", config=LstmConfig.small(len(data.vocabulary)), **{"batch_tokens": 256, **changes})


_PLAN = Schedule(12_000, learning_rate=1e-2, validate_every=3_000)


class _KilledError(Exception):
    pass


def _assert_same_weights(*folders: Path) -> None:
    a, b = (load_file(folder / BEST) for folder in folders)
    assert all(torch.equal(a[key], b[key]) for key in a)


def test_a_run_that_was_cut_off_ends_with_the_same_weights(
    made_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(_task(made_corpus), _PLAN, tmp_path / "whole", quiet=True)
    for stop in (7, 23):
        task = _task(made_corpus)
        plain = task.loss

        def cut(step: int, share: Share, plain=plain, stop=stop):  # type: ignore[no-untyped-def]
            if step == stop:
                raise _KilledError
            return plain(step, share)

        monkeypatch.setattr(task, "loss", cut)
        with pytest.raises(_KilledError):
            train(task, _PLAN, tmp_path / "cut", quiet=True)
    assert train(_task(made_corpus), _PLAN, tmp_path / "cut", quiet=True) == whole
    _assert_same_weights(tmp_path / "whole", tmp_path / "cut")
    logs = [list(csv.DictReader((tmp_path / name / LOG).read_text().splitlines())) for name in ("whole", "cut")]
    assert [row["valid_loss"] for row in logs[0]] == [row["valid_loss"] for row in logs[1]]
    assert float(logs[0][-1]["valid_loss"]) < float(logs[0][0]["valid_loss"]) - 0.3


@pytest.mark.parametrize("where", ["loss", "validate"])
def test_an_interrupt_waits_for_a_state_to_go_on_from(
    made_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    plan = Schedule(3_000, learning_rate=1e-2, validate_every=1_000)
    whole = train(_task(made_corpus), plan, tmp_path / "whole", quiet=True)
    task = _task(made_corpus)
    plain = getattr(task, where)

    def interrupted(*arguments):  # type: ignore[no-untyped-def]
        signal.raise_signal(signal.SIGINT)
        return plain(*arguments)

    monkeypatch.setattr(task, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(task, plan, tmp_path / "cut", quiet=True)
    assert train(_task(made_corpus), plan, tmp_path / "cut", quiet=True) == whole
    _assert_same_weights(tmp_path / "whole", tmp_path / "cut")
    assert (tmp_path / "whole" / LOG).read_text().count("\n") == (tmp_path / "cut" / LOG).read_text().count("\n")


def test_half_a_step_is_not_kept(made_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Schedule(3_000, learning_rate=1e-2, validate_every=1_000, checkpoint_seconds=0)
    whole = train(_task(made_corpus), plan, tmp_path / "whole", quiet=True)
    task = _task(made_corpus)
    last = task.optimizers[-1]
    assert len(task.optimizers) > 1
    plain, count = last.step, itertools.count()

    def cut() -> None:
        if next(count) == 5:
            raise _KilledError
        plain()

    monkeypatch.setattr(last, "step", cut)
    with pytest.raises(_KilledError):
        train(task, plan, tmp_path / "cut", quiet=True)
    assert train(_task(made_corpus), plan, tmp_path / "cut", quiet=True) == whole
    _assert_same_weights(tmp_path / "whole", tmp_path / "cut")


def test_a_score_is_not_kept_without_its_weights(
    made_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Schedule(3_000, learning_rate=1e-2, validate_every=3_000)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_file", full)
        with pytest.raises(OutputError, match="No space"):
            train(_task(made_corpus), plan, tmp_path, quiet=True)
    best = train(_task(made_corpus), plan, tmp_path, quiet=True)
    task = _task(made_corpus)
    task.module.load_state_dict(load_file(tmp_path / BEST))
    assert sum(task.validate().values()) == pytest.approx(best, abs=1e-6)


def test_a_full_disk_leaves_the_older_checkpoint(made_corpus: Path, tmp_path: Path) -> None:
    train(_task(made_corpus), Schedule(1_000, learning_rate=1e-2), tmp_path, quiet=True)
    before = (tmp_path / CHECKPOINT).read_bytes()
    with file_limit(3_000), pytest.raises(OutputError, match=r"cannot write .*: .*File too large"):
        train(_task(made_corpus), Schedule(2_000, learning_rate=1e-2), tmp_path, quiet=True)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    train(_task(made_corpus), Schedule(2_000, learning_rate=1e-2), tmp_path, quiet=True)


@pytest.mark.slow
def test_a_killed_process_can_be_resumed(made_corpus: Path, tmp_path: Path) -> None:
    """The real thing: SIGKILL in the middle, with a checkpoint every step."""
    script = textwrap.dedent(
        f"""
        from pathlib import Path
        from dataclasses import replace
        from tests.training.test_loop import _PLAN, _task
        from redraft.training.loop import train
        plan = replace(_PLAN, checkpoint_seconds=0)
        print(train(_task(Path({str(made_corpus)!r})), plan, Path({str(tmp_path / "out")!r}), quiet=True))
        """
    )
    root = Path(__file__).parents[2]
    start = [sys.executable, "-c", script]
    first = subprocess.Popen(start, cwd=root, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / CHECKPOINT).exists() and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = subprocess.run(start, cwd=root, capture_output=True, text=True, check=True)
    whole = train(_task(made_corpus), _PLAN, tmp_path / "whole", quiet=True)
    assert float(second.stdout) == pytest.approx(whole, abs=1e-6)
    assert not list((tmp_path / "out").glob(".*.partial")) or first.returncode == -signal.SIGKILL


def test_other_settings_do_not_resume(made_corpus: Path, tmp_path: Path) -> None:
    plan = Schedule(600, learning_rate=1e-2)
    train(_task(made_corpus), plan, tmp_path, quiet=True)
    with pytest.raises(InputError, match=r"other settings \(batch_tokens\)"):
        train(_task(made_corpus, batch_tokens=128), plan, tmp_path, quiet=True)


def test_another_length_is_told(made_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for num_tokens in (600, 600, 900):
        train(_task(made_corpus), Schedule(num_tokens, learning_rate=1e-2), tmp_path)
    told = [line for line in capsys.readouterr().err.splitlines() if "schedule" in line]
    assert told == [f"{tmp_path.name}: the schedule changed from 600 to 900 tokens"]


def test_the_learning_rate_rises_and_falls() -> None:
    plan = Schedule(1000, learning_rate=1.0, warmup=0.1)
    rates = [plan.rate(tokens) for tokens in (0, 50, 100, 500, 1000)]
    assert rates[0] < rates[1] < rates[2] == pytest.approx(1.0)
    assert rates[2] > rates[3] > rates[4] == pytest.approx(0.01)


def test_every_sentence_comes_once_an_epoch(made_corpus: Path) -> None:
    data = prepare_words(made_corpus).train
    batches = Batches(data, 256, seed=1)
    seen: list[int] = []
    step = 0
    while len(seen) < len(data):
        seen += batches.rows(step).tolist()
        step += 1
    assert sorted(seen) == list(range(len(data)))
    assert batches.rows(0).tolist() == Batches(data, 256, seed=1).rows(0).tolist()
    assert batches.rows(step).tolist() != batches.rows(0).tolist()


def test_padding_and_direction(made_corpus: Path) -> None:
    data = prepare_words(made_corpus).train
    rows = Batches(data, 64, seed=0).rows(0)
    inputs, targets, real = padded(data, rows, "forward")
    assert (inputs[1:][real[1:]] == targets[:-1][real[1:]]).all()
    _, reverse, _ = padded(data, rows, "backward")
    length = int(data.lengths[rows[0]])
    assert targets[:length, 0].tolist() == reverse[:length, 0].tolist()[::-1]
    assert targets[length, 0] == reverse[length, 0] == 0


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00binary"])
def test_a_corpus_that_is_no_text_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(CorpusError):
        prepare_words(tmp_path)
