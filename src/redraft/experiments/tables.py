"""Tables 1, 2, 4 and 6: systems down, test sets across."""

from redraft.experiments import paper
from redraft.experiments.bench import Bench
from redraft.experiments.experiment import (
    Experiment,
    RowSpec,
    TableMetric,
    all_pairs,
    grid,
    judge_notes,
    nll,
    nothing,
    ratio_to_human,
    texts_to_read,
    texts_to_score,
)
from redraft.experiments.outputs import HUMAN, TEMPLATE
from redraft.experiments.pictures import dots
from redraft.experiments.result import CLOSEST, Result
from redraft.experiments.sets import INFILLING, KEYWORDS
from redraft.experiments.systems import SYSTEMS, steps_of

_HUMAN = RowSpec("Human Reference", HUMAN)
# Not in the paper: SmolLM2 decides among what the LSTM models propose, or writes into the gaps itself.
BEYOND = (
    RowSpec("SmolLM2-MCMC", "smollm2-mcmc", steps_of(SYSTEMS["smollm2-mcmc"])),
    RowSpec("SmolLM2-MCMC-C", "smollm2-mcmc-c", steps_of(SYSTEMS["smollm2-mcmc-c"])),
    RowSpec("Infiller", "infiller"),
)
TABLE1 = (
    _HUMAN,
    RowSpec("sep-B/F", "sep-bf"),
    RowSpec("asyn-B/F", "asyn-bf"),
    RowSpec("GBS", "gbs"),
    RowSpec("CGMH", "l-mcmc-deletion", 200),
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
# Not in the paper: blanks grow with the steps, so BLEU has its best early where few words are missing.
EARLY = (RowSpec("L-MCMC", "l-mcmc", 50), RowSpec("L-MCMC-C", "l-mcmc-c", 50))
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
    *EARLY,
    *BEYOND,
)
TABLE6 = (
    _HUMAN,
    RowSpec("sep-B/F", "sep-bf"),
    RowSpec("asyn-B/F", "asyn-bf"),
    RowSpec("GBS", "gbs"),
    RowSpec("CGMH", "l-mcmc-deletion"),
    RowSpec("L-MCMC", "l-mcmc"),
    RowSpec("L-MCMC-C", "l-mcmc-c"),
    RowSpec("X-MCMC", "x-mcmc"),
    RowSpec("X-MCMC-C", "x-mcmc-c"),
    *BEYOND,
)
_CGMH = "CGMH is the authors' program in the paper; here it is L-MCMC w/ deletion, so both rows are the same outputs."
_SENSE = (
    TableMetric("two_sample_accuracy", "Two-sample accuracy (50 %: cannot be told from human text)", "%", "lower", {}),
    TableMetric("self_bleu4_to_human", "Self-BLEU-4 as a ratio to the human reference", "", CLOSEST, {}),
    TableMetric("distinct2_to_human", "Distinct-2 as a ratio to the human reference", "", CLOSEST, {}),
    TableMetric("entropy4_to_human", "Entropy-4 as a ratio to the human reference", "", CLOSEST, {}),
    TableMetric("length_to_human", "Length as a ratio to the human reference", "", CLOSEST, {}),
    TableMetric("stock_phrases", "Outputs with one of the ten most common 4-grams", "%", "lower", {}),
)
_FIT = TableMetric("keyword_fit_to_human", "Keyword fit as a ratio to the human reference", "", CLOSEST, {})
_ABOUT_SENSE = (
    "A low NLL is no merit: a sentence of stock phrases has one below human text. So NLL is compared with that of the "
    "human reference, and a classifier on the judge's states says how easily outputs are told from human sentences."
)
_ALT = "Dot plots, one for each metric: ours filled with 95 % intervals, the paper's hollow."


def _inputs(bench: Bench) -> str:
    return f"{bench.run.num} inputs in each set, {bench.run.steps} steps, seed {bench.run.seed}; 95 % intervals."


def _table1(bench: Bench) -> Result:
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
    fluency = grid(bench, nll(bench, stated["nll"]), TABLE1, KEYWORDS)
    others = (grid(bench, metric, TABLE1, KEYWORDS) for metric in metrics)
    notes = (
        _inputs(bench),
        *judge_notes(bench),
        _ABOUT_SENSE,
        _CGMH,
        "The paper does not say at which level its BLEU is; both are given.",
        "Self-BLEU, Distinct and Entropy change with the number of inputs; the paper has 1,000.",
        "No people were asked here: the human evaluation is the paper's alone.",
    )
    title = "Table 1: sentences from keywords"
    ratios = ratio_to_human(bench, stated["nll"], TABLE1, KEYWORDS)
    return Result("table1", title, (fluency, ratios, *others), notes=notes, alt=_ALT)


def _table2(bench: Bench) -> Result:
    found = grid(bench, nll(bench, paper.TABLE2), TABLE2, KEYWORDS)
    notes = (_inputs(bench), *judge_notes(bench))
    ratios = ratio_to_human(bench, paper.TABLE2, TABLE2, KEYWORDS)
    return Result("table2", "Table 2: ablations", (found, ratios), notes=notes, alt=_ALT)


def _table4(bench: Bench) -> Result:
    stated = paper.TABLE4
    metrics = (
        TableMetric("bleu4_corpus", "BLEU-4, corpus level", "%", "higher", stated["bleu4"]),
        TableMetric("bleu4_corpus_no_bp", "BLEU-4 without brevity penalty", "%", "higher", stated["bleu4_no_bp"]),
        TableMetric("coverage", "Outputs with all given words", "%", "higher", {}),
        TableMetric("length", "Length", "words", "", {}),
        *_SENSE,
    )
    fluency = grid(bench, nll(bench, stated["nll"]), TABLE4, INFILLING)
    others = (grid(bench, metric, TABLE4, INFILLING) for metric in metrics)
    notes = (
        _inputs(bench),
        *judge_notes(bench),
        _ABOUT_SENSE,
        "The paper runs 20 iterations and does not say how many words an iteration revises; here a step revises one. "
        "Rows of 50 steps are of the same chains.",
        "The Template row needs no model: how far it is from the paper's shows how far the test sets differ, and with "
        "them BLEU. A blank counts as a word in it.",
    )
    title = "Table 4: text infilling"
    ratios = ratio_to_human(bench, stated["nll"], TABLE4, INFILLING)
    return Result("table4", title, (fluency, ratios, *others), notes=notes, alt=_ALT)


def _table6(bench: Bench) -> Result:
    metrics = (
        TableMetric("repetition_any_content", "Any clause, content words", "%", "lower", paper.TABLE6),
        TableMetric("repetition_any", "Any clause, all words", "%", "lower", paper.TABLE6),
        TableMetric("repetition_unigram", "A word more than three times", "%", "lower", {}),
        TableMetric("repetition_bigram", "A bigram more than twice", "%", "lower", {}),
        TableMetric("repetition_trigram", "A trigram more than once", "%", "lower", {}),
    )
    notes = (
        _inputs(bench),
        "CGMH is L-MCMC w/ deletion here.",
        'The rule to the letter ("all words") counts commas and articles and does not give the paper\'s human row; '
        '"content words" passes over n-grams without a content word.',
    )
    grids = tuple(grid(bench, metric, TABLE6, KEYWORDS) for metric in metrics)
    return Result("table6", "Table 6: sentences that repeat themselves", grids, notes=notes, alt=_ALT)


EXPERIMENTS = (
    Experiment("table1", all_pairs(TABLE1, KEYWORDS), _table1, texts_to_read, dots),
    Experiment("table2", all_pairs(TABLE2, KEYWORDS), _table2, texts_to_score, dots),
    Experiment("table4", all_pairs(TABLE4, INFILLING), _table4, texts_to_read, dots),
    Experiment("table6", all_pairs(TABLE6, KEYWORDS), _table6, nothing, dots),
)
