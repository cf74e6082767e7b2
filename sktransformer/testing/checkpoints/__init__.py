"""Tiny random checkpoints of many architectures, built offline in a fraction of a second each.

Each is an ordinary folder (configuration, safetensors, a tokenizer trained on a few sentences in French and
English) that Transformers' Auto classes load, between 0.1 and 0.7 MB. They make tests of everything around a
model fast and independent of the network; their predictions mean nothing.
"""

from __future__ import annotations

from ._build import CAUSAL, ENCODERS, SEQ2SEQ, TINY_NAMES, tiny_checkpoint
from ._corpus import SENTENCES

__all__ = ["CAUSAL", "ENCODERS", "SENTENCES", "SEQ2SEQ", "TINY_NAMES", "tiny_checkpoint"]
