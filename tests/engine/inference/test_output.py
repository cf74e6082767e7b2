"""Vectors cut, normalised and in fewer bytes."""

from __future__ import annotations

import numpy as np
import pytest

from sktransformer._engine.inference.output import Output, calibration_rows, scale_of

RAW = np.array([[3.0, 4.0, 12.0], [0.0, 0.0, 5.0]], dtype=np.float32)


def test_the_norm_is_that_of_what_is_kept() -> None:
    np.testing.assert_allclose(Output(2, True, "float32").floats(RAW), [[0.6, 0.8], [0, 0]], atol=1e-7)
    np.testing.assert_allclose(Output(None, True, "float32").floats(RAW)[0], RAW[0] / 13, atol=1e-7)
    assert Output(2, False, "float32").floats(RAW).tolist() == [[3, 4], [0, 0]]


def test_float16_and_float32() -> None:
    for dtype in ("float32", "float16"):
        found = Output(None, False, dtype).finish(RAW, None)
        assert found.dtype == dtype
        assert found.tolist() == RAW.tolist()


def test_int8_rounds_by_one_scale_and_clips() -> None:
    found = Output(None, False, "int8").finish(np.float32([[1.0, -0.5, 0.004], [4.0, -4.0, 0.0]]), 2.0)
    assert found.dtype == np.int8
    assert found.tolist() == [[64, -32, 0], [127, -127, 0]]  # 63.5 and -31.75, to even


def test_int8_keeps_dot_products() -> None:
    random = np.random.default_rng(0)
    floats = Output(None, True, "float32").floats(random.normal(size=(50, 384)).astype(np.float32))
    whole = Output(None, True, "int8").finish(floats, scale_of(floats)).astype(np.float64)
    cosines = whole @ whole.T / np.linalg.norm(whole, axis=1) / np.linalg.norm(whole, axis=1)[:, None]
    assert np.abs(cosines - floats @ floats.T).max() < 3e-3


def test_binary_packs_signs() -> None:
    found = Output(None, True, "binary").finish(
        np.float32([[1, -1, 0, 1, 1, 1, 1, 1, -1, 1], [-1] * 10]), None
    )
    assert found.dtype == np.uint8
    assert found.tolist() == [[0b10011111, 0b01000000], [0, 0]]


@pytest.mark.parametrize(
    ("dimensions", "dtype", "width", "kind"),
    [
        (None, "float32", 30, "float32"),
        (12, "int8", 12, "int8"),
        (12, "binary", 2, "uint8"),
        (16, "binary", 2, "uint8"),
    ],
)
def test_width_and_dtype(dimensions: int | None, dtype: str, width: int, kind: str) -> None:
    output = Output(dimensions, True, dtype)
    assert output.width(30) == width
    assert output.numpy_dtype() == np.dtype(kind)


def test_what_scales_are_found_on() -> None:
    assert scale_of(np.float32([[0.5, -2.0]])) == 2.0
    assert scale_of(np.zeros((2, 2), dtype=np.float32)) == scale_of(np.zeros((0, 2), dtype=np.float32)) == 1.0
    assert calibration_rows(3).tolist() == [0, 1, 2]
    assert calibration_rows(0).tolist() == []
    many = calibration_rows(10_000)
    assert len(many) == 1000
    assert (many[0], many[-1]) == (0, 9999)
