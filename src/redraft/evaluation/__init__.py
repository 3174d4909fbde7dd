"""Metrics with confidence intervals and signatures, the judge of fluency, and the test sets."""
