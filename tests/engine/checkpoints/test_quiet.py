"""Silence for the length of a call: restored after errors, when nested, and when threads overlap."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from transformers.utils import logging

from sktransformer._engine.checkpoints.quiet import quiet_transformers


@pytest.fixture(autouse=True)
def _verbosity() -> Iterator[None]:
    before = logging.get_verbosity()
    logging.set_verbosity_info()
    yield
    logging.set_verbosity(before)


def hook() -> object:
    """Return the hook that makes Transformers' bars."""
    current = logging.set_tqdm_hook(None)
    logging.set_tqdm_hook(current)
    return current


def test_lines_below_errors_and_bars_are_silenced_and_come_back(capfd: pytest.CaptureFixture[str]) -> None:
    before = hook()
    with quiet_transformers():
        assert logging.get_verbosity() == logging.ERROR
        for _ in logging.tqdm(range(3), desc="loading"):
            pass
        logging.get_logger("transformers.modeling_utils").warning("a report")
    assert logging.get_verbosity() == logging.INFO
    assert hook() is before
    assert capfd.readouterr() == ("", "")


def test_silence_ends_with_an_error_too() -> None:
    before = hook()
    with pytest.raises(ZeroDivisionError), quiet_transformers():
        _ = 1 / 0
    assert logging.get_verbosity() == logging.INFO
    assert hook() is before


def test_silence_may_be_nested() -> None:
    with quiet_transformers():
        with quiet_transformers():
            assert logging.get_verbosity() == logging.ERROR
        assert logging.get_verbosity() == logging.ERROR
    assert logging.get_verbosity() == logging.INFO


def test_the_last_thread_to_leave_ends_the_silence() -> None:
    before = hook()
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with quiet_transformers():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=stay)
    with quiet_transformers():
        thread.start()
        assert entered.wait(10)
    assert logging.get_verbosity() == logging.ERROR  # the other is still inside
    leave.set()
    thread.join()
    assert logging.get_verbosity() == logging.INFO
    assert hook() is before
