"""Prompts by role, and what a checkpoint's own files say of prompts and pooling."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from transformers import AutoModel, AutoTokenizer

from sktransformer._engine.checkpoints.sources import resolve
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

E5, MINILM = "bundled:multilingual-e5-small", "bundled:all-MiniLM-L6-v2"
QUESTION, ANSWER = "où est ma facture ?", "Vos factures sont dans votre espace client."


def unit_means(model: str, texts: list[str]) -> np.ndarray:
    """Masked means of the stock model, divided by their norms."""
    folder = resolve(model).folder
    tokenizer, encoder = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = encoder(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    return torch.nn.functional.normalize((hidden * mask).sum(dim=1) / mask.sum(dim=1), dim=1).numpy()


def test_m3_e5_is_never_used_without_its_prompts() -> None:
    embed = TransformerEmbedder(E5, precision="float32").fit([ANSWER])
    texts = [f"query: {QUESTION}", f"passage: {ANSWER}", ANSWER, QUESTION]
    query, passage, bare, bare_query = unit_means(E5, texts)
    np.testing.assert_allclose(embed.transform([QUESTION], role="query")[0], query, atol=1e-4)
    found = embed.transform([ANSWER, f"passage: {ANSWER}"], role="document")
    np.testing.assert_allclose(found, [passage, passage], atol=1e-4)
    np.testing.assert_allclose(
        embed.transform([QUESTION])[0], query, atol=1e-4
    )  # its authors' advice for features
    score = found[0] @ query
    assert abs(score - bare @ bare_query) > 1e-3
    np.testing.assert_allclose(embed.set_params(prompts=None).transform([ANSWER])[0], bare, atol=1e-4)


def test_m3_minilm_gets_no_prompt() -> None:
    embed = TransformerEmbedder(MINILM, precision="float32").fit([ANSWER])
    for role in ("query", "document", None):
        np.testing.assert_allclose(
            embed.transform([ANSWER], role=role), unit_means(MINILM, [ANSWER]), atol=1e-4
        )


def folder_with(where: Path, prompts: dict[str, str] | None, name: str = "model", **pooling: bool) -> str:
    """Copy a tiny model, with sentence-transformers' files beside it."""
    folder = where / name
    shutil.copytree(tiny_checkpoint("bert"), folder)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
    modules = [
        {"idx": i, "path": p, "type": f"sentence_transformers.models.{k}"} for i, (p, k) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts or {}}))
    return str(folder)


BOTH = {"query": "q: ", "document": "d: "}


@pytest.mark.parametrize(
    ("parameters", "none", "query", "document"),
    [
        ({}, "d: ", "q: ", "d: "),
        ({"role": "query"}, "q: ", "q: ", "d: "),
        ({"prompts": None}, "", "", ""),
        ({"prompts": "x: "}, "x: ", "x: ", "x: "),
        ({"prompts": {"query": "x: "}}, "", "x: ", ""),
        ({"prompts": {"query": "x: ", "document": None}, "role": "query"}, "x: ", "x: ", ""),
        ({"prompt": "q: "}, "q: ", "q: ", "d: "),
        ({"prompt": "own: "}, "own: ", "own: ", "own: "),
        ({"prompt": ""}, "", "", ""),
        ({"prompt": "own: ", "prompts": None}, "own: ", "own: ", "own: "),
        ({"prompt": "own: ", "prompts": BOTH}, "own: ", "q: ", "d: "),
    ],
)  # fmt: skip
def test_which_prompt(
    tmp_path: Path, parameters: dict[str, Any], none: str, query: str, document: str
) -> None:
    folder = folder_with(tmp_path, {"query": "q: ", "passage": "d: "}, pooling_mode_mean_tokens=True)
    embed = TransformerEmbedder(folder, **parameters).fit(["le colis"])
    for role, words in ((None, none), ("query", query), ("document", document)):
        assert embed._prompted(embed._documents(["le colis"]), role).first == [f"{words}le colis"], role
        if role is not None:
            view = embed.with_role(role)
            assert view.model_ is embed.model_
            assert view._prompted(view._documents(["le colis"]), None).first == [f"{words}le colis"]
    assert embed.get_params()["prompt"] == parameters.get("prompt")


@pytest.mark.parametrize(
    ("name", "prompt"),
    [("e5-base", "query: "), ("multilingual-e5-large-instruct", ""), ("code5", ""), ("bert", "")],
)
def test_e5_is_known_by_its_name(tmp_path: Path, name: str, prompt: str) -> None:
    folder = shutil.copytree(tiny_checkpoint("bert"), tmp_path / name)
    embed = TransformerEmbedder(folder).fit(["le colis"])
    assert embed._prompted(embed._documents(["le colis"]), "query").first == [f"{prompt}le colis"]


def test_a_view_goes_into_pipelines(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, BOTH)
    embed = TransformerEmbedder(folder).fit(["le colis"])
    view = make_pipeline("passthrough", FrozenEstimator(embed.with_role("query")))
    expected = embed.transform(["le colis"], role="query")
    np.testing.assert_array_equal(view.transform(["le colis"]), expected)
    assert np.abs(embed.transform(["le colis"]) - expected).max() > 1e-3
    again = pickle.loads(pickle.dumps(embed))
    np.testing.assert_array_equal(again.transform(["le colis"], role="query"), expected)
    for wrong in (lambda: embed.with_role("querry"), lambda: embed.transform(["le colis"], role="querry")):
        with pytest.raises(ValueError, match=r"role='querry' is not known; .* Did you mean 'query'"):
            wrong()


@pytest.mark.parametrize(
    ("mark", "pooling"), [("cls_token", "cls"), ("max_tokens", "max"), ("lasttoken", "last")]
)
def test_auto_pooling_is_the_checkpoints(tmp_path: Path, mark: str, pooling: str) -> None:
    folder = folder_with(tmp_path, None, **{f"pooling_mode_{mark}": True})
    auto, named = (
        TransformerEmbedder(folder, pooling=how).fit_transform(["le colis"]) for how in ("auto", pooling)
    )
    np.testing.assert_array_equal(auto, named)
    assert np.abs(auto - TransformerEmbedder(folder, pooling="mean").fit_transform(["le colis"])).max() > 1e-3


def test_a_warm_start_goes_on_with_the_checkpoints_files(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, BOTH, pooling_mode_cls_token=True)
    texts, labels = ["a", "b", "le colis", "la facture"] * 2, [0, 1] * 4
    embed = TransformerEmbedder(folder, fine_tune="labels", warm_start=True, max_epochs=1, random_state=0)
    files = embed.fit(texts, labels).sentence_files_
    assert files["pooling"] == "cls"
    shutil.rmtree(folder)
    again = pickle.loads(pickle.dumps(embed)).fit(texts, labels)
    assert again.sentence_files_ == files
    assert again.history_["epoch"].tolist() == [1, 2]
    again.set_params(model=str(tiny_checkpoint("bert")), warm_start=False).fit(texts, labels)
    assert again.sentence_files_["pooling"] is None


def test_auto_norm_is_the_checkpoints(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, None)
    assert np.linalg.norm(TransformerEmbedder(folder, normalize="auto").fit_transform(["le colis"])) > 1.5
    plain = TransformerEmbedder(tiny_checkpoint("bert"), normalize="auto").fit_transform(["le colis"])
    assert np.linalg.norm(plain) == pytest.approx(1, abs=1e-6)


def test_a_module_that_is_not_known_raises(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, None, pooling_mode_weightedmean_tokens=True)
    with pytest.raises(
        ValueError, match="was trained with the pooling weightedmean_tokens, which is not read here"
    ):
        TransformerEmbedder(folder).fit(["le colis"])
    assert TransformerEmbedder(folder, pooling="mean").fit_transform(["le colis"]).shape == (1, 32)


def test_what_is_saved_is_read_alike(tmp_path: Path) -> None:
    embed = TransformerEmbedder(tiny_checkpoint("bert"), pooling="cls", prompts=BOTH, normalize=False).fit(
        ["a"]
    )
    embed.save_pretrained(tmp_path / "saved")
    again = TransformerEmbedder.from_pretrained(tmp_path / "saved", normalize="auto")
    for role in ("query", "document", None):
        np.testing.assert_allclose(
            again.transform(["colis"], role), embed.transform(["colis"], role), atol=1e-6
        )
    with pytest.raises(ValueError, match="pooling='mean_last' has no name in sentence-transformers' files"):
        embed.set_params(pooling="mean_last", last_layers=1).save_pretrained(tmp_path / "other")
