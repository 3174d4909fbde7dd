"""The tables and figures of the paper, reproduced: our values beside the published ones."""
