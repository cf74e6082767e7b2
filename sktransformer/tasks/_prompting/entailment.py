"""Labels as hypotheses about a text, judged by a model of natural language inference."""

from __future__ import annotations

import re
from typing import Any

from ..._engine.errors import WrongTaskError

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
