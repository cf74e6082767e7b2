"""One vector a window: by hand, packed and padded alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.checkpoints.structure import first_position
from sktransformer._engine.inference.forward import Passes, forward
from sktransformer._engine.inference.pooling import POOLINGS, cls, largest, last, mean, reader
from sktransformer._engine.text.batches import Batch, Collator, Layout
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut, Encoded
from sktransformer.testing.checkpoints import ENCODERS, SENTENCES

Loader = Callable[..., Checkpoint]
CPU = torch.device("cpu")
LENGTHS = [2, 3, 1]


def batch(layout: Layout) -> Batch:
    starts = np.cumsum([0, *LENGTHS])
    encoded = Encoded(np.arange(6, dtype=np.int32), starts, np.arange(3, dtype=np.int32), 3)
    return Collator(layout, 0, 0, CPU).batch(encoded, np.arange(3))


# hidden states of the three windows, two wide
WINDOWS = [
    torch.tensor([[1.0, 10.0], [3.0, 30.0]]),
    torch.tensor([[2.0, 0.0], [4.0, 7.0], [9.0, -1.0]]),
    torch.tensor([[7.0, 8.0]]),
]
MEANS = [[2.0, 20.0], [5.0, 2.0], [7.0, 8.0]]
FIRSTS = [[1.0, 10.0], [2.0, 0.0], [7.0, 8.0]]
LARGEST = [[3.0, 30.0], [9.0, 7.0], [7.0, 8.0]]
LASTS = [[3.0, 30.0], [9.0, -1.0], [7.0, 8.0]]


def states(layout: Layout) -> torch.Tensor:
    """Return the hidden states as the model gives them; what stands at padding is large, so that it would show."""
    if layout == "packed":
        return torch.cat(WINDOWS)[None]
    return torch.stack([torch.cat([w, torch.full((3 - len(w), 2), 1e6)]) for w in WINDOWS])


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_by_hand(layout: Layout) -> None:
    assert mean(states(layout), batch(layout)).tolist() == MEANS
    assert cls(states(layout), batch(layout)).tolist() == FIRSTS
    assert largest(states(layout), batch(layout)).tolist() == LARGEST
    assert last(states(layout), batch(layout)).tolist() == LASTS


def test_the_mean_of_a_batch_without_padding() -> None:
    encoded = Encoded(np.arange(1, 5, dtype=np.int32), np.array([0, 2, 4]), np.arange(2, dtype=np.int32), 2)
    whole = Collator("padded", 0, 0, CPU).batch(encoded, np.arange(2))
    assert whole.attention_mask is None
    hidden = torch.tensor([[[1.0], [3.0]], [[5.0], [6.0]]])
    assert mean(hidden, whole).tolist() == [[2.0], [5.5]]
    assert largest(hidden, whole).tolist() == last(hidden, whole).tolist() == [[3.0], [6.0]]


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_means_are_summed_in_float32(layout: Layout) -> None:
    """In bfloat16 256 + 1 is 256: the sum of many hidden states would stand still."""
    n = 1000
    encoded = Encoded(
        np.ones(n + 1, dtype=np.int32), np.array([0, n, n + 1]), np.arange(2, dtype=np.int32), 2
    )
    made = Collator(layout, 0, 0, CPU).batch(encoded, np.arange(2))
    size = (1, n + 1, 1) if layout == "packed" else (2, n, 1)
    vectors = mean(torch.ones(size, dtype=torch.bfloat16), made)
    assert vectors.dtype is torch.float32
    assert vectors.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_gradients_reach_real_tokens_alone(layout: Layout) -> None:
    hidden = states(layout).requires_grad_()
    mean(hidden, batch(layout)).sum().backward()
    assert hidden.grad is not None
    expected = torch.tensor([1 / 2] * 2 + [1 / 3] * 3 + [1.0])[:, None].expand(-1, 2)
    gradient = (
        hidden.grad
        if layout == "packed"
        else hidden.grad[torch.tensor([[1, 1, 0], [1, 1, 1], [1, 0, 0]]).bool()]
    )
    found = gradient.reshape(6, 2)
    torch.testing.assert_close(found, expected)
    assert hidden.grad.sum().item() == pytest.approx(6.0)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_models_are_pooled_over_their_real_tokens(name: str, pooling: str, checkpoint: Loader) -> None:
    loaded = checkpoint(name, "encoder")
    config = loaded.model.config
    encoded = TextEncoder(loaded.tokenizer).encode(Documents(list(SENTENCES)), Cut(64))
    expected = []
    for text in SENTENCES:
        ids = loaded.tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            output = loaded.model(input_ids=ids, output_hidden_states=True)
        hidden, layers = output.last_hidden_state[0], output.hidden_states
        one = {
            "mean": hidden.mean(dim=0),
            "cls": hidden[0],
            "max": hidden.amax(dim=0),
            "last": hidden[-1],
            "mean_last": (layers[-1] + layers[-2])[0].mean(dim=0) / 2,
        }
        expected.append(one[pooling].numpy())
    layouts: list[Layout] = ["packed", "padded"] if loaded.packable else ["padded"]
    for layout in layouts:
        collator = Collator(
            layout,
            loaded.tokenizer.pad_token_id,
            first_position(config),
            CPU,
            getattr(config, "type_vocab_size", 0) > 1,
        )
        found = forward(Passes(loaded.model, collator, 50, torch.float32), encoded, reader(pooling, 2))
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
