"""Weights between those before and after a training."""

import pytest
import torch
from torch import nn

from sktransformer._engine.training.mixing import Mixture


@pytest.fixture
def model() -> nn.Linear:
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0]]))
        layer.bias.fill_(4.0)
    layer.bias.requires_grad_(False)
    return layer


def moved(layer: nn.Linear) -> None:
    with torch.no_grad():
        layer.weight += 8.0
        layer.bias += 8.0


@pytest.mark.parametrize(("share", "weights"), [(0.25, [3.0, 4.0]), (0.5, [5.0, 6.0]), (1.0, [9.0, 10.0])])
def test_trained_weights_are_mixed(model: nn.Linear, share: float, weights: list[float]) -> None:
    mixture = Mixture(model, share)
    moved(model)
    mixture.apply()
    assert model.weight.tolist() == [weights]
    assert model.bias.tolist() == [12.0]  # not trained: left as it is found
    assert model.weight.requires_grad


@pytest.mark.parametrize("fails", [False, True])
def test_scores_are_of_the_mixture(model: nn.Linear, fails: bool) -> None:
    mixture = Mixture(model, 0.5)
    moved(model)

    def score() -> float:
        if fails:
            raise RuntimeError("no score")
        return float(model.weight.detach().sum())

    if fails:
        with pytest.raises(RuntimeError, match="no score"):
            mixture.scored(score)()
    else:
        assert mixture.scored(score)() == 11.0
    assert model.weight.tolist() == [[9.0, 10.0]]  # the training goes on from its own weights
