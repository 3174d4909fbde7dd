"""STEP 1 of the paper, predict: where to revise, and how."""
