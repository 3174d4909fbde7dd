"""Metrics with confidence intervals and signatures, NLL of held-out text, the judge of fluency, and test sets."""
