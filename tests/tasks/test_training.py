"""How a run trains: the same result however the work is cut, rates, clipping, freezing, stopping, going on."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from sktransformer.tasks.classification import TransformerClassifier

Maker = Callable[..., TransformerClassifier]
Weights = dict[str, torch.Tensor]
# a random model of one epoch takes every mail for one class, and says so
pytestmark = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


class Recorder(Callback):
    """Writes down what an optimizer step is about to do."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.norms: list[float] = []
        self.gradients: list[Weights] = []
        self.epochs = 0

    def on_grad_computed(self, net: Any, named_parameters: Any, **kwargs: Any) -> None:
        self.rates.append(net.optimizer_.param_groups[0]["lr"])
        gradients = {n: p.grad.clone() for n, p in net.module_.named_parameters() if p.grad is not None}
        self.gradients.append(gradients)
        self.norms.append(math.sqrt(sum(float((g**2).sum()) for g in gradients.values())))

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        self.epochs += 1


def gradients(classifier: TransformerClassifier, mails: list[str], labels: list[str]) -> Weights:
    recorder = Recorder()
    classifier.set_params(callbacks=[recorder], max_grad_norm=None, max_epochs=1, batch_size=len(mails))
    classifier.fit(mails, labels)
    return recorder.gradients[0]


@pytest.mark.parametrize("name", ["bert", "camembert", "electra", "flaubert", "modernbert", "distilbert"])
def test_gradients_of_micro_batches_are_those_of_the_batch(
    quick: Maker, mails: list[str], labels: list[str], padded: Callable[[], None], name: str
) -> None:
    weights = {"class_weight": {"facture": 3.0, "livraison": 0.5}}
    packed = [gradients(quick(name, token_budget=n, **weights), mails, labels) for n in (16, 128, 10**6)]
    padded()
    whole, *cut = [gradients(quick(name, token_budget=n, **weights), mails, labels) for n in (10**6, 16, 128)]
    largest = max(float(g.abs().max()) for g in whole.values())
    assert largest > 1e-3
    for other in (*packed, *cut):
        assert other.keys() == whole.keys()
        for parameter, gradient in whole.items():
            assert float((other[parameter] - gradient).abs().max()) <= 5e-7 * max(1.0, largest), parameter


def test_training_does_not_depend_on_the_cut(
    classifier: Maker, mails: list[str], labels: list[str], padded: Callable[[], None]
) -> None:
    settings = {"max_epochs": 3, "batch_size": 8, "learning_rate": 1e-3}
    fits = [classifier(**settings, token_budget=n).fit(mails, labels) for n in ("auto", 16, 100, 10**6)]
    fits.append(classifier(**settings, gradient_checkpointing=True, token_budget=64).fit(mails, labels))
    padded()
    fits += [classifier(**settings, token_budget=n).fit(mails, labels) for n in (32, 10**6)]
    expected, losses = fits[0].predict_proba(mails), fits[0].history_.train_loss
    for other in fits[1:]:
        np.testing.assert_allclose(other.predict_proba(mails), expected, atol=1e-5)
        np.testing.assert_allclose(other.history_.train_loss, losses, atol=1e-5)


def test_gradient_checkpointing_computes_layers_twice(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    calls = {}
    for on in (False, True):
        counter = LayerCalls()
        fitted = quick(gradient_checkpointing=on, callbacks=[counter]).fit(mails, labels)
        calls[on] = counter.n
        assert not any(getattr(module, "gradient_checkpointing", False) for module in fitted.model_.modules())
    assert calls[True] == 2 * calls[False] > 0


class LayerCalls(Callback):
    """Counts forward passes of the first layer's attention."""

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.n = 0
        layer = net.module_.base_model.encoder.layer[0].attention
        self.hook = layer.register_forward_hook(lambda *args: setattr(self, "n", self.n + 1))

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.hook.remove()


@pytest.mark.parametrize("name", ["linear", "cosine", "constant", "inverse_sqrt"])
@pytest.mark.parametrize("warmup_ratio", [0.0, 0.3])
def test_rates_follow_the_formula(
    quick: Maker, mails: list[str], labels: list[str], name: str, warmup_ratio: float
) -> None:
    recorder = Recorder()
    quick(
        lr_schedule=name,
        warmup_ratio=warmup_ratio,
        learning_rate=2e-4,
        max_epochs=3,
        batch_size=10,
        callbacks=[recorder],
    ).fit(mails, labels)
    n, w = 9, math.ceil(warmup_ratio * 9)  # 24 mails, 10 a step: 3 steps an epoch
    after = {
        "linear": lambda s: 1 - (s - w) / (n - w),
        "cosine": lambda s: 0.5 * (1 + math.cos(math.pi * (s - w) / (n - w))),
        "constant": lambda s: 1.0,
        "inverse_sqrt": lambda s: math.sqrt((w + 1) / (s + 1)),
    }[name]
    expected = [2e-4 * ((s + 1) / (w + 1) if s < w else after(s)) for s in range(n)]
    assert recorder.rates == pytest.approx(expected, rel=1e-6)


def test_history_records_the_rate_of_the_head(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick(layer_decay=0.5, lr_schedule="constant", warmup_ratio=0.0, learning_rate=2e-4).fit(
        mails, labels
    )
    assert fitted.history_.learning_rate.tolist() == [2e-4]


def test_clipping(quick: Maker, mails: list[str], labels: list[str]) -> None:
    clipped, free = Recorder(), Recorder()
    quick(max_grad_norm=1e-3, callbacks=[clipped]).fit(mails, labels)
    quick(max_grad_norm=None, callbacks=[free]).fit(mails, labels)
    assert min(free.norms) > 1e-2
    assert clipped.norms == pytest.approx([1e-3] * 3, rel=1e-2)
    for name, gradient in free.gradients[0].items():  # clipping scales all by one factor
        factor = 1e-3 / free.norms[0]
        torch.testing.assert_close(clipped.gradients[0][name], gradient * factor, rtol=1e-3, atol=1e-9)


def changes(classifier: TransformerClassifier, mails: list[str], labels: list[str]) -> dict[str, float]:
    """Largest change of each parameter in one step without warm-up or decay; Adam's first step is the rate itself."""
    settings = {"batch_size": 24, "warmup_ratio": 0.0, "weight_decay": 0.0, "max_grad_norm": None}
    moved = classifier.set_params(**settings).fit(mails, labels).model_.state_dict()
    still = classifier.set_params(learning_rate=0.0).fit(mails, labels).model_.state_dict()
    return {name: float((moved[name] - still[name]).abs().max()) for name in moved}


def is_changed(name: str) -> bool:
    # a key's bias adds the same number to all scores of a row, so softmax gives it no gradient
    return "key.bias" not in name and "position_ids" not in name and "token_type" not in name


@pytest.mark.parametrize(
    ("what", "frozen"),
    [
        (None, ()),
        ("embeddings", ("roberta.embeddings.",)),
        (0, ("roberta.embeddings.",)),
        (1, ("roberta.embeddings.", "roberta.encoder.layer.0.")),
        (2, ("roberta.",)),
        ("all", ("roberta.",)),
    ],
)
def test_frozen_parameters_stay_and_the_others_move(
    quick: Maker, mails: list[str], labels: list[str], what: Any, frozen: tuple[str, ...]
) -> None:
    moved = changes(quick(freeze=what), mails, labels)
    for name, change in moved.items():
        if name.startswith(frozen):
            assert change == 0.0, name
        elif is_changed(name):
            assert change > 1e-5, name
    assert any(name.startswith("classifier.") for name in moved)


def test_a_frozen_model_is_trainable_afterwards(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick(freeze="all", warm_start=True).fit(mails, labels)
    assert all(parameter.requires_grad for parameter in fitted.model_.parameters())
    before = {n: p.clone() for n, p in fitted.model_.state_dict().items()}
    after = fitted.set_params(freeze=None).fit(mails, labels).model_.state_dict()
    assert not torch.equal(before["roberta.encoder.layer.0.output.dense.weight"],
                           after["roberta.encoder.layer.0.output.dense.weight"])  # fmt: skip


def test_layers_learn_at_decaying_rates(quick: Maker, mails: list[str], labels: list[str]) -> None:
    moved = changes(quick(layer_decay=0.1), mails, labels)
    rate = 1e-3
    for name, factor in {
        "classifier.dense.weight": 1.0,
        "roberta.encoder.layer.1.output.dense.weight": 0.1,
        "roberta.encoder.layer.0.output.dense.weight": 0.01,
        "roberta.embeddings.word_embeddings.weight": 0.001,
    }.items():
        assert moved[name] == pytest.approx(rate * factor, rel=0.02), name


def test_weight_decay_leaves_biases_and_norms(quick: Maker, mails: list[str], labels: list[str]) -> None:
    groups: list[dict[str, Any]] = []

    class Groups(Callback):
        def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            by_id = {id(p): n for n, p in net.module_.named_parameters()}
            groups.extend(
                {"names": [by_id[id(p)] for p in group["params"]], "decay": group["weight_decay"]}
                for group in net.optimizer_.param_groups
            )

    quick(weight_decay=0.25, callbacks=[Groups()]).fit(mails, labels)
    decayed = {name for group in groups if group["decay"] == 0.25 for name in group["names"]}
    exempt = {name for group in groups if group["decay"] == 0.0 for name in group["names"]}
    assert len(decayed) + len(exempt) == sum(len(group["names"]) for group in groups)
    assert all(name.endswith("bias") or "LayerNorm" in name for name in exempt)
    assert not any(name.endswith("bias") or "LayerNorm" in name for name in decayed)


def test_bfloat16_on_a_cpu_is_close(classifier: Maker, mails: list[str], labels: list[str]) -> None:
    full = classifier(max_epochs=4, precision="float32").fit(mails, labels)
    half = classifier(max_epochs=4, precision="bfloat16").fit(mails, labels)
    assert {parameter.dtype for parameter in half.model_.parameters()} == {torch.float32}
    assert half.predict_proba(mails).dtype == np.float32
    assert half.history_.train_loss[0] == pytest.approx(full.history_.train_loss[0], rel=1e-2)
    exact = full.predict_proba(mails)
    rounded = full.set_params(precision="bfloat16").predict_proba(mails)
    np.testing.assert_allclose(rounded, exact, atol=2e-2)
    assert np.abs(rounded - exact).max() > 0


def test_dropout_is_at_work_and_seeded(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fits = {
        (dropout, seed): quick(dropout=dropout, random_state=seed).fit(mails, labels).history_.train_loss[0]
        for dropout, seed in [(0.0, 0), (0.5, 0), (0.5, 1)]
    }
    again = quick(dropout=0.5, random_state=0).fit(mails, labels)
    assert again.history_.train_loss[0] == fits[0.5, 0]
    assert len(set(fits.values())) == 3
    np.testing.assert_array_equal(again.predict_proba(mails), again.predict_proba(mails))


def test_progress_is_shown_on_stderr_when_asked(
    quick: Maker, mails: list[str], labels: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    quick(verbose=1, max_epochs=2).fit(mails, labels)
    out, err = capfd.readouterr()
    assert out == ""
    assert "epoch 2/2" in err
    assert "6/6" in err  # steps
    assert "loss=" in err
    quick(verbose=0).fit(mails, labels)
    assert capfd.readouterr() == ("", "")
