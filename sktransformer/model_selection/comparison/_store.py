"""The resume file: one line a finished run, behind a line that says what the runs are of."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from filelock import FileLock, Timeout
from scipy.sparse import issparse
from sklearn.frozen import FrozenEstimator

from .._inputs import is_estimator
from .._leaks import rows_of
from ._runs import Outcome

FORMAT = 1
KIND = "sktransformer comparison"
_START = f'{{"kind": "{KIND}"'
_STORED = ("fit_seconds", "ms_per_document", "megabytes", "share_cut")
_DIFFERENCES_NAMED = 5
LOCK_WAIT = 60  # seconds


class Store:
    """Append finished runs to a file of JSON lines, and give back those of an earlier process.

    Parameters
    ----------
    path : str or path
        The file. It is made when it is not there; its folder is not.
    header : dict
        What the runs depend on, see :func:`fingerprint`.

    Raises
    ------
    TypeError
        When `path` is none.
    ValueError
        When the file is of another comparison (the message names what differs) or no such file at all.
    FileNotFoundError
        When the folder is not there.
    TimeoutError
        When another process held the lock all the time.
    OSError
        When the file can't be written.

    Notes
    -----
    A line is written and flushed to the disk under a lock, by the main process alone, so that two processes may share a
    file: neither overwrites what the other has written, and of two lines about one run one without an error counts. The
    lock is the system's own, which a killed process loses; what stays is an empty file beside the store. A line that
    was cut half-way, when the machine lost power, is left out, and its run is repeated.
    """

    def __init__(self, path: Any, header: Mapping[str, Any]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(
                f"store must be a str or a path, got {type(path).__name__}; pass the path of a file."
            )
        self.path = Path(path).expanduser()
        self.header = {"kind": KIND, "format": FORMAT, **header}
        self.outcomes: dict[tuple[str, int, int], Outcome] = {}
        if self.path.is_dir():
            raise ValueError(f"store={str(path)!r} is a folder; pass the path of a file.")
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"store={str(path)!r} is a device or a pipe; pass the path of a file.")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"store={str(path)!r}: the folder {self.path.parent} does not exist; make it."
            )
        with self._locked():
            self._read()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes away from the file; it is theirs again within milliseconds."""
        place = self.path.with_name(f".{self.path.name}.lock")
        lock = FileLock(place, timeout=LOCK_WAIT)
        try:
            place.touch()  # a folder that can't be written to is told at once: the lock would wait for it
            lock.acquire()
        except PermissionError as error:
            raise PermissionError(self._unwritable(error)) from error
        except Timeout as error:
            raise TimeoutError(
                f"store={str(self.path)!r} was locked by another process for {LOCK_WAIT} s; wait until it is done, "
                f"stop it, or pass another path."
            ) from error
        except OSError as error:
            raise OSError(self._unwritable(error)) from error
        try:
            yield
        finally:
            lock.release()

    def _unwritable(self, error: OSError) -> str:
        return f"store={str(self.path)!r} can't be written: {error}; pass another path."

    def _read(self) -> None:
        content = self.path.read_bytes() if self.path.exists() else b""
        first, ended, rest = content.partition(b"\n")
        if not ended:
            if not first or first.startswith(_START.encode()) or _START.encode().startswith(first):
                self.path.write_bytes(_line(self.header))  # new, or stopped within its first line
                return
            raise ValueError(self._foreign())
        stored = _parsed(first)
        if stored is None or stored.get("kind") != KIND:
            raise ValueError(self._foreign())
        if stored.get("format", 0) > FORMAT:
            raise ValueError(
                f"store={str(self.path)!r} was written by a newer version; update sktransformer-text."
            )
        differences = list(_differences(stored, json.loads(_line(self.header))))
        if differences:
            named = "; ".join(differences[:_DIFFERENCES_NAMED])
            more = len(differences) - _DIFFERENCES_NAMED
            raise ValueError(
                f"store={str(self.path)!r} holds the runs of another comparison: {named}"
                f"{f'; and {more} more' if more > 0 else ''}. Pass the arguments of then, or another file."
            )
        for line in rest.splitlines():
            outcome = _outcome(_parsed(line))
            if outcome is not None:
                self._take(outcome)
        if not content.endswith(b"\n"):
            self._write(b"\n")  # ends the cut line, so that the next one stands alone

    def _foreign(self) -> str:
        return f"store={str(self.path)!r} is not a file of compare_models, and is left as it is; pass another path."

    def _take(self, outcome: Outcome) -> None:
        """Keep a run, unless it failed where another process has had a result."""
        known = self.outcomes.get(outcome.key)
        if known is None or known.error or not outcome.error:
            self.outcomes[outcome.key] = outcome

    def append(self, outcome: Outcome) -> None:
        """Write a finished run."""
        self._take(outcome)
        numbers = {name: _number(getattr(outcome, name)) for name in _STORED}
        line = _line(
            {
                "estimator": outcome.estimator,
                "seed": outcome.seed,
                "fold": outcome.fold,
                "scores": {name: _number(score) for name, score in outcome.scores.items()},
                **numbers,
                "error": outcome.error,
                "traceback": outcome.traceback,
            }
        )
        with self._locked():
            self._write(line)

    def _write(self, line: bytes) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(line)
            os.fsync(file.fileno())


def _line(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, allow_nan=False) + "\n").encode()


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Read one line; None when it was cut."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _outcome(record: dict[str, Any] | None) -> Outcome | None:
    """Rebuild a run; None for a line that is none."""
    if record is None or not {"estimator", "seed", "fold", "scores", "error", *_STORED} <= set(record):
        return None
    numbers = {name: np.nan if record[name] is None else float(record[name]) for name in _STORED}
    scores = {name: np.nan if score is None else float(score) for name, score in record["scores"].items()}
    outcome = Outcome(record["estimator"], int(record["seed"]), int(record["fold"]), scores)
    for name, value in numbers.items():
        setattr(outcome, name, value)
    outcome.error, outcome.traceback = record["error"], record.get("traceback", "")
    return outcome


# -- what the runs depend on ------------------------------------------------------------------------------------------


def fingerprint(
    *,
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    scorers: Mapping[str, Any],
    seeds: list[int],
    splits: Any,
) -> dict[str, Any]:
    """Describe a comparison, so that another one is told apart by content.

    The documents count, not their container; of estimators and scorers the parameters count, not the code behind them.
    """
    return {
        "X": data_mark(X),
        "y": data_mark(y),
        "sample_weight": None if sample_weight is None else data_mark(sample_weight),
        "seeds": seeds,
        "folds": joblib.hash(
            [[[part.tolist() for part in split] for split in of_seed] for of_seed in splits]
        ),
        "scoring": {name: _scorer_mark(scorer) for name, scorer in scorers.items()},
        "estimators": {name: estimator_mark(estimator) for name, estimator in estimators.items()},
    }


def data_mark(values: Any) -> str:
    """Hash documents, targets or weights by their content."""
    if issparse(values):
        matrix: Any = values  # the stubs know no conversion of the base class
        return str(joblib.hash(matrix.tocsr()))
    digest = hashlib.blake2b(digest_size=16)
    for row in rows_of(values):
        digest.update(repr([cell.item() if isinstance(cell, np.generic) else cell for cell in row]).encode())
    return digest.hexdigest()


def estimator_mark(estimator: Any) -> dict[str, Any]:
    """Describe an estimator by its class and parameters; `random_state` is the seed's."""
    params = {
        name: _value_mark(value)
        for name, value in sorted(estimator.get_params(deep=True).items())
        if name.rpartition("__")[2] != "random_state"
    }
    return {"class": _path(type(estimator)), **params}


def _value_mark(value: Any) -> Any:
    """Describe a parameter: short plain values as they are, estimators by class, the rest by a hash."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, str) and len(value) < 100):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)  # the others are no JSON
    if isinstance(value, type):
        return _path(value)
    if is_estimator(value) and not isinstance(value, FrozenEstimator):
        return _path(type(value))  # its parameters stand beside it
    if isinstance(value, (list, tuple)) and any(map(_holds_estimator, value)):
        return [_value_mark(item) for item in value]
    try:
        return str(joblib.hash(value))
    except Exception:  # lambdas and open files can't be pickled; what they print is all there is
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _holds_estimator(value: Any) -> bool:
    return is_estimator(value) or (isinstance(value, tuple) and any(map(is_estimator, value)))


def _scorer_mark(scorer: Any) -> str:
    # make_scorer's result prints its function and options; a function prints an address, and is named instead
    return repr(scorer) if repr(scorer).startswith("make_scorer") else _path(scorer)


def _path(value: Any) -> str:
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _differences(stored: Mapping[str, Any], wanted: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Yield what differs, by name."""
    for name in [*stored, *(name for name in wanted if name not in stored)]:
        if stored.get(name) == wanted.get(name) and (name in stored) == (name in wanted):
            continue
        place = f"{where}[{name!r}]" if where == "estimators" else (f"{where}.{name}" if where else name)
        if name not in wanted or name not in stored:
            yield f"{place} is only in {'the file' if name in stored else 'this call'}"
        elif isinstance(stored[name], dict) and isinstance(wanted[name], dict):
            yield from _differences(stored[name], wanted[name], place)
        elif name in ("X", "y", "sample_weight", "folds"):
            causes = " (cv, groups, n_seeds, random_state or duplicates)" if name == "folds" else ""
            yield f"{place} differs{causes}"
        else:
            yield f"{place} is {stored[name]!r} in the file and {wanted[name]!r} here"
