"""Load causal models: models that were pulled, and everything that transformers loads."""

from collections.abc import Sequence

import torch

from redraft.models.causal import hub, llama
from redraft.models.causal.line import TextTokenizer
from redraft.models.causal.network import CausalNetwork, TransformersNetwork
from redraft.models.causal.reader import CausalReader
from redraft.models.checkpoints import fingerprint, local_path
from redraft.models.precision import compute_dtype
from redraft.models.pull import SOURCES, pulled


def load_causal(
    location: str, *, context: str = "", words: Sequence[str] = (), dtype: torch.dtype | None = None
) -> CausalReader:
    """Load a reader. ``location`` names a pulled model, a hub model, a folder or a ``.gguf`` file.

    Without a ``dtype`` the model computes in the fastest precision.
    """
    if source := SOURCES.get(location):
        network, tokenizer = _load(str(pulled(location)), dtype)
        return CausalReader(location, network, tokenizer, context=context, lead=source.lead, words=words)
    network, tokenizer = _load(location, dtype)
    path = local_path(location)
    name = f"{location}@{fingerprint(path)}" if path.exists() else location
    return CausalReader(name, network, tokenizer, context=context, words=words)


def _load(location: str, dtype: torch.dtype | None) -> tuple[CausalNetwork, TextTokenizer]:
    """Load network and tokenizer, without transformers where that is possible."""
    folder = local_path(location)
    if llama.can_load(folder):
        return llama.load(folder, dtype or compute_dtype())
    tokenizer, model = hub.load(location, dtype)
    return TransformersNetwork(model), tokenizer
