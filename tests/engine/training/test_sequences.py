"""Targets that are texts: their labels, what the decoder reads, and a loss that padding has no share in."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import AutoModelForSeq2SeqLM

from sktransformer._engine.checkpoints.quiet import quiet_transformers
from sktransformer._engine.text.batches import Collator
from sktransformer._engine.text.windows import Encoded
from sktransformer._engine.training.data import TrainingData
from sktransformer._engine.training.sequences import OnSequences, SequenceTargets
from sktransformer._engine.training.steps import SummedLosses, Work
from sktransformer._engine.training.token_losses import NOT_COUNTED
from sktransformer.testing.checkpoints import tiny_checkpoint

CPU = torch.device("cpu")
SOURCES = [[5, 6, 7, 8], [9], [10, 11, 12, 13, 14, 15, 16], [6, 5]]
TARGETS = [[20, 21, 2], [22, 23, 24, 25, 26, 27, 28, 2], [2], [29, 2]]


def encoded() -> Encoded:
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids in SOURCES])]).astype(np.int64)
    ids = np.concatenate(SOURCES).astype(np.int32)
    return Encoded(ids, starts, np.arange(len(SOURCES), dtype=np.int32), len(SOURCES))


def targets() -> SequenceTargets:
    return SequenceTargets.of_rows([np.asarray(ids, dtype=np.int32) for ids in TARGETS])


@pytest.fixture(scope="module", params=["t5", "bart", "marian"])
def model(request):
    with quiet_transformers():
        return AutoModelForSeq2SeqLM.from_pretrained(tiny_checkpoint(request.param)).eval()


def work(model, token_budget: int, objective: OnSequences) -> tuple[Work, TrainingData]:
    data = TrainingData(encoded(), targets(), torch.ones(len(SOURCES)), more=targets().lengths)
    collator = Collator("padded", 0, 0, CPU)
    return Work(model, objective, data, collator, token_budget, torch.float32), data


def by_hand(model, begin: int, source: list[int], target: list[int], smoothing: float = 0.0) -> torch.Tensor:
    logits = model(
        input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[begin, *target[:-1]]])
    ).logits[0]
    return F.cross_entropy(logits, torch.tensor(target), label_smoothing=smoothing)


def test_labels_end_where_their_target_does():
    labels = targets().of(encoded(), np.array([3, 0]))
    assert labels.tolist() == [[29, 2, NOT_COUNTED], [20, 21, 2]]
    assert targets().of(encoded(), np.array([2])).tolist() == [[2]]


def test_the_decoder_reads_one_start_and_then_the_target():
    labels = torch.tensor([[20, 21, 2], [29, 2, NOT_COUNTED]])
    assert OnSequences((7,), 0).decoder_input(labels).tolist() == [[7, 20, 21], [7, 29, 2]]
    assert OnSequences((7, 8), 0).decoder_input(labels).tolist() == [[7, 8, 20, 21], [7, 8, 29, 2]]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_a_loss_is_the_mean_over_a_targets_tokens_whoever_stands_beside_it(model, smoothing):
    objective = OnSequences((3,), 0, smoothing)
    job, data = work(model, 1000, objective)
    together = np.arange(len(SOURCES))
    with torch.no_grad():
        losses = objective(model, job.collator.batch(data.encoded, together), data.targets_of(together))
        for i, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            assert float(losses[i]) == pytest.approx(
                float(by_hand(model, 3, source, target, smoothing)), abs=1e-5
            )


def test_a_longer_beginning_has_no_share_in_the_loss(model):
    job, data = work(model, 1000, OnSequences((3, 30), 0))
    with torch.no_grad():
        loss = job.objective(
            model, job.collator.batch(data.encoded, np.array([0])), data.targets_of(np.array([0]))
        )
        logits = model(
            input_ids=torch.tensor([SOURCES[0]]), decoder_input_ids=torch.tensor([[3, 30, *TARGETS[0][:-1]]])
        ).logits[0, 1:]
    assert float(loss) == pytest.approx(float(F.cross_entropy(logits, torch.tensor(TARGETS[0]))), abs=1e-5)


def test_micro_batches_count_both_sides_and_change_no_gradient(model):
    gradients = []
    for budget in (1000, 12):
        model.zero_grad(set_to_none=True)
        job, data = work(model, budget, OnSequences((3,), 0))
        SummedLosses()(job, np.arange(len(SOURCES)))
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert data.costs.tolist() == [7, 9, 8, 4]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    model.zero_grad(set_to_none=True)
