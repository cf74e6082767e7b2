"""Vectors kept by content: each text is encoded once, and what comes out is what would come out anyway."""

import multiprocessing
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sktransformer._engine.errors import TruncationWarning
from sktransformer._engine.inference import vector_cache
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer.tasks._embedding import base
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

BERT = tiny_checkpoint("bert")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that a model was run on, in order."""
    texts: list[str] = []
    encode = TextEncoder.encode

    def counted(self: TextEncoder, documents: Documents, *args: Any, **options: Any) -> Any:
        texts.extend(documents.first)
        return encode(self, documents, *args, **options)

    monkeypatch.setattr(TextEncoder, "encode", counted)
    vector_cache._IN_MEMORY.clear()
    yield texts
    vector_cache._IN_MEMORY.clear()


def memories(tmp_path: Path) -> list[Any]:
    return ["memory", tmp_path / "path", joblib.Memory(tmp_path / "joblib", verbose=0)]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_a_grid_search_encodes_each_text_once(
    kind: int, tmp_path: Path, read: list[str], mails: list[str], labels: list[str]
) -> None:
    texts = [f"{mail} {i}" for i, mail in enumerate(mails)]
    grid = {"logisticregression__C": [0.1, 1.0, 10.0]}

    def search(memory: Any) -> GridSearchCV:
        pipeline = make_pipeline(TransformerEmbedder(BERT, memory=memory), LogisticRegression())
        return GridSearchCV(pipeline, grid, cv=3).fit(texts, labels)

    plain = search(None)
    read.clear()
    cached = search(memories(tmp_path)[kind])
    assert sorted(read) == sorted(texts)
    np.testing.assert_allclose(
        cached.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-6
    )
    expected = plain.best_estimator_.predict_proba(texts)
    np.testing.assert_allclose(cached.best_estimator_.predict_proba(texts), expected, atol=1e-5)


def test_all_that_decides_a_vector_is_in_its_key(tmp_path: Path, read: list[str]) -> None:
    texts = ["où est ma facture ? le colis est en retard", "le colis"]
    base_ = {"model": BERT, "memory": "memory", "max_length": 12}
    changes: list[dict[str, Any]] = [
        {},
        {"model": tiny_checkpoint("electra")},
        {"max_length": 14},
        {"truncation": "head"},
        {"truncation": "chunk", "stride": 2},
        {"truncation": "chunk", "stride": 3},
        {"truncation": "chunk", "stride": 2, "aggregation": "max"},
        {"head_length": 2},
        {"pooling": "cls"},
        {"pooling": "mean_last", "last_layers": 2},
        {"pooling": "mean_last", "last_layers": 1},
        {"prompt": "le "},
        {"precision": "bfloat16"},
    ]
    for change in changes:
        with pytest.warns(TruncationWarning) if change.get("truncation") != "chunk" else _silent():
            cached = TransformerEmbedder(**{**base_, **change}).fit(texts).transform(texts)
            plain = TransformerEmbedder(**{**base_, **change, "memory": None}).fit(texts).transform(texts)
        np.testing.assert_array_equal(cached, plain, err_msg=str(change))
    read.clear()
    # what is done to vectors afterwards is in no key
    cached = TransformerEmbedder(**base_, truncate_dim=8, normalize=False, output_dtype="float16").fit(texts)
    with pytest.warns(TruncationWarning):
        cached.transform(texts)
    assert read == []


class _silent:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def test_cut_documents_are_counted_also_when_they_are_known(read: list[str]) -> None:
    embed = TransformerEmbedder(BERT, memory="memory", max_length=8).fit(["a"])
    for _ in range(2):
        with pytest.warns(TruncationWarning, match="2 of 4 documents are longer than 8 tokens"):
            embed.transform(
                ["le colis est en retard depuis lundi", "oui", "non", "le colis est en retard depuis lundi"]
            )
    assert len(read) == 4  # three texts, and that of the window that is full read once more


def test_frozen_embedders_share_one_model_and_pickles_hold_no_vectors(read: list[str]) -> None:
    embed = TransformerEmbedder(BERT, memory="memory").fit(["a"])
    size = len(pickle.dumps(embed))
    first = embed.transform(["le colis", "la facture"])
    assert len(pickle.dumps(embed)) == size
    other = clone(embed).fit(["b"])
    assert other.model_ is embed.model_
    assert TransformerEmbedder(BERT).fit(["a"]).model_ is not embed.model_
    read.clear()
    again = pickle.loads(pickle.dumps(embed))
    assert again.model_ is not embed.model_
    np.testing.assert_array_equal(again.transform(["la facture", "le colis"]), first[::-1])
    assert read == []  # another object with the same weights


def test_other_weights_in_the_same_folder_are_other_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(BERT, folder)
    embed = TransformerEmbedder(folder, memory=tmp_path / "cache")
    first = embed.fit_transform(["le colis"])
    shutil.rmtree(folder)
    shutil.copytree(tiny_checkpoint("electra"), folder)
    expected = TransformerEmbedder(tiny_checkpoint("electra")).fit_transform(["le colis"])
    np.testing.assert_array_equal(embed.fit_transform(["le colis"]), expected)
    assert np.abs(first - expected).max() > 1e-3


def test_fine_tuned_weights_have_vectors_of_their_own(mails: list[str], labels: list[str]) -> None:
    options: dict[str, Any] = {"max_epochs": 1, "learning_rate": 1e-3, "random_state": 0}
    frozen = TransformerEmbedder(BERT, memory="memory").fit(mails)
    before = frozen.transform(mails)
    options |= {"fine_tune": "labels", "early_stopping": True, "validation_fraction": 0.3}
    tuned = TransformerEmbedder(BERT, memory="memory", **options)
    vectors = tuned.fit(mails, labels).transform(mails)
    assert np.abs(vectors - before).max() > 1e-3
    np.testing.assert_array_equal(frozen.transform(mails), before)  # the shared model was not trained
    uncached = clone(tuned).set_params(memory=None).fit(mails, labels)
    np.testing.assert_allclose(uncached.transform(mails), vectors, atol=1e-6)
    assert uncached.history_["valid_score"].tolist() == tuned.history_["valid_score"].tolist()


def _embed(folder: str) -> np.ndarray:
    torch.set_num_threads(1)
    rows: np.ndarray = TransformerEmbedder(BERT, memory=folder).fit_transform(["le colis", "la facture"])
    return rows


def test_another_process_finds_them(tmp_path: Path, read: list[str]) -> None:
    expected = _embed(str(tmp_path))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(_embed, (str(tmp_path),)), expected)
    files = list((tmp_path / vector_cache.FOLDER).iterdir())
    assert len(files) == 1  # the second process wrote none
    assert base.cache_for(tmp_path) is base.cache_for(str(tmp_path))
