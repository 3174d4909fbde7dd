"""Tables 1, 2, 4 and 6: metrics of systems on test sets."""

from redraft.experiments import paper_values as paper
from redraft.experiments.experiment import (
    Experiment,
    ExperimentKind,
    RowSpec,
    TableMetric,
    all_pairs,
    grid,
    judge_notes,
    nll,
    ratio_to_human,
    texts_to_read,
    texts_to_score,
)
from redraft.experiments.inputs import INFILLING, KEYWORDS
from redraft.experiments.measurements import Measurements
from redraft.experiments.pictures import dots
from redraft.experiments.result import CLOSEST, Result
from redraft.experiments.systems import HUMAN, SYSTEMS, TEMPLATE, steps_of

_HUMAN = RowSpec("Human Reference", HUMAN)
# Not in the paper: SmolLM2 as the target of the chain, or as the infiller.
BEYOND = (
    RowSpec("SmolLM2-MCMC", "smollm2-mcmc", steps_of(SYSTEMS["smollm2-mcmc"])),
    RowSpec("SmolLM2-MCMC-C", "smollm2-mcmc-c", steps_of(SYSTEMS["smollm2-mcmc-c"])),
    RowSpec("Infiller", "infiller"),
)
_PER_WORD = RowSpec("GBS, best per word", "gbs")  # not in the paper
TABLE1 = (
    _HUMAN,
    RowSpec("sep-B/F", "sep-bf"),
    RowSpec("asyn-B/F", "asyn-bf"),
    RowSpec("GBS", "gbs-plain"),
    _PER_WORD,
    RowSpec("CGMH", "cgmh", 200),
    RowSpec("L-MCMC w/ deletion", "l-mcmc-deletion", 200),
    RowSpec("L-MCMC", "l-mcmc", 200),
    RowSpec("L-MCMC-C", "l-mcmc-c", 50),
    RowSpec("L-MCMC-C", "l-mcmc-c", 200),
    RowSpec("X-MCMC", "x-mcmc", 200),
    RowSpec("X-MCMC-C", "x-mcmc-c", 60),
    RowSpec("X-MCMC-C", "x-mcmc-c", 200),
    *BEYOND,
)
TABLE2 = (
    _HUMAN,
    RowSpec("L-MCMC-C", "l-mcmc-c"),
    RowSpec("- prior for actions", "l-mcmc-c-positions"),
    RowSpec("- prior for positions", "l-mcmc-c-actions"),
    RowSpec("- size of dataset", "l-mcmc-c-third"),
    RowSpec("-- random", "l-mcmc-c-third-masked"),
    RowSpec("-- masked LM", "l-mcmc-c-third-random"),
    RowSpec("L-MCMC", "l-mcmc"),
)
# Not in the paper: blanks grow with the steps, so where few words are missing BLEU is best after few steps.
EARLY = (RowSpec("L-MCMC", "l-mcmc", 50), RowSpec("L-MCMC-C", "l-mcmc-c", 50))
# The paper's 20 iterations as passes over the blanks; the last one ends where the classifier would copy every word.
PASSES = (
    RowSpec("L-MCMC", "l-mcmc-passes"),
    RowSpec("L-MCMC-C", "l-mcmc-c-passes"),
    RowSpec("L-MCMC-C", "l-mcmc-c-settled"),
)
TABLE4 = (
    _HUMAN,
    RowSpec("Template", TEMPLATE),
    RowSpec("FLM", "flm"),
    RowSpec("BLM", "blm"),
    RowSpec("F+B LM", "fb-lm"),
    RowSpec("Bayesian MCMC", "bayesian-mcmc"),
    RowSpec("TIGS (strategy 1)", "tigs-random"),
    RowSpec("TIGS (strategy 2)", "tigs-flm"),
    RowSpec("L-MCMC", "l-mcmc"),
    RowSpec("L-MCMC-C", "l-mcmc-c"),
    *PASSES,
    *EARLY,
    *BEYOND,
)
TABLE6 = (
    _HUMAN,
    RowSpec("sep-B/F", "sep-bf"),
    RowSpec("asyn-B/F", "asyn-bf"),
    RowSpec("GBS", "gbs-plain"),
    _PER_WORD,
    RowSpec("CGMH", "cgmh"),
    RowSpec("L-MCMC", "l-mcmc"),
    RowSpec("L-MCMC-C", "l-mcmc-c"),
    RowSpec("X-MCMC", "x-mcmc"),
    RowSpec("X-MCMC-C", "x-mcmc-c"),
    *BEYOND,
)
_BASELINES = (
    "In the paper CGMH is its authors' program and model; here it is its kernel with our LSTM models. sep-B/F and "
    "asyn-B/F take one keyword. GBS chooses the likeliest sentence, its second row the one that is likeliest per word."
)
_SENSE = (
    TableMetric(
        "two_sample_accuracy", "Two-sample accuracy (50 %: indistinguishable from human text)", "%", "lower", {}
    ),
    TableMetric("self_bleu4_to_human", "Self-BLEU-4 as a ratio to the human reference", "", CLOSEST, {}),
    TableMetric("distinct2_to_human", "Distinct-2 as a ratio to the human reference", "", CLOSEST, {}),
    TableMetric("entropy4_to_human", "Entropy-4 as a ratio to the human reference", "", CLOSEST, {}),
    TableMetric("length_to_human", "Length as a ratio to the human reference", "", CLOSEST, {}),
    TableMetric("stock_phrases", "Outputs with one of the ten most common 4-grams", "%", "lower", {}),
)
_FIT = TableMetric("keyword_fit_to_human", "Keyword fit as a ratio to the human reference", "", CLOSEST, {})
_ABOUT_SENSE = (
    "A low NLL is not a merit in itself: stock phrases have a lower NLL than human text. NLL is therefore compared "
    "with that of the human reference, and the two-sample test measures how easily a classifier on the judge's hidden "
    "states distinguishes outputs from human sentences."
)
_ALT = "Dot plots, one per metric: our values filled, with 95 % intervals; the paper's hollow."


def _inputs(measurements: Measurements) -> str:
    config = measurements.config
    return (
        f"{config.num} inputs in each set, from {config.test_file.name}, {config.steps} steps, seed {config.seed}; "
        "95 % intervals. A value of fewer inputs states their number n."
    )


def _table1(experiment: Experiment, measurements: Measurements) -> Result:
    stated = paper.TABLE1
    metrics = (
        TableMetric("bleu2_corpus", "BLEU-2, corpus level", "%", "higher", stated["bleu2"]),
        TableMetric("bleu2_sentence", "BLEU-2, mean of sentences", "%", "higher", stated["bleu2"]),
        TableMetric("people", "Human evaluation", "", "higher", stated["people"]),
        TableMetric("self_bleu4", "Self-BLEU-4", "%", "lower", stated["self_bleu4"]),
        TableMetric("distinct2", "Distinct-2", "%", "higher", stated["distinct2"]),
        TableMetric("entropy4", "Entropy-4", "nats", "higher", stated["entropy4"]),
        TableMetric("coverage", "Outputs with all keywords", "%", "higher", {}),
        TableMetric("length", "Length", "words", "", {}),
        *_SENSE,
        _FIT,
    )
    fluency = grid(measurements, nll(measurements, stated["nll"]), TABLE1, KEYWORDS)
    others = (grid(measurements, metric, TABLE1, KEYWORDS) for metric in metrics)
    notes = (
        _inputs(measurements),
        *judge_notes(measurements),
        _ABOUT_SENSE,
        _BASELINES,
        "The paper does not say whether its BLEU is corpus or sentence level; both are given.",
        "Self-BLEU, Distinct and Entropy depend on the number of inputs; the paper has 1,000.",
        "There was no human evaluation here: those values are only the paper's.",
    )
    ratios = ratio_to_human(measurements, stated["nll"], TABLE1, KEYWORDS)
    return Result(experiment.name, experiment.title, (fluency, ratios, *others), notes=notes, alt=_ALT)


def _table2(experiment: Experiment, measurements: Measurements) -> Result:
    found = grid(measurements, nll(measurements, paper.TABLE2), TABLE2, KEYWORDS)
    notes = (_inputs(measurements), *judge_notes(measurements))
    ratios = ratio_to_human(measurements, paper.TABLE2, TABLE2, KEYWORDS)
    return Result(experiment.name, experiment.title, (found, ratios), notes=notes, alt=_ALT)


def _table4(experiment: Experiment, measurements: Measurements) -> Result:
    stated = paper.TABLE4
    metrics = (
        TableMetric("bleu4_corpus", "BLEU-4, corpus level", "%", "higher", stated["bleu4"]),
        TableMetric("bleu4_corpus_no_bp", "BLEU-4 without brevity penalty", "%", "higher", stated["bleu4_no_bp"]),
        TableMetric("coverage", "Outputs with all given words", "%", "higher", {}),
        TableMetric("length", "Length", "words", "", {}),
        *_SENSE,
    )
    fluency = grid(measurements, nll(measurements, stated["nll"]), TABLE4, INFILLING)
    others = (grid(measurements, metric, TABLE4, INFILLING) for metric in metrics)
    notes = (
        _inputs(measurements),
        *judge_notes(measurements),
        _ABOUT_SENSE,
        "The paper runs 20 iterations and does not say what one is. For Bayesian MCMC and TIGS it is a pass over the "
        "missing words. L-MCMC revises one word in a step. Its first rows take as many steps as with keywords; rows of "
        "50 steps are from the same chains. In the rows of passes, a pass is as many steps as words are missing. "
        '"Until settled": the chain ends once its draft is complete and the classifier would copy every word.',
        "Systems that are told the lengths know how many words each blank of the reference has. The rows of passes "
        "know the sum of these numbers, but only as a number of steps. The others know neither.",
        "F+B LM takes the better of FLM and BLM by the NLL of the forward LSTM.",
        "The Template row needs no model: its distance from the paper's shows how much the test sets differ, and "
        "hence BLEU. A blank counts as a word in it.",
    )
    ratios = ratio_to_human(measurements, stated["nll"], TABLE4, INFILLING)
    return Result(experiment.name, experiment.title, (fluency, ratios, *others), notes=notes, alt=_ALT)


def _table6(experiment: Experiment, measurements: Measurements) -> Result:
    metrics = (
        TableMetric("repetition_any_content", "Any clause, content words", "%", "lower", paper.TABLE6),
        TableMetric("repetition_any", "Any clause, all words", "%", "lower", paper.TABLE6),
        TableMetric("repetition_unigram", "A word more than three times", "%", "lower", {}),
        TableMetric("repetition_bigram", "A bigram more than twice", "%", "lower", {}),
        TableMetric("repetition_trigram", "A trigram more than once", "%", "lower", {}),
    )
    notes = (
        _inputs(measurements),
        _BASELINES,
        'Applied literally ("all words"), the rule counts commas and articles and does not reproduce the human row; '
        '"content words" ignores n-grams without a content word.',
    )
    grids = tuple(grid(measurements, metric, TABLE6, KEYWORDS) for metric in metrics)
    return Result(experiment.name, experiment.title, grids, notes=notes, alt=_ALT)


_TABLE = ExperimentKind.TABLE
EXPERIMENTS = (
    Experiment(_TABLE, 1, "sentences from keywords", _table1, dots, all_pairs(TABLE1, KEYWORDS), texts_to_read),
    Experiment(_TABLE, 2, "ablations", _table2, dots, all_pairs(TABLE2, KEYWORDS), texts_to_score),
    Experiment(_TABLE, 4, "text infilling", _table4, dots, all_pairs(TABLE4, INFILLING), texts_to_read),
    Experiment(_TABLE, 6, "sentences that repeat themselves", _table6, dots, all_pairs(TABLE6, KEYWORDS)),
)
