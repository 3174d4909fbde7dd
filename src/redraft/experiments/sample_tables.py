"""Tables 3, 8 and 9: the sentences of the systems for the inputs that the paper prints."""

from collections.abc import Sequence

from redraft.experiments import paper_samples
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.experiment import Experiment, ExperimentKind, OutputRequest, RowSpec
from redraft.experiments.inputs import PAPER_KEYWORD, PAPER_KEYWORDS, PAPER_TEMPLATES
from redraft.experiments.measurements import Measurements, WrittenOutputs
from redraft.experiments.metric_tables import EARLY, PASSES, TABLE4, TABLE6
from redraft.experiments.paper_samples import Printed
from redraft.experiments.pictures import sentences
from redraft.experiments.result import Result, SampleGroup, SampleRow
from redraft.experiments.systems import HUMAN, SYSTEMS, TEMPLATE

# The rows of the tables of metrics; the paper prints sentences for most of them.
_KEYWORDS = (RowSpec("Human", HUMAN), *(row for row in TABLE6 if row.system != HUMAN))
_TEMPLATES = tuple(row for row in TABLE4 if row.system not in (TEMPLATE, "fb-lm") and row not in (*EARLY, *PASSES))
_CGMH = "CGMH is its kernel with our LSTM models. GBS chooses the likeliest sentence, its second row that per word."


def _experiment(
    number: int,
    subject: str,
    test_set: str,
    rows: Sequence[RowSpec],
    printed: Sequence[Printed],
    notes: Sequence[str] = (),
) -> Experiment:
    """The table of the printed inputs, which are part of a test set."""

    def build(experiment: Experiment, measurements: Measurements) -> Result:
        config = measurements.config
        groups = tuple(_group(measurements.written, one, test_set, rows) for one in printed)
        about = (f"{config.steps} steps, seed {config.seed}.", *notes)
        return Result(experiment.name, experiment.title, groups=groups, notes=about)

    def requests(config: ReproduceConfig) -> list[OutputRequest]:
        sets = [(row, _set_of(row, one, test_set)) for one in printed for row in rows]
        return [OutputRequest(row.system, chosen, row.own_steps(config)) for row, chosen in dict.fromkeys(sets)]

    return Experiment(ExperimentKind.TABLE, number, subject, build, sentences, requests)


def _set_of(row: RowSpec, printed: Printed, test_set: str) -> str:
    """The test set of a printed input: a system that takes one keyword has one of its own."""
    is_single = len(printed.given.get("keywords", ())) == 1
    return PAPER_KEYWORD if is_single and SYSTEMS[row.system].most_keywords == 1 else test_set


def _group(written: WrittenOutputs, printed: Printed, test_set: str, rows: Sequence[RowSpec]) -> SampleGroup:
    template = printed.given.get("template")
    given = template or ", ".join(printed.given["keywords"])
    return SampleGroup(given, template is not None, tuple(_sample(written, printed, test_set, row) for row in rows))


def _sample(written: WrittenOutputs, printed: Printed, test_set: str, row: RowSpec) -> SampleRow:
    if row.system == HUMAN:
        own = not printed.has_human  # then the reference is ours
        return SampleRow(row.title, HUMAN, printed.reference if own else "", "" if own else printed.reference)
    published, test_set = printed.outputs.get(row.title, ""), _set_of(row, printed, test_set)
    if not written.has(row.system, test_set):
        return SampleRow(row.title, row.system, paper=published, note=written.why_missing(row.system, test_set))
    found = {one.id: one.text for one in written.outputs(row.system, test_set, row.own_steps(written.config))}
    return SampleRow(row.title, row.system, found[printed.id], published)


_NO_HUMAN = "The paper prints no human sentence here; this is the one of its Table 9 with these words."
EXPERIMENTS = (
    _experiment(
        3,
        "a sentence with four keywords",
        PAPER_KEYWORDS,
        _KEYWORDS,
        paper_samples.TABLE3,
        (_CGMH, _NO_HUMAN),
    ),
    _experiment(8, "sentences with keywords", PAPER_KEYWORDS, _KEYWORDS, paper_samples.TABLE8, (_CGMH,)),
    _experiment(9, "filled templates", PAPER_TEMPLATES, _TEMPLATES, paper_samples.TABLE9),
)
