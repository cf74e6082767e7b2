"""``model=TransformerConfig(...)``: every estimator trains one of our models, with a tokenizer learned on its texts."""

import joblib
import numpy as np
import pytest

from sktransformer import (
    CausalLMGenerator,
    Seq2SeqGenerator,
    TransformerClassifier,
    TransformerConfig,
    TransformerEmbedder,
    TransformerQuestionAnswerer,
    TransformerRegressor,
    TransformerTokenClassifier,
)
from sktransformer.exceptions import WrongTaskError

SHAPE = {"vocab_size": 300, "hidden_size": 32, "num_layers": 2, "num_attention_heads": 2, "dropout": 0.0}
RUN = {"max_epochs": 8, "learning_rate": 5e-3, "random_state": 0, "precision": "float32"}
INVOICES = ["ma facture est fausse", "je conteste cette facture", "facture en double", "où est ma facture"]
PARCELS = ["le colis est en retard", "colis perdu", "mon colis est abîmé", "où est mon colis"]
X, y = (INVOICES + PARCELS) * 6, (["facture"] * 4 + ["colis"] * 4) * 6


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"positions": "rotary", "num_key_value_heads": 1, "norm": "rms", "feed_forward": "swiglu"},
        {"positions": "alibi", "num_experts": 3},
        {"architecture": "decoder"},
    ],
)
def test_a_classifier_learns_and_travels(fields, tmp_path):
    model = TransformerClassifier(TransformerConfig(**SHAPE, **fields), **RUN).fit(X, y)
    assert model.score(X, y) == 1.0
    expected = model.predict_proba(X[:8])
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").predict_proba(X[:8]), expected)
    one_by_one = np.concatenate([model.predict_proba([text]) for text in X[:8]])
    np.testing.assert_allclose(one_by_one, expected, atol=1e-5)


def test_a_saved_folder_is_an_ordinary_checkpoint(tmp_path):
    model = TransformerClassifier(TransformerConfig(**SHAPE, positions="rotary"), **RUN).fit(X, y)
    model.save_pretrained(tmp_path / "folder")
    again = TransformerClassifier(str(tmp_path / "folder"), **RUN).fit(X, y)
    assert again.model_.config.positions == "rotary"
    vectors = TransformerEmbedder(str(tmp_path / "folder"), precision="float32").fit(X).transform(X[:3])
    assert vectors.shape == (3, 32)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte_bpe", "unigram"])
def test_the_config_names_the_kind_of_tokenizer(kind):
    config = TransformerConfig(**SHAPE, tokenizer=kind)
    run = {**RUN, "max_epochs": 4}
    model = TransformerClassifier(config, **run).fit(X, y)
    backend = type(model.tokenizer_.backend_tokenizer.model).__name__
    assert backend == {"wordpiece": "WordPiece", "unigram": "Unigram"}.get(kind, "BPE")
    fitted = model.model_.config
    assert fitted.vocab_size == len(model.tokenizer_) <= 300
    assert fitted.pad_token_id == model.tokenizer_.pad_token_id
    assert config.vocab_size == 300  # the user's own is left alone


@pytest.mark.filterwarnings("ignore:training collapsed", "ignore:.*documents are longer")
@pytest.mark.parametrize(("positions", "longest"), [("rotary", 600), ("learned", 64)])
def test_positions_without_an_end_read_as_far_as_max_length(positions, longest):
    long, labels = [" ".join(INVOICES * 40), " ".join(PARCELS * 40)] * 2, ["facture", "colis"] * 2
    config = TransformerConfig(**SHAPE, max_position_embeddings=64, positions=positions)
    model = TransformerClassifier(config, **{**RUN, "max_epochs": 1, "max_length": 600}).fit(long, labels)
    assert model.max_length_ == longest


def test_a_regressor():
    values = np.array([len(text) for text in X], dtype=float)
    model = TransformerRegressor(TransformerConfig(**SHAPE), **{**RUN, "max_epochs": 12}).fit(X, values)
    assert model.score(X, values) > 0.9


def test_a_tagger():
    sentences = [["Marie", "habite", "à", "Lyon"], ["Paul", "habite", "à", "Nice"]] * 8
    tags = [["B-PER", "O", "O", "B-LOC"]] * 16
    model = TransformerTokenClassifier(TransformerConfig(**SHAPE), **RUN).fit(sentences, tags)
    assert [list(row) for row in model.predict(sentences[:2])] == tags[:2]


def test_a_reader_of_answers():
    pairs = [("où habite Marie ?", "Marie habite à Lyon ."), ("où habite Paul ?", "Paul habite à Nice .")] * 8
    answers = ["Lyon", "Nice"] * 8
    run = {**RUN, "max_epochs": 20}
    model = TransformerQuestionAnswerer(TransformerConfig(**SHAPE, type_vocab_size=2), **run).fit(
        pairs, answers
    )
    assert list(model.predict(pairs[:2])) == answers[:2]


def test_an_embedder_is_fine_tuned():
    config = TransformerConfig(**SHAPE)
    model = TransformerEmbedder(config, fine_tune="labels", **{**RUN, "batch_size": 16}).fit(X, y)
    vectors = model.transform(X[:8])
    similar = vectors @ vectors.T
    assert similar[:4, :4].mean() > similar[:4, 4:].mean() + 0.3


def test_a_model_without_the_head_is_refused():
    with pytest.raises(
        WrongTaskError,
        match=r"'sktransformer-decoder' model, which has no token classification head; "
        r'pass TransformerConfig\(architecture="encoder"\)',
    ):
        TransformerTokenClassifier(TransformerConfig(architecture="decoder", **SHAPE)).fit(
            [["a", "b"]], [["O", "X"]]
        )
    with pytest.raises(WrongTaskError, match="an encoder and a decoder made to write texts"):
        TransformerEmbedder(TransformerConfig(architecture="encoder-decoder", **SHAPE)).fit(X)


@pytest.mark.filterwarnings("ignore:training collapsed", "ignore:.*are longer than")
def test_models_of_few_positions_are_quiet(capfd):
    fields = {**SHAPE, "max_position_embeddings": 3, "positions": "learned"}
    TransformerClassifier(TransformerConfig(**fields), **{**RUN, "max_epochs": 1}).fit(X, y)
    decoder = TransformerConfig(architecture="decoder", **fields)
    writer = CausalLMGenerator(decoder, max_new_tokens=2, **{**RUN, "max_epochs": 1}).fit(X[:4])
    assert len(writer.predict(["le"])) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [TransformerClassifier, CausalLMGenerator, Seq2SeqGenerator])
@pytest.mark.filterwarnings("ignore:training collapsed")
def test_experts_with_activations_computed_again(kind):
    architecture = {CausalLMGenerator: "decoder", Seq2SeqGenerator: "encoder-decoder"}.get(kind, "encoder")
    config = TransformerConfig(architecture=architecture, num_experts=3, **{**SHAPE, "dropout": 0.1})
    losses = [
        kind(config, gradient_checkpointing=again, **{**RUN, "max_epochs": 2}).fit(X[:8], y[:8]).history_
        for again in (False, True)
    ]
    np.testing.assert_allclose(losses[1].train_loss, losses[0].train_loss, atol=1e-6)
