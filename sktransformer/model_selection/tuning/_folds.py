"""The folds of a search: what they must hold, and what must not lie in two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..._engine.errors import warn_user
from .._leaks import duplicate_groups, find_leak


def check_class_sizes(cv: Any, y: Any) -> None:
    """Raise ValueError for a class that a fold would be without; scikit-learn warns, and scores what is left."""
    if not isinstance(cv, (StratifiedKFold, StratifiedGroupKFold)):
        return
    if not len(y):
        raise ValueError("X and y hold 0 sample(s); a search needs some in each fold.")
    label, size = min(Counter(np.asarray(y).ravel().tolist()).items(), key=itemgetter(1))
    if size < cv.n_splits:
        raise ValueError(
            f"class {label!r} has {size} member(s), fewer than the {cv.n_splits} folds of cv, "
            "so that some folds would be without it; pass fewer folds, drop or merge the class, or pass a splitter "
            "that is not stratified, such as KFold(5, shuffle=True, random_state=0)."
        )


def check_splits(splits: Sequence[Any], n_rows: int) -> None:
    """Raise ValueError for folds that no trial could be scored on."""
    if not splits:
        raise ValueError("cv gives no fold; pass an int, a splitter or at least one pair (train, test).")
    for fold, split in enumerate(splits):
        for name, part in zip(("training", "test"), split, strict=True):
            rows = np.asarray(part)
            if rows.dtype == bool:
                if rows.shape != (n_rows,):
                    raise ValueError(
                        f"The {name} part of fold {fold} is a mask of {len(rows)}, not {n_rows}, rows."
                    )
                rows = np.flatnonzero(rows)
            if not rows.size:
                raise ValueError(f"The {name} part of fold {fold} is empty; lower the number of folds.")
            if rows.dtype.kind not in "iu" or rows.min() < -n_rows or rows.max() >= n_rows:
                raise ValueError(
                    f"The {name} part of fold {fold} must hold positions from 0 to {n_rows - 1}, got {rows[:5]!r}."
                )


def warn_of_copies(X: Any, splits: Sequence[Any]) -> None:
    """Warn of copies of a document on both sides of a fold: a search would prefer what learns by heart."""
    leak = find_leak(duplicate_groups(X), splits)
    if leak is not None:
        warn_user(
            f"{leak}, and the search prefers what learns by heart. Drop the copies, or keep them in one fold: "
            f"groups= in fit, and cv=StratifiedGroupKFold().",
            UserWarning,
        )
