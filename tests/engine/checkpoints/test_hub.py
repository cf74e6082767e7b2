"""Hub repositories: the cache first, one bounded call, a download of what is needed, errors with remedies.

The hub is a small server on this machine (see conftest.py): the real client does the work, and nothing leaves
the machine.
"""

import json
import logging
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from huggingface_hub import constants

from sktransformer._engine.checkpoints import hub
from sktransformer._engine.checkpoints.hub import hub_folder
from sktransformer._engine.checkpoints.sources import resolve
from sktransformer._engine.errors import CheckpointCorruptError, CheckpointNotFoundError
from sktransformer.testing.checkpoints import tiny_checkpoint

COMMIT = "0123456789abcdef0123456789abcdef01234567"
UNNEEDED = (
    "README.md",
    "tf_model.h5",
    "onnx/model.onnx",
    "onnx/config.json",
    "training_args.bin",
    "pytorch_model.bin",
)


def _files(name="roberta"):
    folder = tiny_checkpoint(name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _put_in_cache(cache, repository, files):
    """Lay files into a cache as the hub's client does."""
    root = cache / f"models--{repository.replace('/', '--')}"
    snapshot = root / "snapshots" / COMMIT
    for path, content in files.items():
        (snapshot / path).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / path).write_bytes(content)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(COMMIT)
    return snapshot


def _fail(repository="owner/model", **keywords):
    with pytest.raises(CheckpointNotFoundError) as caught:
        hub_folder(repository, **keywords)
    return str(caught.value)


# Downloading


def test_download_takes_what_is_needed_and_nothing_else(server, cache, capfd):
    files = _files()
    extra = {
        "1_Pooling/config.json": b"{}",
        "modules.json": b"[]",
        "config_sentence_transformers.json": b"{}",
    }
    server.add("owner/model", {**files, **extra, **dict.fromkeys(UNNEEDED, b"unneeded")})
    folder = hub_folder("owner/model")
    assert folder == cache / "models--owner--model" / "snapshots" / COMMIT
    got = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert got == {**files, **extra}
    assert capfd.readouterr() == ("", "")


def test_a_second_time_no_request_is_made(server):
    server.add("owner/model", _files())
    first = hub_folder("owner/model")
    server.requests.clear()
    assert hub_folder("owner/model") == first
    assert server.requests == []


def test_resolve_says_hub_and_gives_the_checked_folder(server):
    server.add("owner/model", _files())
    source = resolve("owner/model")
    assert (source.kind, source.name) == ("hub", "owner/model")
    assert (source.folder / "model.safetensors").is_file()


def test_pickled_weights_only_where_there_is_nothing_better(server):
    files = _files()
    del files["model.safetensors"]
    server.add("owner/model", {**files, "pytorch_model.bin": b"PK nothing that can be read"})
    with pytest.raises(CheckpointCorruptError, match=r"pytorch_model\.bin"):
        hub_folder("owner/model")
    assert ("GET", f"/owner/model/resolve/{COMMIT}/pytorch_model.bin") in server.requests


def test_shards_come_with_their_index(server):
    files = _files()
    weights = files.pop("model.safetensors")
    index = json.dumps({"weight_map": {"w": "model-00001-of-00001.safetensors"}}).encode()
    server.add(
        "owner/model",
        {
            **files,
            "model.safetensors.index.json": index,
            "model-00001-of-00001.safetensors": weights,
            "pytorch_model-00001-of-00001.bin": b"unneeded",
        },
    )
    names = {path.name for path in hub_folder("owner/model").iterdir()}
    assert {"model.safetensors.index.json", "model-00001-of-00001.safetensors"} <= names
    assert "pytorch_model-00001-of-00001.bin" not in names


def test_a_bar_is_shown_when_asked_for(server, capfd, monkeypatch):
    monkeypatch.setenv("TQDM_POSITION", "-1")  # shows the hub's bars where there is no terminal
    server.add("owner/model", _files())
    hub_folder("owner/model", progress=True)
    assert "100%" in capfd.readouterr().err


def test_a_partial_cache_is_completed(server, cache):
    files = _files()
    _put_in_cache(cache, "owner/model", {"config.json": files["config.json"]})
    server.add("owner/model", files)
    assert (hub_folder("owner/model") / "model.safetensors").read_bytes() == files["model.safetensors"]


def test_a_damaged_file_in_the_cache_is_replaced(server, cache):
    files = _files()
    half = files["model.safetensors"][:1000]
    _put_in_cache(cache, "owner/model", {**files, "model.safetensors": half})
    server.add("owner/model", files)
    assert (hub_folder("owner/model") / "model.safetensors").read_bytes() == files["model.safetensors"]


def test_a_repository_that_is_damaged_itself(server):
    files = _files()
    server.add("owner/model", {**files, "model.safetensors": files["model.safetensors"][:1000]})
    with pytest.raises(CheckpointCorruptError, match="only half copied"):
        hub_folder("owner/model")


def test_nothing_global_is_left_changed(server, monkeypatch):
    from huggingface_hub.utils import are_progress_bars_disabled

    logger = logging.getLogger("huggingface_hub")
    before = (logger.level, list(logger.handlers), are_progress_bars_disabled(), dict(os.environ), Path.cwd())
    server.add("owner/model", _files())
    hub_folder("owner/model")
    _fail("owner/other")
    assert before == (
        logger.level, list(logger.handlers), are_progress_bars_disabled(), dict(os.environ), Path.cwd()
    )  # fmt: skip


# Refusals


def test_an_unknown_repository(server):
    message = _fail("owner/modle")
    assert "knows no repository 'owner/modle'" in message
    assert "Check the spelling" in message


def test_an_unknown_repository_that_is_bundled_under_another_name(server):
    assert "Did you mean 'bundled:all-MiniLM-L6-v2'?" in _fail("sentence-transfomers/all-MiniLM-L6-v2")


@pytest.mark.parametrize(("status", "code"), [(403, "GatedRepo"), (401, "GatedRepo"), (403, "")])
@pytest.mark.parametrize("where", ["refusals", "file_refusals"])
def test_a_gated_repository(server, status, code, where):
    server.add("owner/model", _files())
    getattr(server, where)["owner/model"] = (status, code)
    message = _fail()
    assert "gated or private" in message
    assert "hf auth login" in message


def test_an_unknown_revision(server):
    server.add("owner/model", _files())
    assert "has no revision 'v9'" in _fail(revision="v9")


@pytest.mark.parametrize(
    ("files", "lacking"),
    [
        ({"model.gguf": b"x", "config.json": b"{}"}, "neither model.safetensors nor pytorch_model.bin"),
        ({"model.safetensors": b"x"}, "no config.json"),
    ],
)
def test_a_repository_that_is_no_checkpoint(server, files, lacking):
    server.add("owner/model", files)
    assert lacking in _fail()


def test_a_server_error_counts_as_unreachable(server):
    server.refusals["owner/model"] = (503, "")
    assert "Four ways out" in _fail()


def test_a_download_that_breaks_off(server):
    server.add("owner/model", _files())
    server.file_refusals["owner/model"] = (400, "")
    message = _fail()
    assert "the download of 'owner/model' broke off" in message
    assert "run again" in message


# Without the hub


def _assert_four_ways(message, repository):
    assert f"can't load the hub repository {repository!r}" in message
    for way in (
        "HTTPS_PROXY",
        f"hf download {repository}",
        "local folder",
        "'bundled:multilingual-e5-small'",
    ):
        assert way in message
    assert "train from scratch" in message


def test_unreachable_names_the_four_ways_out(unreachable, cache):
    start = time.perf_counter()
    message = _fail()
    assert time.perf_counter() - start < 5
    _assert_four_ways(message, "owner/model")
    assert f"the local cache {cache} does not hold it" in message


def test_a_hub_that_does_not_answer_costs_less_than_five_seconds(silent):
    start = time.perf_counter()
    message = _fail()
    assert time.perf_counter() - start < 5
    _assert_four_ways(message, "owner/model")


def test_a_name_look_up_that_hangs_costs_less_than_five_seconds(cache, monkeypatch):
    # The look-up knows no time-out of its own, so the call as a whole must have one.
    released = threading.Event()
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *a, **k: released.wait(30))
    start = time.perf_counter()
    try:
        message = _fail()
    finally:
        released.set()
    assert time.perf_counter() - start < 5
    assert "no answer within 4 seconds" in message
    _assert_four_ways(message, "owner/model")


def test_off_line_mode_is_honoured(server, monkeypatch):
    server.add("owner/model", _files())
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    message = _fail()
    assert server.requests == []
    assert "HF_HUB_OFFLINE" in message
    _assert_four_ways(message, "owner/model")


def test_a_cache_that_somebody_copied_here_is_enough(unreachable, cache):
    snapshot = _put_in_cache(cache, "owner/model", _files())
    assert hub_folder("owner/model") == snapshot
    assert hub_folder("owner/model", revision=COMMIT) == snapshot


def test_a_partial_cache_counts_as_none_and_is_named(unreachable, cache):
    files = _files()
    del files["model.safetensors"]
    _put_in_cache(cache, "owner/model", files)
    message = _fail()
    assert "holds it only in part" in message
    assert "holds no weights" in message
    _assert_four_ways(message, "owner/model")


def test_downloaded_then_cut_off(server, cache, monkeypatch):
    server.add("owner/model", _files())
    folder = hub_folder("owner/model")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub_folder("owner/model") == folder
    shutil.rmtree(cache)
    _assert_four_ways(_fail(), "owner/model")


def test_an_unreachable_hub_is_not_asked_again_through_other_addresses(unreachable, monkeypatch):
    calls = []
    real = hub._bounded
    monkeypatch.setattr(hub, "_bounded", lambda call, seconds: calls.append(seconds) or real(call, seconds))
    _fail()
    assert calls == [hub.TOTAL_TIMEOUT]
