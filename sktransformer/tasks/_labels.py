"""What users pass as `y` of a classifier: one label a row, several, or a distribution over classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from .._engine.errors import CheckpointCorruptError, WrongTaskError, warn_user
from .._engine.validation import check_number, check_one_kind, check_scalars, label_array

LabelKind = Literal["single", "multilabel", "soft"]


@dataclass(frozen=True)
class Labels:
    """Targets of a classifier.

    `targets` are class indices (n,) for "single", else floats (n, C); `index` (n,) is the class that stands for a row
    where one is needed (the split into training and validation).
    """

    kind: LabelKind
    classes: npt.NDArray[Any]
    targets: torch.Tensor
    index: npt.NDArray[np.int64]
    original: npt.NDArray[Any]

    def take(self, rows: npt.NDArray[np.int64]) -> Labels:
        """Return the labels of `rows`, over the same classes."""
        return Labels(
            self.kind,
            self.classes,
            self.targets[torch.from_numpy(rows)],
            self.index[rows],
            self.original[rows],
        )


def as_labels(y: Any, name: str = "y") -> Labels:
    """Read `y`.

    Raises
    ------
    ValueError
        For missing labels, continuous targets, a single class, distributions that do not sum to 1.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; pass one label a document.")
    array = _as_array(y)
    if array.ndim == 2 and array.shape[1] > 1:
        return _two_dimensional(array, getattr(y, "columns", None), name)
    values = column_or_1d(array, warn=True)
    _require_present(values, name)
    if values.dtype.kind == "O" and not any(isinstance(value, str) for value in values):
        values = np.asarray(
            values.tolist()
        )  # numbers in an object array, which scikit-learn takes for no labels
    if values.dtype.kind == "f":
        assert_all_finite(values, input_name=name)
    # scikit-learn warns of as many classes as rows, as a list of labels has
    check_classification_targets(values if name == "y" else np.tile(values, 2))
    classes, index = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
            f"{classes.tolist()[0]!r}"
        )
    return Labels("single", classes, torch.from_numpy(index), index.astype(np.int64), values)


def _as_array(y: Any) -> npt.NDArray[Any]:
    if issparse(y):  # an indicator matrix, as MultiLabelBinarizer(sparse_output=True) gives
        y = y.toarray()  # type: ignore[attr-defined]  # the stubs forget which kind it is
    return label_array(y)


def _require_present(values: npt.NDArray[Any], name: str) -> None:
    if values.dtype.kind not in "OMm":
        return
    absent = np.flatnonzero(pd.isna(values))
    if len(absent):
        listed = ", ".join(map(str, absent[:10])) + (", ..." if len(absent) > 10 else "")
        raise ValueError(
            f"{name} has {len(absent)} missing label(s), NaN or None, in row(s) {listed}; drop those rows."
        )
    check_scalars(values, name)
    check_one_kind(values, name)


def _two_dimensional(array: npt.NDArray[Any], columns: Any, name: str) -> Labels:
    if array.dtype.kind in "OUS":
        array = _as_numbers(array, name)
    assert_all_finite(array, input_name=name)
    classes = np.arange(array.shape[1]) if columns is None else np.asarray(list(columns), dtype=object)
    targets = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
    sums = array.sum(axis=1)
    # floats that sum to 1 are distributions, also where a part of the rows happens to hold none but 0 and 1
    distributions = array.dtype.kind == "f" and np.abs(sums - 1).max(initial=0.0) <= 1e-3
    if np.isin(array, (0, 1)).all() and not distributions:
        return Labels(
            "multilabel", classes, targets, np.zeros(len(array), dtype=np.int64), array.astype(np.int64)
        )
    if (array < 0).any() or np.abs(sums - 1).max(initial=0.0) > 1e-3:
        row = int(np.argmax(np.abs(sums - 1) + (array < 0).any(axis=1)))
        raise ValueError(
            f"{name} is 2-D, so it must be a 0/1 indicator matrix (multilabel) or one distribution over classes a row "
            f"(soft labels); row {row} is {array[row].tolist()}, which sums to {sums[row]:g}."
        )
    index = array.argmax(axis=1).astype(np.int64)
    return Labels("soft", classes, targets, index, classes[index])


def _as_numbers(array: npt.NDArray[Any], name: str) -> npt.NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is 2-D and holds labels, not numbers ({error}); pass one label a row, or for several labels a "
            f"document the 0/1 matrix that sklearn.preprocessing.MultiLabelBinarizer makes of them."
        ) from error


def most_probable(y: Any, classes: npt.NDArray[Any], name: str = "y") -> Any:
    """Return the most probable class of each row of a distribution over `classes`; other labels as they are.

    Raises
    ------
    ValueError
        When the columns are not those classes, or a row is no distribution.
    """
    array = _as_array(y)
    if array.ndim != 2 or array.shape[1] < 2:
        return y
    soft = _two_dimensional(_as_numbers(array, name), getattr(y, "columns", None), name)
    if soft.kind != "soft":
        raise ValueError(
            f"{name} marks several classes a document, or none, but the classifier was fitted on one label a document."
        )
    named = hasattr(y, "columns")
    if array.shape[1] != len(classes) or (named and set(soft.classes.tolist()) != set(classes.tolist())):
        raise ValueError(
            f"{name} is 2-D, so its columns must be the {len(classes)} classes {classes.tolist()}, got "
            f"{soft.classes.tolist() if named else array.shape[1]}; pass such columns, or one label a document."
        )
    return soft.classes[soft.index] if named else classes[soft.index]


def row_weights(
    labels: Labels, class_weight: Any, sample_weight: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64] | None:
    """Multiply sample weights by the weight of each row's class; None when there are neither.

    "balanced" is n / (C n_c), as in scikit-learn's `compute_class_weight`, over the rows given here: the training part.
    """
    if class_weight is None:
        return sample_weight
    if labels.kind != "single":
        raise ValueError(
            f"class_weight={class_weight!r} needs one label a row, but y is {labels.kind}; pass sample_weight instead."
        )
    if not isinstance(class_weight, dict) and class_weight != "balanced":
        raise ValueError(f'class_weight must be None, "balanced" or a dict of classes, got {class_weight!r}.')
    if isinstance(class_weight, dict):
        unknown = [key for key in class_weight if key not in set(labels.classes.tolist())]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is not among the classes {labels.classes.tolist()}."
            )
        for name, weight in class_weight.items():
            check_number(f"class_weight[{name!r}]", weight, low=0)
    present = np.unique(labels.original)
    by_class = dict(zip(present.tolist(), _weights(class_weight, present, labels.original), strict=True))
    weights = np.array([by_class[value] for value in labels.original.tolist()])
    return weights if sample_weight is None else weights * sample_weight


def _weights(
    class_weight: Any, present: npt.NDArray[Any], original: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    if isinstance(class_weight, dict):
        return np.array([float(class_weight.get(value, 1.0)) for value in present.tolist()])
    weights: npt.NDArray[np.float64] = compute_class_weight("balanced", classes=present, y=original)
    return weights


def log_odds(shares: npt.NDArray[np.float32], *, several: bool) -> npt.NDArray[np.float32]:
    """Return the logits that would give these probabilities: a document's windows have no logits in common."""
    with np.errstate(divide="ignore"):  # log 0 is minus infinity, as it should be
        return np.log(shares) - (np.log1p(-shares) if several else np.float32(0.0))


def few_of_each(labels: Labels, n: int = 64) -> npt.NDArray[np.int64]:
    """Return about `n` rows, as many of each class: enough to see a collapse, in a fraction of a second."""
    each = max(1, n // len(labels.classes))
    return np.concatenate([np.flatnonzero(labels.index == c)[:each] for c in range(len(labels.classes))])


def head_config(labels: Labels) -> dict[str, Any]:
    """Return the fields of a checkpoint's config that shape a head for these labels."""
    names = [str(label) for label in labels.classes]
    kind = "multi" if labels.kind == "multilabel" else "single"
    return {
        "num_labels": len(names),
        "id2label": dict(enumerate(names)),
        "label2id": {name: i for i, name in enumerate(names)},
        "problem_type": f"{kind}_label_classification",
    }


def labels_of_head(config: Any, model: Any) -> tuple[npt.NDArray[Any], LabelKind]:
    """Return the classes of a checkpoint's trained head, and whether a document has one of them or several.

    Raises
    ------
    WrongTaskError
        When the head is one for regression.
    CheckpointCorruptError
        When it does not name its classes.
    """
    names, problem = dict(config.id2label or {}), getattr(config, "problem_type", None)
    if len(names) < 2 or problem == "regression":
        raise WrongTaskError(
            f"{model} has a head of {len(names)} output(s) for regression, not for classes; pass a checkpoint "
            f"that was trained to classify, or fit this one."
        )
    labels = [names.get(i) for i in range(len(names))]
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
        raise CheckpointCorruptError(
            f"{model}: id2label in config.json must give ids from 0 different names, got {names}; mend it."
        )
    kind: LabelKind = "multilabel" if problem == "multi_label_classification" else "single"
    return np.array(labels, dtype=object), kind


def warn_of_collapse(predicted: npt.NDArray[Any]) -> None:
    """Warn when training documents of all classes are taken for one."""
    if len(set(predicted.tolist())) == 1:
        warn_user(
            f"training collapsed: every document is taken for {predicted.tolist()[0]!r}; lower learning_rate, raise "
            f"warmup_ratio or max_epochs, or try another random_state.",
            ConvergenceWarning,
        )
