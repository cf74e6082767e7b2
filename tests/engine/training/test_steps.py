"""The gradient of a batch that is read twice is that of the whole batch, to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.checkpoints.structure import first_position
from sktransformer._engine.cpu.kernels import CpuKernels
from sktransformer._engine.inference.aggregation import by_document, pooled
from sktransformer._engine.inference.pooling import reader
from sktransformer._engine.text.batches import Collator, Layout, plan
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut
from sktransformer._engine.training.contrastive import InBatchNegatives, SupervisedContrastive
from sktransformer._engine.training.groups import GroupedData
from sktransformer._engine.training.steps import CachedGradients, Work

CPU = torch.device("cpu")
TEXTS = [
    "ce film était great",
    "affreux",
    "I loved this movie",
    "je l'ai détesté , détesté",
    "merci pour le film",
    "this was affreux , the lazy dog",
    "le chat est assis sur le tapis rouge .",
    "ça coûte 12 euros",
] * 2
ROWS = np.array([5, 2, 7, 0, 3, 6])


def work_on(
    loaded: Checkpoint,
    layout: Layout,
    budget: int,
    objective: Any,
    *,
    length: int = 64,
    pairs: bool = False,
) -> Work:
    cut = Cut(length, "chunk", stride=2)
    encoded = TextEncoder(loaded.tokenizer).encode(Documents(TEXTS), cut)
    n = len(TEXTS) // 2 if pairs else len(TEXTS)
    members = np.arange(len(TEXTS)).reshape(-1, n).T
    targets = torch.arange(2 * n).reshape(n, 2) if pairs else torch.arange(n) % 2
    config = loaded.model.config
    collator = Collator(
        layout if loaded.packable else "padded",
        loaded.tokenizer.pad_token_id,
        first_position(config),
        CPU,
        (getattr(config, "type_vocab_size", 0) or 0) > 1,
    )
    data = GroupedData(encoded, members, targets)
    return Work(loaded.model, objective, data, collator, budget, torch.float32)


def whole(work: Work, read: Any, how: str, budget: int) -> tuple[float, dict[str, torch.Tensor]]:
    """Return the loss of the batch in one graph, and its gradients; micro-batches of `budget` in the same order."""
    windows, owners, places = work.data.windows_of(ROWS)
    lengths = work.data.encoded.lengths[windows]
    parts = plan(np.arange(len(windows)), lengths, budget, work.collator.layout)
    rows = torch.cat(
        [read(work.model, work.collator.batch(work.data.encoded, windows[part])) for part in parts]
    )
    in_order = rows[torch.from_numpy(np.argsort(np.concatenate(parts)))]
    documents = [in_order[torch.from_numpy(owners == i)] for i in range(owners.max() + 1)]
    sizes = [torch.from_numpy(lengths[owners == i]).float()[:, None] for i in range(owners.max() + 1)]
    vectors = torch.stack(
        [
            d.amax(dim=0) if how == "max" else (d * s).sum(dim=0) / s.sum()
            for d, s in zip(documents, sizes, strict=True)
        ]
    )
    loss = work.objective(vectors[torch.from_numpy(places)], work.data.targets[torch.from_numpy(ROWS)])
    loss.backward()
    return loss.item(), gradients(work.model)


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert {name for name, g in found.items() if g.any()} == {n for n, g in expected.items() if g.any()}
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-5, atol=2e-6, msg=name)


@pytest.mark.parametrize("name", ["bert", "camembert", "distilbert", "flaubert"])
@pytest.mark.parametrize("layout", ["packed", "padded"])
@pytest.mark.parametrize(("dropout", "budget"), [(0.0, 16), (0.0, 10_000), (0.3, 16), (0.3, 40)])
def test_it_is_the_gradient_of_the_whole_batch(
    name: str, layout: Layout, dropout: float, budget: int, fresh_checkpoint: Callable[..., Checkpoint]
) -> None:
    loaded = fresh_checkpoint(name, "encoder", dropout=dropout, attention_dropout=dropout)
    loaded.model.train()
    work, read = work_on(loaded, layout, budget, SupervisedContrastive(0.1)), reader("mean")
    with torch.random.fork_rng(), CpuKernels():
        torch.manual_seed(3)
        # without dropout one pass over all; with it the same micro-batches, which draw the same masks
        loss, expected = whole(work, read, "length", budget if dropout else 10_000)
        after = torch.get_rng_state()
        torch.manual_seed(3)
        found = CachedGradients(read, "length")(work, ROWS)
        assert torch.equal(torch.get_rng_state(), after)  # the next step draws other masks
    assert found.item() == pytest.approx(loss, abs=1e-5)
    assert not found.requires_grad
    assert_same(gradients(loaded.model), expected)


@pytest.mark.parametrize("how", ["length", "max"])
def test_windows_of_a_document_are_one_vector(how: str, fresh_checkpoint: Callable[..., Checkpoint]) -> None:
    loaded = fresh_checkpoint("bert", "encoder", dropout=0.0, attention_dropout=0.0)
    work = work_on(loaded, "packed", 16, InBatchNegatives(0.1), length=6, pairs=True)
    assert work.data.encoded.n_windows > work.data.encoded.n_documents
    read = reader("cls")
    loss, expected = whole(work, read, how, 10_000)
    assert CachedGradients(read, how)(work, ROWS).item() == pytest.approx(loss, abs=1e-5)
    assert_same(gradients(loaded.model), expected)


@pytest.mark.parametrize("how", ["mean", "max", "length"])
def test_tensors_are_put_together_as_arrays_are(
    how: str, fresh_checkpoint: Callable[..., Checkpoint]
) -> None:
    work = work_on(fresh_checkpoint("bert", "encoder"), "packed", 16, None, length=6)
    encoded = work.data.encoded
    rows = np.random.default_rng(0).normal(size=(encoded.n_windows, 5)).astype(np.float32)
    found = pooled(torch.from_numpy(rows), encoded.document.astype(np.int64), encoded.lengths, how)
    np.testing.assert_allclose(found.numpy(), by_document(rows, encoded, how), atol=1e-6)


def test_memory_is_that_of_one_micro_batch(fresh_checkpoint: Callable[..., Checkpoint]) -> None:
    """No graph of more than `token_budget` tokens is ever alive: none outlives its micro-batch."""
    loaded = fresh_checkpoint("bert", "encoder")
    work = work_on(loaded, "packed", 30, SupervisedContrastive(0.1))
    alive: list[int] = []
    seen: list[tuple[int, bool]] = []

    def read(model: Any, batch: Any) -> torch.Tensor:
        vectors = reader("mean")(model, batch)
        if vectors.requires_grad:
            alive.append(1)
            vectors.register_hook(lambda gradient: alive.clear())
        seen.append((batch.input_ids.numel(), vectors.requires_grad))
        assert len(alive) <= 1
        return vectors

    CachedGradients(read, "length")(work, ROWS)
    assert max(tokens for tokens, _ in seen) <= 30
    half = len(seen) // 2
    assert [graph for _, graph in seen] == [False] * half + [True] * half
