"""The tables and figures of the paper, run again: our figures beside the published ones."""
