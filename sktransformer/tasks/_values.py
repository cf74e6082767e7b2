"""What users pass as `y` of a regressor: one number a row, or several; and the units that the model is trained in."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from .._engine.errors import CheckpointCorruptError, warn_user
from .._engine.training.data import normalized_weights

Floats = npt.NDArray[np.floating[Any]]
MAX_LISTED = 10
MAX_BINS = 10
# Standard deviations whose square float32 holds; no row of any weight lies that far off.
FARTHEST = 1e12
# Predictions that differ by less than this share of the targets' standard deviation are one number.
FLAT = 1e-3


@dataclass(frozen=True)
class Units:
    """Mean and scale (K,) of each output: predictions are z * scale + mean, in the dtype of the two."""

    mean: Floats
    scale: Floats

    def standardised(self, values: Floats) -> torch.Tensor:
        """Return targets (n, K), as float32: what the model is trained on."""
        shifted = (values.astype(np.float64) - self.mean) / self.scale
        # infinity times a weight of zero would be no number
        return torch.from_numpy(np.clip(shifted, -FARTHEST, FARTHEST).astype(np.float32))

    def restored(self, outputs: npt.NDArray[np.float32]) -> Floats:
        """Return what the model gives (n, K) in the units of the targets."""
        predicted: Floats = outputs.astype(self.mean.dtype) * self.scale + self.mean
        return predicted


@dataclass(frozen=True)
class Values:
    """Targets of a regressor.

    `original` is (n,) or (n, K) as `y` came, in float32 or float64; `names` are those of the columns of a frame.
    """

    original: Floats
    names: tuple[str, ...] = ()
    units: Units = field(default_factory=lambda: Units(np.zeros(1), np.ones(1)))

    @property
    def columns(self) -> Floats:
        """The targets as (n, K)."""
        return self.original.reshape(len(self.original), -1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row's target: () or (K,)."""
        return tuple(self.original.shape[1:])

    @property
    def targets(self) -> torch.Tensor:
        """The targets (n, K) in the units of training."""
        return self.units.standardised(self.columns)

    def take(self, rows: npt.NDArray[np.int64]) -> Values:
        """Return the targets of `rows`, in the same units."""
        return replace(self, original=self.original[rows])

    def in_units(self, units: Units) -> Values:
        """Return the same targets, to be trained on in `units`."""
        return replace(self, units=units)


def as_values(y: Any) -> Values:
    """Read `y`.

    Raises
    ------
    TypeError
        For a row that is no number.
    ValueError
        For missing or infinite numbers, more than two dimensions, no column.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; pass one number a document.")
    if issparse(y):
        raise TypeError("y is a sparse matrix, which holds few numbers but zeros; pass y.toarray().")
    array = _as_array(y)
    if array.ndim > 2 or 0 in array.shape[1:]:
        raise ValueError(
            f"y must have one number a document, (n,), or a column an output, (n, K); got shape {array.shape}."
        )
    if array.dtype.kind not in "fiub":
        _require_numbers(array)
        array = np.array([_as_float(value) for value in array.ravel()]).reshape(array.shape)
    dtype = np.float32 if array.dtype in (np.float16, np.float32) else np.float64
    values: Floats = array.astype(dtype)
    _require_finite(values)
    columns = getattr(y, "columns", ()) if values.ndim == 2 else ()
    return Values(values, tuple(str(name) for name in columns))


def _as_array(y: Any) -> npt.NDArray[Any]:
    """Return an array in which nothing was turned into text, and rows of several sizes are still rows."""
    if hasattr(y, "to_numpy"):  # pandas and polars, whose extension types NumPy does not know
        return np.asarray(y.to_numpy())
    if not isinstance(y, (list, tuple)):
        return np.asarray(y)
    try:
        array = np.asarray(y)
    except ValueError:  # rows of several sizes
        array = np.empty(len(y), dtype=object)
        array[:] = list(y)
    return np.array(y, dtype=object) if array.dtype.kind in "US" else array


def _as_float(value: Any) -> float:
    try:
        return float("nan") if _is_missing(value) else float(value)
    except OverflowError:  # an integer or fraction beyond float64, which is refused by its row
        return float("inf")


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _require_numbers(array: npt.NDArray[Any]) -> None:
    """Raise TypeError for the first entry that is no number: texts of digits are texts."""
    for place, value in np.ndenumerate(array):
        # Decimal is no Real in Python's numeric tower, and yet a number
        real = isinstance(value, numbers.Real) and not isinstance(
            value, np.timedelta64
        )  # to NumPy an integer
        if real or type(value).__name__ == "Decimal" or _is_missing(value):
            continue
        if hasattr(value, "__len__") and not isinstance(value, (str, bytes)):
            hint = "for several outputs a document pass an array of shape (n, K)"
        else:
            hint = "convert y to floats, or use TransformerClassifier for labels"
        index = ", ".join(map(str, place))
        raise TypeError(f"y[{index}] must be a number, got {type(value).__name__} ({value!r}); {hint}.")


def _require_finite(values: Floats) -> None:
    missing, infinite = np.isnan(values), np.isinf(values)
    for wrong, what in ((missing, "NaN"), (infinite, "infinity")):
        rows = np.flatnonzero(wrong.reshape(len(values), -1).any(axis=1))
        if len(rows):
            listed = ", ".join(map(str, rows[:MAX_LISTED])) + (", ..." if len(rows) > MAX_LISTED else "")
            raise ValueError(f"Input y contains {what} in row(s) {listed}; drop those rows, or mend them.")


def units_of(values: Values, weights: npt.NDArray[np.float64] | None) -> Units:
    """Measure targets: scikit-learn's `StandardScaler`, under sample weights; the scale of a constant is 1.

    Raises
    ------
    ValueError
        When their squares overflow.
    """
    # weights of mean 1 in float32: equal weights of any size are exactly 1 and change no bit
    relative = normalized_weights(weights, len(values.original)).double().numpy()
    columns = values.columns.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(columns, sample_weight=relative)
    mean, scale = (found.astype(values.original.dtype) for found in (scaler.mean_, scaler.scale_))
    if not np.isfinite(scaler.var_).all():  # such a scale would be 1, as a constant's
        raise ValueError(
            f"y can't be standardised: its values reach {np.abs(columns).max():g}, and their squares overflow; "
            f"divide y by a constant."
        )
    return Units(mean, scale)


def bins(values: Values) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Divide rows into up to ten bins of neighbouring first targets, as many rows in each, two at least.

    Bins go by rank, so that ties and outliers leave none of them with a single row.
    """
    n = len(values.original)
    if n < 2:
        raise ValueError(
            "early_stopping=True needs at least two documents, to hold one out, got n_samples=1; "
            "pass more rows or early_stopping=False."
        )
    n_bins = max(1, min(MAX_BINS, n // 2))
    ranks = np.empty(n, dtype=np.int64)
    ranks[np.argsort(values.columns[:, 0], kind="stable")] = np.arange(n)
    return ranks * n_bins // n, np.arange(n_bins)


def spread_rows(values: Values, n: int = 64) -> npt.NDArray[np.int64]:
    """Return up to `n` rows from the smallest first target to the largest: enough to see a collapse."""
    order = np.argsort(values.columns[:, 0], kind="stable")
    return order[np.unique(np.linspace(0, len(order) - 1, min(n, len(order))).astype(np.int64))]


def warn_of_flat(predicted: Floats, values: Values) -> None:
    """Warn when documents whose targets differ all get one number, in any output."""
    found = predicted.reshape(len(predicted), -1)
    flat = (np.ptp(found, axis=0) <= FLAT * values.units.scale) & (np.ptp(values.columns, axis=0) > 0)
    if not flat.any():
        return
    first = int(np.argmax(flat))
    where = "" if not values.shape else f" in output(s) {', '.join(map(str, np.flatnonzero(flat)))}"
    warn_user(
        f"training collapsed: every document gets {found[0, first]:.4g}{where}, whatever its target; lower "
        f"learning_rate, raise warmup_ratio or max_epochs, or try another random_state.",
        ConvergenceWarning,
    )


def units_of_config(config: Any, n_outputs: int, name: Any) -> Units:
    """Read the units that `save_pretrained` wrote; a checkpoint without them predicts as it stands.

    Raises
    ------
    CheckpointCorruptError
        When they do not fit the head.
    """
    mean, scale = getattr(config, "target_mean", None), getattr(config, "target_scale", None)
    if mean is None and scale is None:
        return Units(np.zeros(n_outputs), np.ones(n_outputs))
    if not (_numbers(mean, n_outputs) and _numbers(scale, n_outputs) and min(scale) > 0):  # type: ignore[arg-type]
        raise CheckpointCorruptError(
            f"{name}: target_mean and target_scale in config.json must each hold {n_outputs} finite number(s), the "
            f"scales above 0, got {mean} and {scale}; mend it."
        )
    return Units(np.array(mean, dtype=np.float64), np.array(scale, dtype=np.float64))


def _numbers(values: Sequence[Any] | None, n: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == n
        and all(isinstance(value, (int, float)) and np.isfinite(value) for value in values)
    )
