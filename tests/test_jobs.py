"""Jobs: inputs with a seed and an observer of their own, written together."""

import pytest

import redraft
from redraft.drafts import JobProgress, Settings, WritingJob
from redraft.models.pack import Pack
from redraft.sentence import Constraints
from redraft.writer import Writer
from tests.test_infill_writer import INPUTS, make_writer

_WORDS = [Constraints(("dog", "sea")), Constraints(("old man",)), Constraints(template="The dog ___ .")]


@pytest.fixture(scope="module")
def writer(tiny_pack: Pack) -> Writer:
    return redraft.load(tiny_pack, candidates=10)


@pytest.mark.parametrize("chains", [1, 3])
def test_a_job_has_the_drafts_of_its_seed_and_number(writer: Writer, chains: int) -> None:
    settings = Settings(steps=12, num=2, chains=chains)
    jobs = [WritingJob(constraints, seed=7 + i, number=i) for i, constraints in enumerate(_WORDS)]
    for job, drafts in zip(jobs, writer.write_jobs(jobs, settings), strict=True):
        alone = Settings(steps=12, num=2, chains=chains, seed=job.seed)
        (expected,) = writer.write_many([job.constraints], alone, numbers=[job.number])
        assert [(one.text, one.signature) for one in drafts] == [(one.text, one.signature) for one in expected]


def test_a_job_that_is_stopped_leaves_the_others_alone(writer: Writer) -> None:
    jobs = [WritingJob(_WORDS[0], 1, watch=lambda progress: progress.step < 4), WritingJob(_WORDS[1], 2)]
    (stopped,), (whole,) = writer.write_jobs(jobs, Settings(steps=12))
    assert stopped.steps == 4
    assert whole.text == writer.write(_WORDS[1], Settings(steps=12, seed=2))[0].text


def test_progress_shows_every_revision(writer: Writer) -> None:
    seen: list[JobProgress] = []
    ((draft,),) = writer.write_jobs(
        [WritingJob(_WORDS[0], 1, watch=lambda one: not seen.append(one))], Settings(steps=12)
    )
    assert [one.step for one in seen] == list(range(13))
    assert tuple(seen[-1].traces[0]) == draft.trace
    assert seen[-1].best is not None
    assert seen[-1].best.words == draft.words
    assert seen[0].starts == (draft.start,)


def test_every_job_has_the_whole_time_limit(writer: Writer) -> None:
    results = writer.write_jobs([WritingJob(one, 1) for one in _WORDS], Settings(steps=10**8, time_limit=0.3))
    assert all(0 < drafts[0].steps < 10**8 for drafts in results)


def test_a_system_that_writes_one_by_one_takes_jobs(tiny_pack: Pack) -> None:
    beam = redraft.load(tiny_pack, "gbs")
    jobs = [WritingJob(_WORDS[0], 1), WritingJob(_WORDS[1], 2, 3)]
    texts = [drafts[0].text for drafts in beam.write_jobs(jobs)]
    expected = [
        beam.write_many([job.constraints], Settings(seed=job.seed), numbers=[job.number])[0][0].text for job in jobs
    ]
    assert texts == expected


def test_no_jobs_have_no_drafts(writer: Writer) -> None:
    assert writer.write_jobs([]) == []


@pytest.mark.parametrize("steps", [0, 5])
def test_the_infiller_takes_jobs(tiny_pack: Pack, steps: int) -> None:
    writer, seen = make_writer(tiny_pack), []
    jobs = [WritingJob(one, seed=5 + i, number=i) for i, one in enumerate(INPUTS)]
    jobs[0] = WritingJob(INPUTS[0], 5, watch=lambda progress: not seen.append(progress))
    for job, drafts in zip(jobs, writer.write_jobs(jobs, Settings(steps, num=2)), strict=True):
        alone = make_writer(tiny_pack).write_many(
            [job.constraints], Settings(steps, num=2, seed=job.seed), numbers=[job.number]
        )
        assert [one.text for one in drafts] == [one.text for one in alone[0]]
    last = seen[-1]
    assert last.best is not None
    assert last.starts
    assert sum(map(len, last.traces)) <= 2 * steps


def test_the_infiller_drops_a_job_that_is_stopped(tiny_pack: Pack) -> None:
    jobs = [WritingJob(INPUTS[0], 1, watch=lambda _: False), WritingJob(INPUTS[1], 2)]
    stopped, whole = make_writer(tiny_pack).write_jobs(jobs, Settings(0))
    assert stopped == []
    assert whole[0].text == make_writer(tiny_pack).write(INPUTS[1], Settings(0, seed=2))[0].text
