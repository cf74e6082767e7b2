"""The study behind a search: where it is stored, whose it is, who draws its trials and who ends them early."""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, check_distribution_compatibility, distribution_to_json
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from ..._engine.validation import check_choice
from ._fingerprints import differences
from ._journals import open_journal
from ._spaces import shown

RECORD = "sktransformer"  # the study's attribute that says what it was made for
SQLITE_WAIT = 60  # seconds to wait for a file that another process writes to
PRUNERS = ("median", "hyperband")


# -- storage --------------------------------------------------------------------------------------------------------


@contextmanager
def storage_errors(storage: Any) -> Iterator[None]:
    """Turn what databases and files raise into errors that say which storage, and what to do.

    Raises
    ------
    TimeoutError
        When another process held the file all the time.
    OSError
        When it can't be read or written.
    """
    try:
        yield
    except Exception as error:
        where = f"storage={_name_of(storage)}"
        if str(error).startswith(where):  # said already, where the storage was opened
            raise
        chain = [error]
        while (deeper := chain[-1].__cause__ or chain[-1].__context__) is not None and deeper not in chain:
            chain.append(deeper)  # type: ignore[arg-type]  # a cause may be a KeyboardInterrupt: its text is read alone
        if not any(_of_a_storage(link) for link in chain):
            raise
        said = "; ".join(dict.fromkeys(str(link).splitlines()[0] for link in chain if str(link)))
        if "locked" in said:
            raise TimeoutError(
                f"{where} is locked by another process; wait until it is done, or stop it, and run the search again: "
                f"finished trials are kept. For many processes take a journal file or a database server. ({said})"
            ) from error
        raise OSError(
            f"{where} can't be read or written: {said}. Check path and permissions, or pass another storage."
        ) from error


def _of_a_storage(error: BaseException) -> bool:
    return isinstance(error, optuna.exceptions.StorageInternalError) or type(error).__module__.startswith(
        "sqlalchemy"
    )


def _name_of(storage: Any) -> str:
    return repr(str(storage)) if isinstance(storage, (str, os.PathLike)) else type(storage).__name__


def open_storage(storage: Any) -> BaseStorage:
    """Open what `storage` names.

    Parameters
    ----------
    storage : None, str, path or optuna storage
        None is memory, a text with "://" a database, another one the path of a journal file.

    Returns
    -------
    BaseStorage
        The storage.

    Raises
    ------
    TypeError
        When it is none of these.
    ValueError
        When a path leads to a file that is no journal.
    """
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if isinstance(storage, str) and "://" in storage:
        return _open_database(storage)
    if isinstance(storage, (str, os.PathLike)):
        return open_journal(Path(storage).expanduser().absolute())
    raise TypeError(
        "storage must be None, a database URL ('sqlite:///study.db'), the path of a journal file or an optuna storage, "
        f"got {type(storage).__name__}."
    )


def _open_database(url: str) -> RDBStorage:
    sqlite = url.startswith("sqlite") and "timeout=" not in url
    options = {"connect_args": {"timeout": SQLITE_WAIT}} if sqlite else {}
    for pause in (0.2, 0.5):
        try:
            with storage_errors(url):
                return RDBStorage(url, engine_kwargs=options)
        except TimeoutError:
            raise
        except OSError:  # two processes that make the tables of a new database trip over each other
            time.sleep(pause)
    with storage_errors(url):
        return RDBStorage(url, engine_kwargs=options)


def close(storage: BaseStorage, given: Any) -> None:
    """Close the connections of a database that we opened; a study opens them again when it is asked something."""
    storage.remove_session()
    if isinstance(storage, RDBStorage) and storage is not given:
        storage.engine.dispose()


# -- the study ------------------------------------------------------------------------------------------------------


def open_study(storage: BaseStorage, name: str | None, sampler: Any, pruner: Any) -> Study:
    """Open the study of this name, or make it; without a name make one that nobody else has."""
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        sampler=sampler,
        pruner=pruner,
        direction="maximize",
        load_if_exists=name is not None,
    )
    if study.directions != [StudyDirection.MAXIMIZE]:
        raise ValueError(
            f"study {study.study_name!r} does not maximize one value, so it was made by something else; pass a new "
            "study_name."
        )
    return study


def claim(study: Study, record: dict[str, Any], distributions: dict[str, BaseDistribution]) -> None:
    """Write into a new study what it is for, or compare that of an old one.

    Parameters
    ----------
    study : Study
        New or old.
    record : dict
        Texts by kind; see `_fingerprints.record_of`.
    distributions : dict
        What a trial draws from.

    Raises
    ------
    ValueError
        When the study was made for something else; it says what, and what to do.
    """
    before = study.user_attrs.get(RECORD)
    remedy = f"study {study.study_name!r} was made for another search: %s. Pass a new study_name, or search as before."
    if before is not None:
        found = differences(before, record)
        if found:
            raise ValueError(remedy % "; ".join(found))
    for trial in study.get_trials(deepcopy=False):
        for name, old in trial.distributions.items():
            if name in distributions and not _compatible(old, distributions[name]):
                old_text, new_text = (
                    shown(distribution_to_json(kind)) for kind in (old, distributions[name])
                )
                raise ValueError(remedy % f"space[{name!r}] was {old_text}, is {new_text}")
    if before is None:
        study.set_user_attr(RECORD, record)


def _compatible(old: BaseDistribution, new: BaseDistribution) -> bool:
    try:
        check_distribution_compatibility(old, new)
    except ValueError:
        return False
    return True


# -- who draws, who prunes ------------------------------------------------------------------------------------------


class SeededByNumber(optuna.samplers.BaseSampler):
    """TPE, seeded anew for each trial with the study's seed and the trial's number.

    One seed for a whole run would draw the first trials again when a study is resumed, and the same ones in each of
    several processes that share a study.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._here = threading.local()  # each thread draws one trial at a time

    def __deepcopy__(self, memo: dict[int, Any]) -> SeededByNumber:
        return SeededByNumber(self._seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return SeededByNumber, (self._seed,)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Make the sampler of this trial."""
        seed = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)[0]
        self._here.sampler = optuna.samplers.TPESampler(seed=int(seed))
        self._here.sampler.before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """See optuna."""
        space: dict[str, BaseDistribution] = self._here.sampler.infer_relative_search_space(study, trial)
        return space

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """See optuna."""
        drawn: dict[str, Any] = self._here.sampler.sample_relative(study, trial, search_space)
        return drawn

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """See optuna."""
        return self._here.sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Any) -> None:
        """See optuna."""
        self._here.sampler.after_trial(study, trial, state, values)


def as_sampler(sampler: Any, random_state: Any) -> optuna.samplers.BaseSampler:
    """Return a sampler of our own to draw with, so that the user's stays as it was."""
    if sampler is None:
        return SeededByNumber(_seed(random_state))
    if not isinstance(sampler, optuna.samplers.BaseSampler):
        raise TypeError(
            f"sampler must be None or an optuna sampler, got {type(sampler).__name__} ({sampler!r:.80})."
        )
    return copy.deepcopy(sampler)


def _seed(random_state: Any) -> int:
    """Draw a seed; None takes none from NumPy's global generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if (
        isinstance(random_state, (int, np.integer))
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(
        f"random_state must be None, an int of at least 0 or a numpy.random.RandomState, got {random_state!r}."
    )


def as_pruner(pruner: Any, epochs: int, n_steps: int) -> optuna.pruners.BasePruner:
    """Return the pruner for trials of at most `n_steps` steps, `epochs` of them a fold."""
    if pruner is None:
        return optuna.pruners.NopPruner()
    if isinstance(pruner, optuna.pruners.BasePruner):
        return copy.deepcopy(pruner)
    if not isinstance(pruner, str):
        raise TypeError(
            f"pruner must be None, one of {PRUNERS} or an optuna pruner, got {type(pruner).__name__}."
        )
    check_choice("pruner", pruner, PRUNERS)
    if pruner == "median":
        # while the learning rate climbs all scores are near chance, and their order says nothing
        return optuna.pruners.MedianPruner(n_warmup_steps=epochs // 3)
    return optuna.pruners.HyperbandPruner(min_resource=1, max_resource=n_steps)


# -- what optuna says -----------------------------------------------------------------------------------------------


class _Quiet:
    """Optuna's verbosity while searches run: one setting for the process, so the last one out puts it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._before = 0

    @contextmanager
    def __call__(self, verbose: int) -> Iterator[None]:
        with self._lock:
            if not self._running:
                self._before = optuna.logging.get_verbosity()
            self._running += 1
            level = optuna.logging.INFO if verbose else max(self._before, optuna.logging.ERROR)
            optuna.logging.set_verbosity(level)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    optuna.logging.set_verbosity(self._before)


verbosity = _Quiet()


def probe(space: Any) -> tuple[dict[str, Any], dict[str, BaseDistribution]]:
    """Draw parameters once in a study of its own: what a space gives, before anything is fitted."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trial = study.ask()
    params = space.suggest(trial)
    return params, dict(trial.distributions)
