"""What users of neighbouring libraries reported about searches, as cases M1 and M3."""

import numpy as np
import pytest
import torch
from sklearn.frozen import FrozenEstimator
from transformers import AutoModel, AutoTokenizer

from sktransformer._engine.checkpoints.sources import resolve
from sktransformer._engine.errors import TruncationWarning
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.tasks.retrieval import SemanticSearch
from sktransformer.testing.checkpoints import tiny_checkpoint

MINILM = "bundled:all-MiniLM-L6-v2"
E5 = "bundled:multilingual-e5-small"
ANSWERS = [
    "Votre facture se trouve dans votre espace client.",
    "Le colis part sous deux jours ouvrés.",
    "Le contrat se résilie par lettre recommandée.",
    "Le remboursement arrive sous dix jours.",
    "Le service client répond de 9 h à 18 h.",
    "Le mot de passe se change dans les réglages.",
    "query: ceci commence déjà par le mot",
    "Les retours sont gratuits pendant un mois.",
    "La garantie dure deux ans.",
    "Le paiement se fait par carte ou par virement.",
]
QUESTIONS = ["où est ma facture ?", "quand arrive mon colis ?", "query: comment résilier ?"]


@pytest.fixture(scope="module")
def minilm() -> TransformerEmbedder:
    return TransformerEmbedder(MINILM, precision="float32")


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("index", ["exact", "approximate"])
@pytest.mark.parametrize("mode", ["dense", "sparse", "hybrid"])
def test_m1_no_more_hits_than_documents(minilm: TransformerEmbedder, mode: str, index: str, n: int) -> None:
    search = SemanticSearch(minilm, mode=mode, index=index).fit(ANSWERS[:n])
    hits = search.search(["facture"], n_neighbors=10)
    assert sorted(hits["document"]) == list(range(n))
    assert hits["rank"].tolist() == list(range(1, n + 1))
    scores = hits["score"].to_numpy()
    assert np.isfinite(scores).all()
    assert (np.diff(scores) <= 0).all()
    with pytest.raises(ValueError, match=rf"Expected n_neighbors <= n_samples_fit.* 10, n_samples_fit = {n}"):
        search.kneighbors(["facture"], n_neighbors=10)
    distances, indices = search.kneighbors(["facture"], n_neighbors=n)
    assert sorted(indices[0]) == list(range(n))
    assert (np.diff(distances[0]) >= 0).all()
    assert (distances >= 0).all()


def by_hand(model: str, texts: list[str]) -> np.ndarray:
    folder = resolve(model).folder
    tokenizer, encoder = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = encoder(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
    return torch.nn.functional.normalize(mean, dim=1).numpy()


@pytest.mark.slow  # reads weights of half a gigabyte twice
def test_m3_e5_gets_the_prompt_of_each_role() -> None:
    embedder = TransformerEmbedder(E5, precision="float32")
    search = SemanticSearch(embedder).fit(ANSWERS)
    hits = search.search(QUESTIONS, n_neighbors=len(ANSWERS))
    got = hits.pivot(index="query", columns="document", values="score").to_numpy()
    prompted = [q if q.startswith("query: ") else f"query: {q}" for q in QUESTIONS]
    prompted += [f"passage: {answer}" for answer in ANSWERS]
    queries, passages, bare_queries, bare = np.split(
        by_hand(E5, [*prompted, *QUESTIONS, *ANSWERS]), [3, 13, 16]
    )
    np.testing.assert_allclose(got, queries @ passages.T, atol=1e-4)
    assert np.abs(got - bare_queries @ bare.T).max() > 1e-3
    assert search.documents_ == ANSWERS
    assert hits["text"].isin(ANSWERS).all()
    assert embedder.prompt is None
    assert search.embedder_.prompt is None


def test_m3_minilm_gets_no_prompt(minilm: TransformerEmbedder) -> None:
    search = SemanticSearch(minilm).fit(ANSWERS)
    hits = search.search(QUESTIONS[:2], n_neighbors=len(ANSWERS))
    got = hits.pivot(index="query", columns="document", values="score").to_numpy()
    queries, answers = np.split(by_hand(MINILM, [*QUESTIONS[:2], *ANSWERS]), [2])
    np.testing.assert_allclose(got, queries @ answers.T, atol=1e-4)


def test_a_query_longer_than_the_model_is_cut_with_one_warning() -> None:
    search = SemanticSearch(TransformerEmbedder(tiny_checkpoint("bert")), mode="hybrid").fit(ANSWERS)
    with pytest.warns(TruncationWarning, match="1 of 2 documents are longer than 64 tokens") as record:
        hits = search.search(["facture " * 400, "colis"])
    assert len(record) == 1
    assert record[0].filename == __file__
    assert len(hits) == 10


def test_a_frozen_embedder_is_used_as_it_is() -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("bert")).fit(ANSWERS)
    search = SemanticSearch(FrozenEstimator(embedder), prompts={"query": "la ", "document": None}).fit(
        ANSWERS
    )
    assert search.embedder_.estimator is embedder
    cosines = embedder.transform(["la facture"]) @ embedder.transform(ANSWERS).T
    distances, indices = search.kneighbors(["facture"], 3)
    np.testing.assert_allclose(1 - distances[0], np.sort(cosines[0])[::-1][:3], atol=1e-6)
    np.testing.assert_allclose(cosines[0, indices[0]], 1 - distances[0], atol=1e-6)
