"""Running systems in several processes of one thread each: the fastest way to use several cores.

The outputs are the same as those of one process. The unit of work is a system on a test set, whose file is locked.
"""

import multiprocessing
import signal
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from queue import Empty

import torch

from redraft.errors import OutputError
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.inputs import TestSets
from redraft.experiments.run_systems import Job, ProgressListener, write_job, write_missing
from redraft.experiments.systems import SYSTEMS, open_system
from redraft.interrupt import end_with_parent
from redraft.models.pack import Pack
from redraft.writer import Writer

_POLL_SECONDS = 0.2
_Report = str | int  # what a process says, or units of work that it has done


def write_in_processes(
    config: ReproduceConfig, jobs: Sequence[Job], sets: TestSets, pack: Pack, listener: ProgressListener
) -> bool:
    """Write missing outputs in ``config.workers`` processes; returns False if stopped."""
    num = min(config.workers, len(jobs))
    if num < 2:
        return write_missing(config, jobs, sets, pack, listener)
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of torch's threads
    reports: Queue[_Report] = context.Queue()
    stop = context.Event()
    pool = ProcessPoolExecutor(num, context, _start, (config, dict(sets), pack, reports, stop))
    try:
        left: set[Future[bool]] = {pool.submit(_work, job) for job in jobs}
        finished = True
        while left:
            done, left = wait(left, _POLL_SECONDS, FIRST_COMPLETED)
            _pass_on(reports, listener)
            if listener.stopped():
                stop.set()
            for future in done:
                finished = future.result() and finished
        _pass_on(reports, listener)
        return finished
    except BrokenProcessPool as error:
        raise OutputError("a worker process was killed; run the same command again to resume") from error
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _pass_on(reports: "Queue[_Report]", listener: ProgressListener) -> None:
    while True:
        try:
            report = reports.get_nowait()
        except Empty:
            return
        if isinstance(report, str):
            listener.say(report)
        else:
            listener.advance(report)


@dataclass
class _Worker:
    """What a process has: the run, how it reports, and the system that it opened last."""

    config: ReproduceConfig
    sets: TestSets
    pack: Pack
    reports: "Queue[_Report]"
    stop: Event
    opened: tuple[str, Writer] | None = None

    def begin(self, units: int) -> None: ...

    def say(self, what: str) -> None:
        self.reports.put(what)

    def advance(self, units: int) -> None:
        self.reports.put(units)

    def stopped(self) -> bool:
        return self.stop.is_set()

    def write(self, job: Job) -> bool:
        """Write what is missing; False if stopped."""
        if self.stopped():
            return False
        if self.opened is None or self.opened[0] != job.system:
            self.opened = job.system, open_system(SYSTEMS[job.system], self.pack)
        return write_job(self.config, self.opened[1], job, self.sets, self)


_worker: list[_Worker] = []


def _start(config: ReproduceConfig, sets: TestSets, pack: Pack, reports: "Queue[_Report]", stop: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent sets ``stop``
    end_with_parent()
    torch.set_num_threads(1)
    _worker[:] = [_Worker(config, sets, pack, reports, stop)]


def _work(job: Job) -> bool:
    return _worker[0].write(job)
