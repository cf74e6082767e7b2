"""Memory, files, processes and noise: lines 15 to 18 of the contract."""

from __future__ import annotations

import gc
import io
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_val_score

from ..._engine.errors import PersistenceError, VersionMismatchWarning
from . import clean_room
from ._require import recorded, require, require_close, require_equal, require_raises
from .registry import check, has, holds_weights
from .subject import Fingerprint, Subject

MEBIBYTE = 2**20
RSS_ALLOWED = (
    24 * MEBIBYTE
)  # allocators keep what was freed; a leak of ten models or a hundred calls is counted exactly
WEIGHTS_FACTOR = 1.1
FIXED_BYTES = 16 * 1024  # parameters, history, configuration


# -- 15. memory ----------------------------------------------------------------------------------------------------


@check(15)
def fits_leave_no_memory(subject: Subject) -> None:
    """Ten fits in a row leave memory where the second left it."""
    _require_flat(lambda: subject.read(subject.fit()), rounds=10, what="fits")


@check(15)
def readings_leave_no_memory(subject: Subject) -> None:
    """A hundred calls of a fitted estimator leave memory where the first ones left it."""
    _require_flat(lambda: subject.read(subject.fitted), rounds=100, what="calls")


def _require_flat(call: Callable[[], Any], *, rounds: int, what: str) -> None:
    for _ in range(2):
        call()
    before = _memory()
    for _ in range(rounds):
        call()
    after = _memory()
    require_equal(after["tensors"], before["tensors"], f"torch tensors alive after {rounds} {what}")
    grown = after["resident"] - before["resident"]
    require(grown <= RSS_ALLOWED, f"{rounds} {what} grew the process by {grown / MEBIBYTE:.1f} MiB")
    gpu = after["gpu"] - before["gpu"]
    require(gpu <= MEBIBYTE, f"{rounds} {what} left {gpu / MEBIBYTE:.1f} MiB more on the GPU")


def _memory() -> dict[str, int]:
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is None:
        return {"tensors": 0, "resident": _resident(), "gpu": 0}
    tensors = sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())
    gpu = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0
    return {"tensors": tensors, "resident": _resident(), "gpu": gpu}


def _resident() -> int:
    statm = Path("/proc/self/statm")
    if not statm.exists():  # elsewhere than on Linux the count of tensors has to do
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- 16. persistence -----------------------------------------------------------------------------------------------


@check(16)
def stored_estimators_work_elsewhere(subject: Subject) -> None:
    """joblib, pickle and skops files give the same numbers in a process without network, GPU or the source folder."""
    outputs = _second_process(subject)["outputs"]
    require({"fitted.joblib", "fitted.pkl"} <= set(outputs), f"only {sorted(outputs)} were read")
    for name, output in outputs.items():
        require_close(output, subject.expected, f"output of {name} in another process", tolerance=1e-6)


def _second_process(subject: Subject) -> dict[str, Any]:
    """Return what a second process saw, asked once for all checks of an estimator."""
    if "_second_process" not in vars(subject):
        vars(subject)["_second_process"] = clean_room.ask(_job(subject))
    answer: dict[str, Any] = vars(subject)["_second_process"]
    return answer


def _job(subject: Subject) -> dict[str, bytes]:
    fitted = _fitted_from_vanishing_folder(subject)
    stored = io.BytesIO()
    joblib.dump(fitted, stored)
    files = {
        "subject.pkl": pickle.dumps((subject.estimator, subject.sample)),
        "fitted.joblib": stored.getvalue(),
        "fitted.pkl": pickle.dumps(fitted, protocol=pickle.HIGHEST_PROTOCOL),
    }
    try:
        import skops.io
    except ImportError:  # optional
        return files
    return {**files, "fitted.skops": skops.io.dumps(fitted)}


def _fitted_from_vanishing_folder(subject: Subject) -> Any:
    """Fit from a copy of the model's folder, and delete that; as it is where `model` is no folder."""
    model = subject.estimator.get_params(deep=False).get("model")
    if not isinstance(model, (str, os.PathLike)) or not Path(model).is_dir():
        return subject.fitted
    with tempfile.TemporaryDirectory() as folder:
        copied = shutil.copytree(model, Path(folder, "model"))
        return subject.fit(model=str(copied))


@check(16)
def stored_estimators_work_on(subject: Subject) -> None:
    """A reloaded estimator can be stored again, cloned and fitted again, and gives the same numbers each time."""
    once = pickle.loads(pickle.dumps(subject.fitted))
    twice = pickle.loads(pickle.dumps(once))
    require_equal(sorted(vars(twice)), sorted(vars(subject.fitted)), "attributes of a reloaded estimator")
    require_close(
        subject.read(twice), subject.expected, "output of an estimator stored twice", tolerance=1e-6
    )
    subject.same(subject.read(subject.refit(clone(twice))), "output of a fitted clone of a reloaded one")
    subject.same(subject.read(subject.refit(once)), "output of a reloaded estimator fitted again")


@check(16)
def storing_changes_nothing(subject: Subject) -> None:
    """Storing leaves the estimator as it was, and two files of one estimator are equal."""
    fitted = subject.fit()
    first = pickle.dumps(fitted)
    subject.same(subject.read(fitted), "output after storing")
    require(first == pickle.dumps(fitted), "two pickles of one estimator differ")


@check(16, holds_weights)
def files_are_small(subject: Subject) -> None:
    """A file is at most 1.1 times the weights, the tokenizer's files and a few kilobytes aside."""
    weights = sum(p.numel() * p.element_size() for p in subject.fitted.model_.parameters())
    with tempfile.TemporaryDirectory() as folder:
        subject.fitted.tokenizer_.save_pretrained(folder)
        other = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    stored = io.BytesIO()
    joblib.dump(subject.fitted, stored)
    allowed = WEIGHTS_FACTOR * weights + other + FIXED_BYTES
    size = stored.tell()
    require(size <= allowed, f"the file has {size} bytes, the weights {weights}, the tokenizer {other}")


@check(16, holds_weights)
def files_tell_their_versions(subject: Subject) -> None:
    """A file holds a format number and versions: a newer format raises, another version warns and works."""
    state = subject.fitted.__getstate__()
    bundle = state["bundle_"]
    for name in ("sktransformer-text", "torch", "transformers", "tokenizers"):
        require(bundle["versions"].get(name), f"the version of {name} is not stored")
    require(isinstance(bundle["format"], int), "the format number is not stored")
    newer = clone(subject.fitted)
    with require_raises(PersistenceError, str(bundle["format"] + 1), "install"):
        newer.__setstate__({**state, "bundle_": {**bundle, "format": bundle["format"] + 1}})
    older = clone(subject.fitted)
    with recorded(VersionMismatchWarning) as messages:
        older.__setstate__(
            {**state, "bundle_": {**bundle, "versions": {**bundle["versions"], "torch": "2.0.0"}}}
        )
    require_equal(len(messages), 1, f"warnings about versions ({messages})")
    require("torch 2.0.0" in messages[0], f"the warning does not name torch 2.0.0: {messages[0]}")
    subject.same(subject.read(older), "output of an estimator of another version")


# -- 17. noise -----------------------------------------------------------------------------------------------------


@check(17)
def normal_run_is_silent(subject: Subject) -> None:
    """Loading, fitting and reading print, log and warn nothing, and a fork afterwards brings no complaint."""
    seen = _second_process(subject)
    for kind in ("printed", "logged", "warned"):
        require(not seen[kind], f"{kind} on a normal run: {seen[kind]}")


@check(17)
def normal_run_touches_nothing(subject: Subject) -> None:
    """No file in the current folder, no network, no process, no environment variable."""
    seen = _second_process(subject)
    require(not seen["written"], f"files written into the current folder: {seen['written']}")
    require(not seen["events"], f"network, processes or environment: {seen['events']}")
    require(not seen["changed"], f"environment variables changed: {seen['changed']}")
    require_close(seen["again"], subject.expected, "output of a fit in another process", tolerance=1e-6)


@check(17)
def worker_processes_give_the_same(subject: Subject) -> None:
    """Cross-validation in two worker processes gives the scores of one, and says nothing."""
    folds = KFold(2)
    scores = []
    for n_jobs in (None, 2):
        with recorded(but=ConvergenceWarning) as messages:
            scores.append(
                cross_val_score(
                    subject.new(),
                    subject.sample.X,
                    subject.sample.y,
                    cv=folds,
                    scoring=Fingerprint(subject),
                    n_jobs=n_jobs,
                    error_score="raise",
                )
            )
        noise = [
            message for message in messages if "memory leak" not in message
        ]  # loky's, when it renews a worker
        require(not noise, f"warnings with n_jobs={n_jobs}: {noise}")
    require_close(scores[1], scores[0], "scores with n_jobs=2", tolerance=1e-5)


# -- 18. devices ---------------------------------------------------------------------------------------------------


@check(18, has("device", "precision"))
def automatic_device_and_precision(subject: Subject) -> None:
    """With "auto" it runs on this machine, keeps weights and outputs in float32, and never computes in float16.

    Predictions of a regressor are in the dtype of its targets.
    """
    import torch

    fitted = subject.fit(device="auto", precision="auto")
    output = subject.read(fitted)
    require_equal(output.dtype, _dtype(subject), "dtype of the output")
    require(np.isfinite(output).all(), "the output is not finite")
    kinds = {parameter.dtype for parameter in fitted.model_.parameters()}
    require_equal(kinds, {torch.float32}, "dtypes of the weights")
    for precision in ("float16", "fp16", "half"):
        with require_raises(ValueError, "precision", "bfloat16"):
            subject.fit(precision=precision)


def _dtype(subject: Subject) -> Any:
    return np.dtype(np.float64 if subject.regresses else np.float32)


@check(18, has("device", "precision"))
def bfloat16_stays_close(subject: Subject) -> None:
    """`precision="bfloat16"` runs anywhere, gives float32 and stays near the numbers of float32."""
    fitted = subject.fit()
    output = subject.read(fitted.set_params(precision="bfloat16"))
    require_equal(output.dtype, _dtype(subject), "dtype of the output")
    require_close(output, subject.expected, "output in bfloat16", tolerance=0.05)


@check(18, has("device"))
def device_is_checked(subject: Subject) -> None:
    """A device that does not exist raises ValueError by name, in `fit`; a `torch.device` is taken like its name."""
    import torch

    for device in ("gpu0", "cudaa", 3.5, *(() if torch.cuda.is_available() else ("cuda",))):
        with require_raises(ValueError, "device"):
            subject.fit(device=device)
    for device in ("cpu", torch.device("cpu")):
        require_close(
            subject.read(subject.fit(device=device)),
            subject.expected,
            f"output on {device!r}",
            tolerance=1e-5,
        )
