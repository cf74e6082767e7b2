"""A model as plain bytes: out and in again it is the same model, anywhere; what is damaged or newer says so."""

from __future__ import annotations

import copy
import io
import pickle
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch

from sktransformer._engine.checkpoints import bundle as room
from sktransformer._engine.checkpoints.bundle import from_bundle, to_bundle, versions
from sktransformer._engine.checkpoints.heads import Head
from sktransformer._engine.checkpoints.loading import Checkpoint, load_checkpoint
from sktransformer._engine.checkpoints.packing import ATTENTION
from sktransformer._engine.checkpoints.sources import resolve
from sktransformer._engine.errors import PersistenceError, VersionMismatchWarning
from sktransformer.testing.checkpoints import ENCODERS, SENTENCES, tiny_checkpoint

Loader = Callable[..., Checkpoint]
CLASSIFIERS = [*ENCODERS, "t5", "bart", "gpt2", "llama"]
BOTH_HEADS: list[tuple[str, Head]] = [
    *((name, "classification") for name in CLASSIFIERS),
    *((name, "encoder") for name in ENCODERS),
]


def travelled(bundle: dict[str, Any]) -> dict[str, Any]:
    """Send a bundle through pickle."""
    result: dict[str, Any] = pickle.loads(pickle.dumps(bundle))
    return result


def output(loaded: Checkpoint, text: str) -> torch.Tensor:
    ids = loaded.tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        return loaded.model(input_ids=ids)[0]  # type: ignore[no-any-return]


@pytest.fixture
def bert(checkpoint: Loader) -> dict[str, Any]:
    """Return a bundle of the test's own; its arrays are copies, not views of the shared model."""
    return travelled(to_bundle(checkpoint("bert", "classification"), "classification"))


# -- the same model ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "head"), BOTH_HEADS)
def test_out_and_in_it_is_the_same_model(name: str, head: Head, checkpoint: Loader) -> None:
    before = checkpoint(name, head)
    after = from_bundle(travelled(to_bundle(before, head)))
    assert type(after.model) is type(before.model)
    assert after.packable == before.packable
    assert (after.model.config._attn_implementation == ATTENTION) == after.packable
    assert not after.model.training
    fields = before.model.config.to_dict()
    assert after.model.config.to_dict() == {**fields, "_name_or_path": ""}
    for key, tensor in before.model.state_dict().items():
        assert torch.equal(after.model.state_dict()[key], tensor), key
    for text in SENTENCES[:3]:
        assert after.tokenizer(text, text)["input_ids"] == before.tokenizer(text, text)["input_ids"]
        assert torch.equal(output(after, text), output(before, text))
    assert after.tokenizer.model_max_length == before.tokenizer.model_max_length
    assert after.tokenizer.padding_side == before.tokenizer.padding_side


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_it_travels_twice(name: str, checkpoint: Loader) -> None:
    first = to_bundle(checkpoint(name, "classification"), "classification")
    second = to_bundle(from_bundle(travelled(first)), "classification")
    assert second["tokenizer"] == first["tokenizer"]
    assert second["config"] == first["config"]
    assert second["weights"].keys() == first["weights"].keys()
    for key, array in first["weights"].items():
        np.testing.assert_array_equal(second["weights"][key], array)


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_tied_weights_travel_once(name: str, checkpoint: Loader) -> None:
    model = checkpoint(name, "classification").model
    bundle = to_bundle(checkpoint(name, "classification"), "classification")
    assert len(bundle["weights"]) < len(model.state_dict())
    n_numbers = sum(parameter.numel() for parameter in model.parameters())  # tied ones once
    buffers = sum(buffer.numel() for key, buffer in model.named_buffers() if key in bundle["weights"])
    assert sum(array.size for array in bundle["weights"].values()) == n_numbers + buffers


def test_loaded_weights_are_tied_again(checkpoint: Loader) -> None:
    model: Any = from_bundle(travelled(to_bundle(checkpoint("t5", "classification"), "classification"))).model
    assert model.transformer.encoder.embed_tokens.weight is model.transformer.shared.weight


def test_half_precision_keeps_its_bits(fresh_checkpoint: Loader) -> None:
    before = fresh_checkpoint("bert", "classification")
    before.model.to(torch.bfloat16)  # type: ignore[arg-type]
    bundle = travelled(to_bundle(before, "classification"))
    assert {array.dtype for array in bundle["weights"].values()} == {np.dtype(np.int16)}
    after = from_bundle(bundle)
    for key, tensor in before.model.state_dict().items():
        loaded = after.model.state_dict()[key]
        assert loaded.dtype is torch.float32
        assert torch.equal(loaded, tensor.float()), key


def test_a_tokenizer_without_a_backend_travels(checkpoint: Loader) -> None:
    before = checkpoint("flaubert", "encoder")
    after = from_bundle(travelled(to_bundle(before, "encoder")))
    text = "L'été à Montréal , où est la gare ?"
    assert after.tokenizer.tokenize(text) == before.tokenizer.tokenize(text)


# -- anywhere ----------------------------------------------------------------------------------------------------------


def test_the_source_folder_may_be_gone(tmp_path: Path) -> None:
    folder = tiny_checkpoint("flaubert", tmp_path / "origin-of-the-model")
    before = load_checkpoint(resolve(folder), "encoder")
    expected = output(before, SENTENCES[0])
    shutil.rmtree(folder)
    stored = pickle.dumps(to_bundle(before, "encoder"))
    assert b"origin-of-the-model" not in stored  # nor does the path travel, which may name a user
    assert torch.equal(output(from_bundle(pickle.loads(stored)), SENTENCES[0]), expected)


def test_a_bundle_is_plain(bert: dict[str, Any]) -> None:
    """Arrays, strings, numbers and bytes only, so that any serializer carries it."""

    def plain(value: Any) -> bool:
        if isinstance(value, dict):
            return all(isinstance(key, str) and plain(item) for key, item in value.items())
        return isinstance(value, (str, int, bytes, np.ndarray))

    assert plain(bert)
    assert all("\\" not in name for name in bert["tokenizer"])


def test_skops_carries_a_bundle(bert: dict[str, Any]) -> None:
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(bert)
    assert skops.get_untrusted_types(data=stored) == []
    assert from_bundle(skops.loads(stored)).packable


def test_weights_are_shared_not_copied(checkpoint: Loader) -> None:
    loaded = checkpoint("camembert", "encoder")
    bundle = to_bundle(loaded, "encoder")
    for key, tensor in loaded.model.state_dict().items():
        assert np.shares_memory(bundle["weights"][key], tensor.numpy()), key


def test_memory_mapped_weights_are_read_in_place(checkpoint: Loader, tmp_path: Path) -> None:
    before = checkpoint("bert", "classification")
    path = tmp_path / "bundle.joblib"
    joblib.dump(to_bundle(before, "classification"), path)
    mapped = joblib.load(path, mmap_mode="r")
    assert isinstance(mapped["weights"]["classifier.weight"], np.memmap)
    after = from_bundle(mapped)
    assert torch.equal(output(after, SENTENCES[0]), output(before, SENTENCES[0]))
    trained = copy.deepcopy(after.model)  # what a fit does first: a mapped file is never stepped in place
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(1.0)
    assert torch.equal(output(after, SENTENCES[0]), output(before, SENTENCES[0]))


def test_a_round_trip_draws_nothing_says_nothing_and_leaves_no_file(
    checkpoint: Loader, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = torch.get_rng_state()
    from_bundle(travelled(to_bundle(checkpoint("camembert", "classification"), "classification")))
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_versions_are_recorded(bert: dict[str, Any]) -> None:
    assert bert["versions"] == versions()
    assert {"sktransformer-text", "torch", "transformers", "tokenizers"} <= versions().keys()
    assert versions()["torch"] == torch.__version__.split("+")[0] or versions()["torch"] == torch.__version__
    assert bert["format"] == room.FORMAT == 1


def test_a_bundle_is_not_much_larger_than_its_weights(bert: dict[str, Any]) -> None:
    weights = sum(array.nbytes for array in bert["weights"].values())
    files = sum(map(len, bert["tokenizer"].values())) + len(bert["config"])
    stored = io.BytesIO()
    joblib.dump(bert, stored)
    assert len(stored.getvalue()) < weights + files + 20_000  # names and headers


# -- what can't be read ------------------------------------------------------------------------------------------------


def test_a_newer_format_raises(bert: dict[str, Any]) -> None:
    bert["format"] = room.FORMAT + 1
    bert["versions"]["sktransformer-text"] = "9.1"
    message = r"has format 2, this version reads up to 1; install sktransformer-text 9\.1 or newer"
    with pytest.raises(PersistenceError, match=message):
        from_bundle(bert)


@pytest.mark.parametrize("damaged", [{}, {"format": "1"}, {"format": None}])
def test_what_is_no_bundle_raises(damaged: dict[str, Any]) -> None:
    with pytest.raises(PersistenceError, match="holds no sktransformer model, or a damaged one"):
        from_bundle(damaged)


def test_other_versions_warn_and_name_both(bert: dict[str, Any]) -> None:
    bert["versions"]["torch"] = "1.0"
    del bert["versions"]["numpy"]
    here = versions()
    message = re.escape(f"stored with torch 1.0 (here {here['torch']}), numpy None (here {here['numpy']});")
    with pytest.warns(VersionMismatchWarning, match=message) as caught:
        from_bundle(bert)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", ["BertForNothing", "pipeline", "logging", "__doc__"])
def test_an_architecture_that_is_not_there_raises(name: str, bert: dict[str, Any]) -> None:
    bert["class"] = name
    with pytest.raises(
        PersistenceError, match=f"holds a {name}, which transformers .* does not have; install"
    ):
        from_bundle(bert)


def test_a_missing_weight_raises(bert: dict[str, Any]) -> None:
    del bert["weights"]["bert.encoder.layer.0.output.dense.weight"]
    with pytest.raises(
        PersistenceError, match=r"lacks 1 weights of its BertForSequenceClassification \(bert\.encoder"
    ):
        from_bundle(bert)


def test_a_misshapen_weight_raises(bert: dict[str, Any]) -> None:
    bert["weights"]["classifier.weight"] = bert["weights"]["classifier.weight"][:, :5]
    with pytest.raises((PersistenceError, RuntimeError), match=r"classifier\.weight|mismatch"):
        from_bundle(bert)


@pytest.mark.parametrize("name", ["../stolen.txt", "a/../../stolen.txt", "absolute"])
def test_a_tokenizer_file_stays_in_its_folder(name: str, bert: dict[str, Any], tmp_path: Path) -> None:
    outside = tmp_path / "stolen.txt"
    name = str(outside) if name == "absolute" else name
    bert["tokenizer"][name] = b"x"
    with pytest.raises(PersistenceError, match=f"wants to write {name!r} outside its folder"):
        from_bundle(bert)
    assert not outside.exists()
