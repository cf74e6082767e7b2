"""A second process, with no network and no GPU, in which estimators are loaded and run under watch.

Started once and kept, since importing torch costs seconds: it reads one job a line and answers with a line. Each job is
a folder that `ask` fills and whose ``answer.pkl`` the room writes.
"""

from __future__ import annotations

import atexit
import io
import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

HIDDEN = (
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "TOKENIZERS_PARALLELISM",
    "TQDM_DISABLE",
    "PYTHONWARNINGS",
)
NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.sendto")
PROCESSES = ("os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system", "subprocess.Popen")
ENVIRONMENT = ("os.putenv", "os.unsetenv")

_room: subprocess.Popen[str] | None = None


def ask(files: dict[str, bytes], timeout: float = 300.0) -> dict[str, Any]:
    """Have the room load and run what `files` hold, and return what it saw.

    Parameters
    ----------
    files : dict of bytes
        ``subject.pkl``, a pickled `Subject`, and fitted estimators as ``*.joblib``, ``*.pkl`` or ``*.skops``.
    timeout : float, default=300.0
        Seconds.

    Returns
    -------
    dict
        See `_work`, whose answer it is.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        room = _open()
        assert room.stdin is not None  # both are pipes
        assert room.stdout is not None
        # where modules are found may have changed since the room was opened
        room.stdin.write(json.dumps([folder, sys.path]) + "\n")
        room.stdin.flush()
        if not room.stdout.readline():
            raise AssertionError(f"the second process ended (exit status {room.wait(timeout)})")
        answer: dict[str, Any] = pickle.loads(Path(folder, "answer.pkl").read_bytes())
    if "error" in answer:
        raise AssertionError(f"in a second process without network and GPU:\n{answer['error']}")
    return answer


def _open() -> subprocess.Popen[str]:
    global _room
    if _room is None or _room.poll() is not None:
        environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        environment["CUDA_VISIBLE_DEVICES"] = ""
        start = (
            "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
            f"from {__name__} import serve; serve(sys.stdin, sys.stdout)"
        )
        _room = subprocess.Popen(
            [sys.executable, "-c", start, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        atexit.register(_close, _room)
    return _room


def _close(room: subprocess.Popen[str]) -> None:
    if room.stdin is not None:
        room.stdin.close()
    if room.stdout is not None:
        room.stdout.close()
    with suppress(subprocess.TimeoutExpired):
        room.wait(10)
    room.kill()


# -- inside the room -----------------------------------------------------------------------------------------------


def serve(jobs: TextIO, answers: TextIO) -> None:
    """Answer jobs until there are no more."""
    answers = os.fdopen(os.dup(answers.fileno()), "w")  # what jobs print must not get in between
    events: list[tuple[str, str]] = []
    sys.addaudithook(_watcher(events))
    for line in jobs:
        name, sys.path[:] = json.loads(line)
        folder = Path(name)
        try:
            answer = _work(folder, events)
        except BaseException:  # whatever it is, the other side shows it
            answer = {"error": traceback.format_exc()}
        (folder / "answer.pkl").write_bytes(pickle.dumps(answer))
        answers.write("done\n")
        answers.flush()


def _watcher(events: list[tuple[str, str]]) -> Callable[[str, tuple[Any, ...]], None]:
    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in NETWORK:
            events.append((event, repr(arguments[-1])))
            raise ConnectionError("there is no network in here")
        if event in PROCESSES or event in ENVIRONMENT:
            events.append((event, repr(arguments)))

    return watch


def _work(folder: Path, events: list[tuple[str, str]]) -> dict[str, Any]:
    """Load each stored estimator and read the sample with it, then fit and read anew, and say what happened.

    Returns
    -------
    dict
        "outputs": by file, what the stored estimators gave; "again": what a new fit gave; "printed", "logged",
        "warned": everything said meanwhile, and at a fork; "written": files in the current folder; "events": attempts
        to reach the network, to start processes or to change the environment; "changed": environment variables.
    """
    from .subject import Subject

    subject = Subject(*pickle.loads((folder / "subject.pkl").read_bytes()))
    here = folder / "current"
    here.mkdir()
    before, environment = os.getcwd(), dict(os.environ)
    os.chdir(here)
    here.chmod(0o555)
    events.clear()
    try:
        with _listening(folder) as heard:
            outputs = {path.name: subject.read(_load(path)) for path in _stored(folder)}
            again = subject.read(subject.fit())
            seen = list(events)
            _fork()
    finally:
        here.chmod(0o755)
        os.chdir(before)
    changed = sorted(name for name, _ in dict(os.environ).items() ^ environment.items())
    written = sorted(path.name for path in here.rglob("*"))
    return {
        "outputs": outputs,
        "again": again,
        "events": seen,
        "changed": changed,
        "written": written,
        **heard,
    }


def _stored(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.stem == "fitted")


def _load(path: Path) -> Any:
    if path.suffix == ".joblib":
        import joblib

        return joblib.load(path)
    if path.suffix == ".skops":
        from skops.io import get_untrusted_types, load

        return load(path, trusted=get_untrusted_types(file=path))
    return pickle.loads(path.read_bytes())


def _fork() -> None:
    """Fork once: libraries that start threads by themselves complain on standard error in the child."""
    if hasattr(os, "fork"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, about forks beside any thread
            child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


@contextmanager
def _listening(folder: Path) -> Iterator[dict[str, Any]]:
    """Collect what is printed (by C and Rust too), logged and warned."""
    from sklearn.exceptions import ConvergenceWarning

    heard: dict[str, Any] = {}
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    printed = folder / "printed.txt"
    kept = [os.dup(1), os.dup(2)]
    try:
        with printed.open("wb") as sink, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps on a few texts
            for descriptor in (1, 2):
                os.dup2(sink.fileno(), descriptor)
            yield heard
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        for descriptor, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, descriptor)
            os.close(copy)
        logging.getLogger().removeHandler(handler)
    heard["printed"] = printed.read_text("utf-8", "replace")
    heard["logged"] = log.getvalue()
    heard["warned"] = [f"{one.category.__name__}: {one.message}" for one in caught]
