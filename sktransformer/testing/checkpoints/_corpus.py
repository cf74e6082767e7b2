"""The sentences on which the tiny tokenizers are trained."""

from __future__ import annotations

SENTENCES = (
    "the quick brown fox jumps over the lazy dog .",
    "le chat noir est assis sur le tapis rouge .",
    "Bonjour , merci pour votre e-mail , l'été à Montréal est très chaud !",
    "please find attached the report for your review .",
    "this movie was great , I loved it !",
    "ce film était affreux , je l'ai détesté .",
    "où est la gare ? Ça coûte 12 euros .",
)

# Repeated, so that pairs are frequent enough for the trainers to merge them.
CORPUS = SENTENCES * 20
