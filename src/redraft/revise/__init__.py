"""STEP 2 of the paper, revise: with which word, and whether to."""
