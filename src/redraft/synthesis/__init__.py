"""Sentences that were spoilt on purpose, labelled with what would mend them: the classifier's training data."""
