"""Causal language models: networks, reader, loading from the hub, and the infiller with its adapter and prompts."""
