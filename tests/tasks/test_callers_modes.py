"""torch's modes that a caller has on: a fit and a prediction are the same in them as outside."""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
import torch

from sktransformer import TransformerEmbedder, TransformerRegressor
from sktransformer.testing import SENTENCES, tiny_checkpoint

TEXTS = list(SENTENCES)
TARGETS = np.arange(float(len(TEXTS)))
SHORT: dict[str, Any] = {"batch_size": 4, "learning_rate": 3e-3, "random_state": 0}
MODES: dict[str, Any] = {
    "autocast to bfloat16": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast to float16": lambda: torch.autocast("cpu", dtype=torch.float16),
    "inference mode": torch.inference_mode,
    "no gradients": torch.no_grad,
}


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> AbstractContextManager[Any]:
    made: AbstractContextManager[Any] = MODES[request.param]()
    return made


@pytest.mark.parametrize("onednn", [True, False])  # off: what chips without our kernels run
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_fit_is_the_same(
    mode: AbstractContextManager[Any], precision: str, onednn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fitted() -> TransformerRegressor:
        regressor = TransformerRegressor(tiny_checkpoint("bert"), precision=precision, max_epochs=5, **SHORT)
        return regressor.fit(TEXTS, TARGETS)

    monkeypatch.setattr(torch.backends.mkldnn, "enabled", onednn)
    plain = fitted()
    with mode:
        inside = fitted()
        predicted = inside.predict(TEXTS)
    np.testing.assert_array_equal(inside.history_["train_loss"], plain.history_["train_loss"])
    np.testing.assert_array_equal(predicted, plain.predict(TEXTS))
    np.testing.assert_array_equal(inside.predict(TEXTS), predicted)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_contrastive_fit_is_the_same(mode: AbstractContextManager[Any], precision: str) -> None:
    def fitted() -> TransformerEmbedder:
        settings: dict[str, Any] = {**SHORT, "fine_tune": "labels", "token_budget": 16}
        embedder = TransformerEmbedder(tiny_checkpoint("camembert"), precision=precision, **settings)
        return embedder.fit(TEXTS, TARGETS.astype(int) % 2)

    plain = fitted().transform(TEXTS)
    with mode:
        inside = fitted()
    np.testing.assert_array_equal(inside.transform(TEXTS), plain)


def test_a_cache_is_not_given_a_callers_precision(tmp_path: Any) -> None:
    def frozen(**parameters: Any) -> TransformerEmbedder:
        return TransformerEmbedder(tiny_checkpoint("camembert"), precision="float32", **parameters).fit(
            TEXTS[:1]
        )

    kept = frozen(memory=tmp_path)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = kept.transform(TEXTS)
    np.testing.assert_array_equal(first, frozen().transform(TEXTS))
    np.testing.assert_array_equal(kept.transform(TEXTS), first)


def test_what_was_loaded_in_inference_mode_can_be_trained_on() -> None:
    with torch.inference_mode():
        adopted = TransformerEmbedder.from_pretrained(tiny_checkpoint("bert"))
    assert not any(parameter.is_inference() for parameter in adopted.model_.parameters())
