"""What every estimator of texts guarantees, as checks that estimators of other projects can be put through too.

Each check is one guarantee, under a line of the contract: parameters and state (1 to 5), inputs (6 to 8), labels and
weights (9, 10), numbers (11 to 13), resources (15 to 18), training (19, 20), life inside scikit-learn (21). Lines 14
and 22 are about sequences of words. A check applies where the estimator has what it is about: a parameter, a method,
a kind.
"""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..._engine.errors import did_you_mean

# the order of these imports does not matter: `_ordered` sorts the checks by line
from . import (
    classifiers,
    inputs,
    integration,
    labels,
    numbers,
    parameters_state,
    regressors,
    resources,
    training,
)
from .registry import CHECKS, Check
from .samples import Sample
from .subject import Subject

__all__ = ["Sample", "check_text_estimator", "guarantees", "text_estimator_checks"]

ROOMS = (parameters_state, inputs, labels, numbers, resources, training, integration, classifiers, regressors)


def _ordered() -> list[Check]:
    return sorted(CHECKS, key=lambda one: one.line)


def guarantees() -> list[tuple[int, str, str]]:
    """Return line, name and guarantee of every check there is, in the order of the contract.

    Returns
    -------
    list of (int, str, str)
        One tuple a check; a line has several.

    Examples
    --------
    >>> from sktransformer.testing import guarantees
    >>> line, name, guarantee = guarantees()[0]
    >>> line, name
    (1, 'clone_is_cheap')
    """
    return [(one.line, one.name, one.guarantee) for one in _ordered()]


def text_estimator_checks(
    estimator: Any, *, sample: Sample | None = None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the checks that apply to an estimator of texts, for a test runner to parametrize.

    Parameters
    ----------
    estimator : estimator instance
        Not fitted, and cheap to fit: it is fitted some hundred times. It is cloned, never changed.
    sample : Sample, optional
        What to fit on and read; by default eighteen short texts, with three classes for a classifier and
        numbers for a regressor.

    Yields
    ------
    name : str
        Name of the guarantee.
    run : callable
        Takes nothing, returns None, and raises AssertionError when the guarantee is broken. The checks of one call
        share a fitted estimator.

    See Also
    --------
    check_text_estimator : Runs them all.

    Examples
    --------
    With pytest, one test a check:

    >>> import pytest
    >>> from sktransformer import TransformerEmbedder
    >>> from sktransformer.testing import text_estimator_checks, tiny_checkpoint
    >>> embedder = TransformerEmbedder(tiny_checkpoint("bert"))
    >>> @pytest.mark.parametrize("name, check", text_estimator_checks(embedder))
    ... def test_contract(name, check):
    ...     check()

    or by hand:

    >>> checks = dict(text_estimator_checks(embedder))
    >>> checks["constructor_only_assigns"]()
    """
    subject = Subject(estimator, sample)
    for one in _ordered():
        if one.applies(subject):
            yield one.name, functools.partial(one, subject)


def check_text_estimator(
    estimator: Any, *, excused: Mapping[str, str] | None = None, sample: Sample | None = None
) -> dict[str, str]:
    """Put an estimator of texts through every check that applies to it.

    Parameters
    ----------
    estimator : estimator instance
        A classifier, regressor or transformer that reads texts, not fitted, with parameters that make it cheap
        to fit (some hundred fits on eighteen short texts). It is cloned, never changed.
    excused : dict of str, optional
        Reasons, by the names of checks that are known to fail. An excused check runs all the same, and must fail: an
        excuse that is no longer needed is an error.
    sample : Sample, optional
        What to fit on and read, for an estimator that reads something else than single texts.

    Returns
    -------
    dict of str
        By check: ``"passed"``, ``"excused: <reason>"`` or ``"skipped: <reason>"`` (an optional package is missing).

    Raises
    ------
    AssertionError
        When a check fails that is not excused, or an excused one passes. All checks run first; the message lists what
        failed, and the first failure is its cause.
    ValueError
        When `excused` names a check that does not exist or does not apply.

    See Also
    --------
    text_estimator_checks : The same checks one by one, for a test runner.
    guarantees : What each of them guarantees.

    Notes
    -----
    Some checks start one further process, without network and GPU, and cross-validation with two worker processes: the
    estimator's class must be importable there. What is measured in time or memory (`clone_is_cheap`,
    `fits_leave_no_memory`, `readings_leave_no_memory`) allows for a busy machine.

    Examples
    --------
    >>> from sktransformer import EmailCleaner
    >>> from sktransformer.testing import check_text_estimator
    >>> results = check_text_estimator(EmailCleaner())
    >>> set(results.values())
    {'passed'}
    >>> results["containers_read_alike"]
    'passed'
    """
    checks = dict(text_estimator_checks(estimator, sample=sample))
    reasons = dict(excused or {})
    for name in reasons:
        if name not in checks:
            raise ValueError(
                f"excused names {name!r}, which is no check of this estimator.{did_you_mean(name, checks)}"
            )
    results: dict[str, str] = {}
    failures: list[tuple[str, BaseException]] = []
    for name, run in checks.items():
        try:
            run()
        except unittest.SkipTest as reason:
            results[name] = f"skipped: {reason}"
        except Exception as error:
            if name in reasons:
                results[name] = f"excused: {reasons[name]}"
            else:
                failures.append((name, error))
        else:
            results[name] = "passed"
            if name in reasons:
                failures.append((name, AssertionError(f"it passes, although it is excused: {reasons[name]}")))
    if failures:
        lines = [f"  {name}: {type(error).__name__}: {error}" for name, error in failures]
        raise AssertionError(
            f"{type(estimator).__name__} fails {len(failures)} of {len(checks)} checks:\n" + "\n".join(lines)
        ) from failures[0][1]
    return results
