"""Synthetic training data for the classifier: corrupted sentences, each word labelled with the edit that repairs it."""
