"""Labels as hypotheses about a text, judged by a model of natural language inference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..._engine.errors import WrongTaskError
from ..._engine.text.documents import Documents
from ..._engine.text.encoding import TextEncoder
from .tokens import ROOM

# "entailment", "ENTAILMENT", "entail", "implication" in French checkpoints; not "not_entailment", "non-entailment"
_ENTAILS = re.compile(r"^(entail\w*|implication)$", re.IGNORECASE)


def judges(config: Any) -> bool:
    """Whether a checkpoint's config says that it has a trained head of classes."""
    return any(
        str(name).endswith("ForSequenceClassification")
        for name in getattr(config, "architectures", None) or ()
    )


def entailment_column(config: Any, model: Any) -> int:
    """Return which output of the head says that a text entails the hypothesis.

    Raises
    ------
    WrongTaskError
        When none is named so.
    """
    names = {int(i): str(name) for i, name in (config.id2label or {}).items()}
    found = [i for i, name in names.items() if _ENTAILS.match(name.strip())]
    if len(found) != 1:
        raise WrongTaskError(
            f'method="entailment" needs a checkpoint of natural language inference, with one class called '
            f"entailment; {model} has {sorted(names.values())}."
        )
    return found[0]


def require_short(encoder: TextEncoder, hypotheses: Sequence[str], limit: int) -> None:
    """Raise when a hypothesis leaves no room for a document: it would be cut, and ask about something else."""
    lengths = list(map(len, encoder.tokenize(Documents(list(hypotheses)))[0]))
    longest = max(range(len(lengths)), key=lengths.__getitem__)
    if lengths[longest] + encoder.pair.n_special + ROOM > limit:
        raise ValueError(
            f"the hypothesis {hypotheses[longest]!r:.60} has {lengths[longest]} tokens, which leaves no room for a "
            f"document among the {limit} that max_length and the model allow; shorten the labels or "
            f"hypothesis_template."
        )
