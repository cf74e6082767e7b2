"""``mixing``: an embedder between its checkpoint and what fine-tuning makes of it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sktransformer import TransformerEmbedder
from sktransformer.testing import tiny_checkpoint

SHORT: dict[str, Any] = {
    "fine_tune": "labels",
    "max_epochs": 2,
    "learning_rate": 1e-3,
    "batch_size": 8,
    "random_state": 0,
    "precision": "float32",
}


def embedder(**parameters: Any) -> TransformerEmbedder:
    return TransformerEmbedder(tiny_checkpoint("bert"), **{**SHORT, **parameters})


def weights(fitted: TransformerEmbedder) -> dict[str, npt.NDArray[np.float32]]:
    return {name: tensor.detach().numpy().copy() for name, tensor in fitted.model_.named_parameters()}


def test_half_way_between_before_and_after(mails: list[str], labels: list[str]) -> None:
    before = weights(embedder(fine_tune=None).fit(mails))
    after = weights(embedder().fit(mails, labels))
    half = weights(embedder(mixing=0.5).fit(mails, labels))
    for name, tensor in half.items():
        np.testing.assert_allclose(tensor, (before[name] + after[name]) / 2, atol=1e-7)
    assert (
        np.abs(
            after["encoder.layer.1.output.dense.weight"] - half["encoder.layer.1.output.dense.weight"]
        ).max()
        > 1e-4
    )


def test_frozen_layers_are_those_of_the_checkpoint(mails: list[str], labels: list[str]) -> None:
    before = weights(embedder(fine_tune=None).fit(mails))
    half = weights(embedder(mixing=0.3, freeze=1).fit(mails, labels))
    moved = {name for name in half if not np.array_equal(half[name], before[name])}
    assert moved
    assert not [name for name in moved if name.startswith(("embeddings", "encoder.layer.0"))]


def test_a_warm_start_mixes_with_the_earlier_fit(mails: list[str], labels: list[str]) -> None:
    first = weights(embedder().fit(mails, labels))
    whole, half = (
        weights(embedder(warm_start=True).fit(mails, labels).set_params(mixing=share).fit(mails, labels))
        for share in (1.0, 0.5)
    )
    for name, tensor in half.items():
        np.testing.assert_allclose(tensor, (first[name] + whole[name]) / 2, atol=1e-7)


def test_epochs_are_scored_as_they_would_be_kept(mails: list[str], labels: list[str]) -> None:
    seen: list[npt.NDArray[Any]] = []

    def score(candidate: TransformerEmbedder, X: Any, y: Any) -> float:
        seen.append(candidate.transform(mails[:4]))
        return (0.0, 1.0)[len(seen) - 1]

    options: dict[str, Any] = {"early_stopping": True, "scoring": score, "validation_fraction": 0.4}
    fitted = embedder(mixing=0.5, **options).fit(mails, labels)
    np.testing.assert_allclose(seen[1], fitted.transform(mails[:4]), atol=1e-6)
    # the score of the first epoch did not disturb the second
    seen.clear()
    whole = weights(embedder(**options).fit(mails, labels))
    before = weights(embedder(fine_tune=None).fit(mails))
    for name, tensor in weights(fitted).items():
        np.testing.assert_allclose(tensor, (before[name] + whole[name]) / 2, atol=1e-7)
