"""The user's cache folder, and folders in it that appear whole or not at all."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sktransformer._engine.checkpoints.bundled import cache
from sktransformer._engine.checkpoints.bundled.cache import cache_root, publish
from sktransformer._engine.errors import CheckpointCorruptError


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SKTRANSFORMER_CACHE", raising=False)
    assert cache_root() == tmp_path / "sktransformer"
    monkeypatch.setenv("SKTRANSFORMER_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    assert list(tmp_path.iterdir()) == []  # asking creates nothing


@pytest.mark.parametrize(
    ("platform", "parts"),
    [
        ("linux", (".cache", "sktransformer")),
        ("darwin", ("Library", "Caches", "sktransformer")),
        ("win32", ("AppData", "Local", "sktransformer", "Cache")),
    ],
)
def test_the_cache_folder_follows_the_platform(monkeypatch, tmp_path, platform, parts):
    for name in ("XDG_CACHE_HOME", "SKTRANSFORMER_CACHE", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cache.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_root() == tmp_path.joinpath(*parts)


def _good(folder):
    if not (folder / "whole").exists():
        raise CheckpointCorruptError("not whole")


def _build(folder):
    (folder / "part").write_text("x")
    (folder / "whole").write_text("x")


def test_a_folder_is_built_once(tmp_path):
    calls = []

    def build(folder):
        calls.append(folder)
        _build(folder)

    target = tmp_path / "deep" / "target"
    assert publish(target, build, _good) == target
    assert publish(target, build, _good) == target
    assert len(calls) == 1
    assert sorted(path.name for path in target.iterdir()) == ["part", "whole"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_build_that_fails_leaves_nothing(tmp_path, error):
    def build(folder):
        (folder / "part").write_text("x")
        raise error("in the middle")

    with pytest.raises(error, match="in the middle"):
        publish(tmp_path / "target", build, _good)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_build_that_is_not_whole_is_not_published(tmp_path):
    with pytest.raises(CheckpointCorruptError, match="not whole"):
        publish(tmp_path / "target", lambda folder: (folder / "part").write_text("x"), _good)
    assert not (tmp_path / "target").exists()


def test_a_damaged_folder_is_built_anew(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "remains").write_text("x")
    publish(target, _build, _good)
    assert sorted(path.name for path in target.iterdir()) == ["part", "whole"]


PUBLISH = """
import sys, time
from pathlib import Path
from sktransformer._engine.checkpoints.bundled.cache import publish

def build(folder):
    with open(sys.argv[2], "a") as log:
        log.write("x")
    (folder / "part").write_text("x")
    time.sleep(float(sys.argv[3]))
    (folder / "whole").write_text("x")

def check(folder):
    assert (folder / "whole").exists()

publish(Path(sys.argv[1]), build, check)
"""


def _start(tmp_path, seconds):
    arguments = [str(tmp_path / "target"), str(tmp_path / "log"), str(seconds)]
    return subprocess.Popen([sys.executable, "-c", PUBLISH, *arguments])


def test_several_processes_at_once_build_once(tmp_path):
    processes = [_start(tmp_path, 0.5) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "x"
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["part", "whole"]


def test_a_killed_process_leaves_nothing_that_is_taken_for_whole(tmp_path):
    process = _start(tmp_path, 60)
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob(".target.unfinished-*/part")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait(60)
    assert not (tmp_path / "target").exists()
    publish(tmp_path / "target", _build, _good)  # the killed process does not hold the lock
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["part", "whole"]


def test_remains_are_swept_when_they_are_old(tmp_path):
    old, recent = tmp_path / ".target.unfinished-1-a", tmp_path / ".target.unfinished-2-b"
    for folder in (old, recent):
        folder.mkdir()
    long_ago = time.time() - cache.ABANDONED - 60
    os.utime(old, (long_ago, long_ago))
    publish(tmp_path / "target", _build, _good)
    assert not old.exists()
    assert recent.exists()  # another process may be at work in it


def test_files_get_the_rights_of_their_folder(tmp_path):
    def build(folder):
        _build(folder)
        (folder / "part").chmod(0o600)

    folder = publish(tmp_path / "target", build, _good)
    assert (folder / "part").stat().st_mode & 0o777 == folder.stat().st_mode & 0o666


def test_a_cache_that_cannot_be_written_names_the_way_out(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="SKTRANSFORMER_CACHE") as caught:
        publish(tmp_path / "file" / "target", _build, _good)
    assert caught.value.errno is not None


def test_a_full_disk_names_the_way_out(tmp_path):
    def build(folder):
        raise OSError(28, "No space left on device", str(folder / "model.safetensors"))

    with pytest.raises(OSError, match=r"No space left on device.*SKTRANSFORMER_CACHE") as caught:
        publish(tmp_path / "target", build, _good)
    assert caught.value.errno == 28
    assert not (tmp_path / "target").exists()
