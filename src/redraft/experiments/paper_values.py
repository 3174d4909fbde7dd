"""Values from the paper and its authors' logs, as data. Rows have the names of the paper; a dash means no value."""

import re
from collections.abc import Mapping

RowValues = tuple[float | None, ...]
PaperValues = Mapping[str, RowValues]  # by row, one value per column

STEPS = 200  # of every chain in the keyword task, unless a row says otherwise
PASSES = 20  # "iterations" of infilling, if one is a pass over the missing words
HUMAN_NLL = 4.022  # of the human references by GPT-2, stated only for the infilling task


def parse(block: str) -> PaperValues:
    """Parse rows: a name and its values, separated by two or more spaces, without percent signs."""
    rows = (re.split(r"\s{2,}", line.strip()) for line in block.strip().split("\n"))
    return {name: tuple(None if value == "-" else float(value) for value in values) for name, *values in rows}


TABLE1: Mapping[str, PaperValues] = {
    "nll": parse("""
        sep-B/F                   4.432  -      -      -
        asyn-B/F                  4.304  -      -      -
        GBS                       3.985  4.163  4.178  4.209
        CGMH (200)                5.079  5.103  5.227  5.246
        L-MCMC w/ deletion (200)  4.923  4.775  4.856  4.874
        L-MCMC (200)              4.549  4.564  4.617  4.672
        L-MCMC-C (50)             4.425  4.389  4.491  4.487
        L-MCMC-C (200)            3.762  3.773  3.819  3.904
        X-MCMC (200)              4.225  4.319  4.427  4.463
        X-MCMC-C (60)             4.152  4.259  4.398  4.490
        X-MCMC-C (200)            3.532  3.683  3.779  3.879
    """),
    "bleu2": parse("""
        sep-B/F                   7.1  -    -     -
        asyn-B/F                  7.1  -    -     -
        GBS                       6.6  9.8  12.8  16.0
        CGMH (200)                1.3  3.9  7.3   11.5
        L-MCMC w/ deletion (200)  1.0  3.9  7.7   12.5
        L-MCMC (200)              2.5  5.9  10.3  14.4
        L-MCMC-C (50)             1.6  4.8  8.9   14.2
        L-MCMC-C (200)            3.7  7.5  12.4  16.7
        X-MCMC (200)              1.7  4.5  8.3   12.4
        X-MCMC-C (60)             1.9  4.7  8.3   12.1
        X-MCMC-C (200)            2.9  6.1  10.0  14.4
    """),
    "people": parse("""
        sep-B/F                   0.333  -      -      -
        asyn-B/F                  0.369  -      -      -
        GBS                       0.495  0.384  0.445  0.421
        CGMH (200)                0.345  0.344  0.400  0.408
        L-MCMC (200)              0.433  0.459  0.469  0.429
        L-MCMC-C (200)            0.575  0.520  0.573  0.557
        X-MCMC (200)              0.471  0.516  0.487  0.516
        X-MCMC-C (200)            0.681  0.589  0.621  0.655
    """),
    "self_bleu4": parse("""
        Human Reference           8.2   9.0   9.0   9.0
        sep-B/F                   81.7  -     -     -
        asyn-B/F                  80.2  -     -     -
        GBS                       84.2  80.6  73.4  67.9
        CGMH (200)                19.8  14.9  11.7  11.4
        L-MCMC w/ deletion (200)  14.4  13.8  10.5  9.2
        L-MCMC (200)              20.1  16.5  13.8  13.3
        L-MCMC-C (50)             20.2  16.3  14.2  12.6
        L-MCMC-C (200)            33.0  28.3  24.1  21.9
        X-MCMC (200)              11.3  9.1   8.3   7.1
        X-MCMC-C (60)             12.6  11.1  8.1   8.5
        X-MCMC-C (200)            19.0  15.1  13.6  12.1
    """),
    "distinct2": parse("""
        Human Reference           81.5  80.7  80.7  80.7
        sep-B/F                   19.5  -     -     -
        asyn-B/F                  20.3  -     -     -
        GBS                       16.2  20.9  27.0  31.8
        CGMH (200)                65.6  68.0  69.9  71.0
        L-MCMC w/ deletion (200)  74.1  74.8  76.2  77.0
        L-MCMC (200)              64.4  67.3  68.6  68.6
        L-MCMC-C (50)             68.6  70.8  71.1  73.1
        L-MCMC-C (200)            54.1  57.5  60.1  62.3
        X-MCMC (200)              77.5  78.9  79.4  79.3
        X-MCMC-C (60)             75.5  77.3  79.3  80.0
        X-MCMC-C (200)            69.6  72.6  74.0  74.2
    """),
    "entropy4": parse("""
        Human Reference           9.882  9.875  9.875  9.875
        sep-B/F                   7.664  -      -      -
        asyn-B/F                  7.924  -      -      -
        GBS                       6.741  7.555  8.117  8.567
        CGMH (200)                8.605  8.871  9.124  9.301
        L-MCMC w/ deletion (200)  8.309  8.676  8.961  9.172
        L-MCMC (200)              9.014  9.260  9.497  9.669
        L-MCMC-C (50)             8.591  8.901  9.144  9.339
        L-MCMC-C (200)            9.219  9.415  9.577  9.685
        X-MCMC (200)              8.832  9.141  9.391  9.559
        X-MCMC-C (60)             8.781  9.018  9.202  9.372
        X-MCMC-C (200)            9.097  9.279  9.453  9.577
    """),
}

TABLE2: PaperValues = parse("""
    L-MCMC-C               3.762  3.773  3.819  3.904
    - prior for actions    3.850  3.861  3.893  3.932
    - prior for positions  4.498  4.513  4.605  4.646
    - size of dataset      3.921  3.950  4.015  4.030
    -- random              3.954  3.982  4.024  4.066
    -- masked LM           4.063  4.108  4.167  4.189
    L-MCMC                 4.549  4.564  4.617  4.672
""")

TABLE4: Mapping[str, PaperValues] = {
    "nll": parse("""
        Human Reference    4.022  4.022  4.022  4.022  4.022  4.022
        FLM                4.417  4.479  4.223  4.434  4.727  4.543
        BLM                4.453  4.460  4.130  4.545  4.860  4.620
        F+B LM             4.288  4.355  4.130  4.309  4.605  4.457
        Bayesian MCMC      4.188  4.268  4.242  4.164  4.310  4.349
        TIGS (strategy 1)  4.985  5.515  5.865  5.183  5.911  6.268
        TIGS (strategy 2)  4.416  4.341  4.042  4.638  5.018  4.852
        L-MCMC             4.216  4.313  4.303  4.178  4.367  4.436
        L-MCMC-C           4.146  4.053  3.796  4.135  4.199  4.106
    """),
    "bleu4": parse("""
        Human Reference    100   100   100   100   100   100
        Template           65.1  36.5  9.0   49.5  16.1  2.6
        FLM                68.4  39.5  12.2  66.4  31.9  10.5
        BLM                68.3  39.6  12.8  65.9  31.2  9.9
        F+B LM             69.1  40.0  12.5  68.3  33.4  10.9
        Bayesian MCMC      68.7  39.6  12.3  69.7  35.4  10.5
        TIGS (strategy 1)  65.8  37.2  9.9   56.1  21.8  4.3
        TIGS (strategy 2)  67.9  39.7  12.3  62.9  28.5  7.9
        L-MCMC             68.5  39.7  12.5  69.0  34.4  10.1
        L-MCMC-C           69.0  40.3  12.9  70.0  36.1  10.5
    """),
    "bleu4_no_bp": parse("L-MCMC-C  70.9  43.1  14.6  70.9  37.6  11.8"),
}

TABLE5: PaperValues = parse("""
    LSTM-based     4.272  4.448
    XLNet-based    3.076  3.071
    GPT-2 (small)  3.980  -
""")

TABLE6: PaperValues = parse("""
    Human Reference  3.4   4.3   4.3   4.3
    sep-B/F          32.4  -     -     -
    asyn-B/F         39.6  -     -     -
    GBS              21.2  24.8  21.6  26.1
    CGMH             0.5   0.2   0.2   0.2
    L-MCMC           0.1   0     0     0.2
    L-MCMC-C         0.3   0.7   0.4   0.2
    X-MCMC           0     0     0     0
    X-MCMC-C         0.1   0.2   0.2   0
""")

# Precision, recall and F1 on the masked-LM, the random and the whole validation set.
TABLE7: PaperValues = parse("""
    Copy           0.978  0.993  0.986  0.989  0.996  0.993  0.980  0.994  0.987
    Replacement    0.772  0.462  0.578  0.872  0.801  0.835  0.795  0.519  0.628
    Insertion      0.951  0.893  0.921  0.947  0.894  0.920  0.951  0.893  0.921
    Deletion       0.809  0.684  0.741  0.875  0.860  0.868  0.821  0.714  0.764
    Macro-average  0.878  0.758  0.807  0.921  0.888  0.904  0.887  0.780  0.825
""")

# Percent accepted, k = 4, from the authors' logs of ten inputs: the paper shows acceptance rates only as curves.
LOGGED_ACCEPTANCE: Mapping[str, Mapping[str, float]] = {
    "L-MCMC": {"replace": 56.0, "insert": 16.2},
    "L-MCMC-C": {"replace": 77.1, "insert": 38.8},
    "X-MCMC": {"replace": 43.7, "insert": 14.8},
    "X-MCMC-C": {"replace": 63.5, "insert": 27.3},
}
