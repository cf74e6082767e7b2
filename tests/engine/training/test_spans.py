"""The loss of spans against the formula, worked out token by token."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sktransformer._engine.inference.spans import read_span_logits
from sktransformer._engine.text.batches import Collator
from sktransformer._engine.text.windows import Encoded
from sktransformer._engine.training.spans import SpanLoss

LENGTHS = (5, 3, 6)
TARGETS = torch.tensor([[2, 3, 2, 4], [0, 0, 1, 1], [5, 5, 3, 6]])


def batch(layout):
    encoded = Encoded(
        np.arange(1, 15, dtype=np.int32), np.cumsum((0, *LENGTHS)), np.arange(3, dtype=np.int32), 3
    )
    collator = Collator(layout, pad_token_id=0, first_position=0, device=torch.device("cpu"))
    return collator.batch(encoded, np.arange(3))


class Model:
    """Logits that are a table of the tokens' ids."""

    def __init__(self):
        self.table = torch.randn(15, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)

    def __call__(self, input_ids, **kwargs):
        logits = self.table[input_ids]
        return SimpleNamespace(start_logits=logits[..., 0], end_logits=logits[..., 1])


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_loss_is_that_of_the_formula(layout):
    model = Model()
    losses = SpanLoss()(model, batch(layout), TARGETS)
    logits = dict(enumerate(model.table[1:].detach().split(LENGTHS)))
    for b, (start, end, first, stop) in enumerate(TARGETS.tolist()):
        choices = [0, *range(first, stop)]
        parts = [
            torch.logsumexp(logits[b][choices, side], 0) - logits[b][target, side]
            for side, target in enumerate((start, end))
        ]
        torch.testing.assert_close(losses[b], sum(parts) / 2)
    assert losses[1] == 0  # an empty context can have no answer


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_question_and_padding_get_no_gradient(layout):
    model = Model()
    SpanLoss()(model, batch(layout), TARGETS).sum().backward()
    gradient = model.table.grad
    assert gradient.isfinite().all()
    moved = gradient.abs().sum(dim=1).nonzero().flatten().tolist()
    # the first window's first and context tokens; the third's
    assert moved == [1, 3, 4, 9, 12, 13, 14]


def test_rows_of_both_layouts_are_the_tokens():
    model = Model()
    for layout in ("packed", "padded"):
        torch.testing.assert_close(read_span_logits(model, batch(layout)), model.table[1:])
