"""Checks that any estimator of texts can be put through, and tiny offline checkpoints to test with."""

from __future__ import annotations

from .checkpoints import CAUSAL, ENCODERS, SENTENCES, SEQ2SEQ, TINY_NAMES, tiny_checkpoint
from .contract import Sample, check_text_estimator, guarantees, text_estimator_checks
from .discovery import all_estimators

__all__ = [
    "CAUSAL",
    "ENCODERS",
    "SENTENCES",
    "SEQ2SEQ",
    "TINY_NAMES",
    "Sample",
    "all_estimators",
    "check_text_estimator",
    "guarantees",
    "text_estimator_checks",
    "tiny_checkpoint",
]
