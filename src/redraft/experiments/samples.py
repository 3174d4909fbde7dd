"""Tables 3, 8 and 9: what the systems write for the inputs that the paper prints."""

from collections.abc import Sequence

from redraft.experiments import paper_samples, sets
from redraft.experiments.bench import Bench
from redraft.experiments.experiment import Experiment, RowSpec, all_pairs, nothing
from redraft.experiments.outputs import HUMAN, TEMPLATE
from redraft.experiments.paper_samples import Printed
from redraft.experiments.pictures import sentences
from redraft.experiments.result import Result, SampleGroup, SampleRow
from redraft.experiments.sets import PAPER_KEYWORDS, PAPER_TEMPLATES, TestSetColumn
from redraft.experiments.tables import EARLY, TABLE4, TABLE6

# The rows of the tables of figures; the paper prints sentences for most of them.
_KEYWORDS = (RowSpec("Human", HUMAN), *(line for line in TABLE6 if line.system != HUMAN))
_TEMPLATES = tuple(line for line in TABLE4 if line.system not in (TEMPLATE, "fb-lm") and line not in EARLY)


def _experiment(name: str, title: str, test_set: str, lines: Sequence[RowSpec]) -> Experiment:
    def build(bench: Bench) -> Result:
        notes = [f"{bench.run.steps} steps, seed {bench.run.seed}."]
        if test_set == PAPER_KEYWORDS:
            notes.append("CGMH is L-MCMC w/ deletion here.")
        if name == "table3":
            notes.append("The paper prints no human sentence here; this is the one of its Table 9 with these words.")
        groups = tuple(_group(bench, printed, test_set, lines) for printed in sets.printed(name))
        return Result(name, title, groups=groups, notes=tuple(notes))

    return Experiment(name, all_pairs(lines, [TestSetColumn(test_set, "")]), build, nothing, sentences)


def _group(bench: Bench, printed: Printed, test_set: str, lines: Sequence[RowSpec]) -> SampleGroup:
    template = printed.given.get("template")
    given = template or ", ".join(printed.given["keywords"])
    return SampleGroup(given, template is not None, tuple(_sample(bench, printed, test_set, line) for line in lines))


def _sample(bench: Bench, printed: Printed, test_set: str, line: RowSpec) -> SampleRow:
    if line.system == HUMAN:
        own = printed in paper_samples.TABLE3  # where the paper prints none
        return SampleRow(line.title, HUMAN, printed.reference if own else "", "" if own else printed.reference)
    published = printed.outputs.get(line.title, "")
    if not bench.has(line.system, test_set):
        note = bench.lack(line.system, test_set)
        return SampleRow(line.title, line.system, paper=published, note=note)
    found = {one.id: one.text for one in bench.outputs(line.system, test_set, line.own_steps(bench.run))}
    return SampleRow(line.title, line.system, found[printed.id], published)


EXPERIMENTS = (
    _experiment("table3", "Table 3: a sentence with four keywords", PAPER_KEYWORDS, _KEYWORDS),
    _experiment("table8", "Table 8: sentences with keywords", PAPER_KEYWORDS, _KEYWORDS),
    _experiment("table9", "Table 9: filled templates", PAPER_TEMPLATES, _TEMPLATES),
)
