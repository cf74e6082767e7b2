"""How a run trains: the same result however the work is cut, rates, clipping, freezing, stopping, going on."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import get_scorer, make_scorer, recall_score
from skorch.callbacks import Callback, EarlyStopping

from sktransformer.tasks._training import held_out
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


@pytest.mark.parametrize("name", ["linear", "cosine", "constant"])
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


SCORERS = {
    "default": (None, make_scorer(recall_score, average="macro")),
    "f1_macro": ("f1_macro", get_scorer("f1_macro")),
    "accuracy": ("accuracy", get_scorer("accuracy")),
    "neg_log_loss": ("neg_log_loss", get_scorer("neg_log_loss")),
    "roc_auc": ("roc_auc", get_scorer("roc_auc")),
    "scorer": (make_scorer(recall_score, pos_label="facture"),) * 2,
    "callable": ((lambda estimator, X, y: -float(estimator.predict_proba(X)[0, 0])),) * 2,
}


@pytest.mark.parametrize("kind", SCORERS)
def test_early_stopping_restores_the_best_epoch(
    classifier: Maker, mails: list[str], labels: list[str], kind: str
) -> None:
    scoring, scorer = SCORERS[kind]
    fitted = classifier(
        early_stopping=True, validation_fraction=0.34, scoring=scoring, n_iter_no_change=2, max_epochs=8
    ).fit(mails, labels)
    scores = fitted.history_.valid_score.to_numpy()
    assert np.isfinite(scores).all()
    assert fitted.best_epoch_ == int(np.flatnonzero(scores == scores.max())[-1]) + 1  # the later of equals
    assert fitted.n_epochs_ == len(scores) == min(8, int(scores.argmax()) + 1 + 2)
    first_best = [bool(score > max(scores[:i], default=-np.inf)) for i, score in enumerate(scores)]
    assert fitted.history_.valid_score_best.tolist() == first_best
    if kind != "default":
        _, held = held_out(np.arange(24) % 2, fitted.classes_, 0.34, 0)
        again = scorer(fitted, [mails[i] for i in held], [labels[i] for i in held])
        assert again == pytest.approx(scores.max(), abs=1e-6)


def test_the_best_epoch_comes_back_whole_with_its_buffers(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    snapshots: list[Weights] = []
    scores = iter([0.1, 0.9, 0.3, 0.2])

    class Snapshots(Callback):
        def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            net.module_.register_buffer("seen", torch.zeros(1))

        def on_batch_end(self, net: Any, **kwargs: Any) -> None:
            net.module_.seen += 1

        def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
            snapshots.append({n: t.clone() for n, t in net.module_.state_dict().items()})

    fitted = quick(
        early_stopping=True,
        max_epochs=4,
        n_iter_no_change=3,
        scoring=lambda estimator, X, y: next(scores),
        callbacks=[Snapshots()],
    ).fit(mails, labels)
    assert fitted.best_epoch_ == 2
    state = fitted.model_.state_dict()
    assert state.keys() == snapshots[1].keys()
    assert all(torch.equal(state[name], snapshots[1][name]) for name in state)
    assert float(state["seen"]) == 6.0  # 22 mails in training, 8 a step
    assert not torch.equal(state["classifier.dense.weight"], snapshots[3]["classifier.dense.weight"])
    assert not fitted.model_.training


def test_skorch_early_stopping_stops(quick: Maker, mails: list[str], labels: list[str]) -> None:
    stop = EarlyStopping(monitor="train_loss", patience=2, threshold=10.0, threshold_mode="abs")
    fitted = quick(max_epochs=9, callbacks=[stop]).fit(mails, labels)
    assert fitted.n_epochs_ == len(fitted.history_) == 3  # the first counts as progress, two more do not
    assert fitted.predict(mails).shape == (24,)


def test_callbacks_are_called_in_order(quick: Maker, mails: list[str], labels: list[str]) -> None:
    seen: list[str] = []

    class Listening(Callback):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            seen.append(f"{self.name} begins")

        def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
            seen.append(f"{self.name} {net.history[-1, 'train_loss']:.3f}")

        def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            seen.append(f"{self.name} ends")

    fitted = quick(callbacks=[Listening("a"), Listening("b")]).fit(mails, labels)
    loss = f"{fitted.history_.train_loss[0]:.3f}"
    assert seen == ["a begins", "b begins", f"a {loss}", f"b {loss}", "a ends", "b ends"]


def test_warm_start_goes_on(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick(warm_start=True, max_epochs=2).fit(mails, labels)
    first = {name: tensor.clone() for name, tensor in fitted.model_.state_dict().items()}
    before = fitted.predict_proba(mails)
    fitted.set_params(learning_rate=0.0).fit(mails, labels)
    np.testing.assert_array_equal(fitted.predict_proba(mails), before)
    assert fitted.history_.epoch.tolist() == [1, 2, 3, 4]
    assert fitted.best_epoch_ == 4
    fitted.set_params(learning_rate=1e-3).fit(mails, labels)
    assert not torch.equal(first["classifier.dense.weight"], fitted.model_.classifier.dense.weight)
    assert len(fitted.history_) == 6
    fresh = fitted.set_params(warm_start=False).fit(mails, labels)
    np.testing.assert_array_equal(fresh.predict_proba(mails), before)
    assert len(fresh.history_) == 2


def test_warm_start_needs_the_same_classes(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick(warm_start=True).fit(mails, labels)
    before = fitted.predict_proba(mails)
    other = [label.replace("livraison", "colis") for label in labels]
    with pytest.raises(
        ValueError, match=r"the first fit, \['facture', 'livraison'\], got \['colis', 'facture'\]"
    ):
        fitted.fit(mails, other)
    np.testing.assert_array_equal(fitted.predict_proba(mails), before)


def test_history_has_a_row_an_epoch(quick: Maker, mails: list[str], labels: list[str]) -> None:
    plain = quick(max_epochs=2).fit(mails, labels).history_
    assert plain.columns.tolist() == ["epoch", "train_loss", "learning_rate", "dur"]
    assert plain.epoch.tolist() == [1, 2]
    assert (plain.dur > 0).all()
    scored = quick(early_stopping=True).fit(mails, labels).history_
    assert scored.columns.tolist() == [
        "epoch", "train_loss", "valid_score", "valid_score_best", "learning_rate", "dur",
    ]  # fmt: skip


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
