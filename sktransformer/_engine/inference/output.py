"""Vectors as users want them: cut, normalised, in fewer bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

DTYPES = ("float32", "float16", "int8", "binary")
CALIBRATION = 1000  # documents whose largest component sets the scale of int8
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Output:
    """What is done to raw vectors (n, H).

    Parameters
    ----------
    dimensions : int or None
        Leading components that are kept.
    normalize : bool
        Divide by the Euclidean norm, after the cut.
    dtype : {"float32", "float16", "int8", "binary"}
        "int8" rounds ``127 x / scale`` and clips; "binary" keeps the signs, eight to a byte, the first in the highest
        bit and the last byte filled with zeros.
    """

    dimensions: int | None
    normalize: bool
    dtype: str

    def floats(self, vectors: FloatArray) -> FloatArray:
        """Cut and normalise; a vector of zeros stays one."""
        vectors = vectors[:, : self.dimensions]
        if self.normalize:
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def finish(self, vectors: FloatArray, scale: float | None) -> npt.NDArray[Any]:
        """Return the rows in `dtype`; `scale` is what `scale_of` gave, for int8."""
        floats = self.floats(vectors)
        if self.dtype == "int8":
            steps: FloatArray = np.rint(floats * np.float32(127.0 / (scale or 1.0)))
            whole: npt.NDArray[np.int8] = np.clip(steps, -127, 127).astype(np.int8)
            return whole
        if self.dtype == "binary":
            return np.packbits(floats > 0, axis=1)
        return floats.astype(self.dtype)

    def width(self, hidden: int) -> int:
        """Columns of the result for vectors of `hidden` components."""
        kept = hidden if self.dimensions is None else self.dimensions
        return -(-kept // 8) if self.dtype == "binary" else kept

    def numpy_dtype(self) -> Any:
        """Return the dtype of the result's elements."""
        return np.dtype(np.uint8 if self.dtype == "binary" else self.dtype)


def calibration_rows(n: int) -> npt.NDArray[np.int64]:
    """Return up to `CALIBRATION` rows of n, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, CALIBRATION)).astype(np.int64))


def scale_of(floats: FloatArray) -> float:
    """Return the largest component in absolute value: of all columns, so that dot products keep their order."""
    largest = float(np.abs(floats).max(initial=0.0))
    return largest if largest > 0 else 1.0
