"""Models that score, propose or fill.

``base`` defines the interfaces. ``lstm``, ``xlnet`` and ``causal`` are the kinds of models; each has its network, its
reader and its loading and saving. ``batching`` is shared by all readers. ``pack`` and ``pull`` are where models come
from.
"""
