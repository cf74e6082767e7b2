"""Likelihoods of continuations: equal to reading each with its whole text, however the work is shared."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest
import torch

from sktransformer._engine.checkpoints.heads import Head
from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.devices import seeded
from sktransformer._engine.inference import continuations as module
from sktransformer._engine.inference.continuations import Continuations, continuation_scores
from sktransformer._engine.inference.forward import Passes
from sktransformer._engine.text.batches import Collator

Getter = Callable[[str, Head], Checkpoint]
KINDS: list[tuple[str, Head]] = [
    ("gpt2", "causal"),
    ("llama", "causal"),
    ("t5", "seq2seq"),
    ("bart", "seq2seq"),
    ("marian", "seq2seq"),
]


def passes(checkpoint: Checkpoint, token_budget: int = 100) -> Passes:
    pad = checkpoint.model.config.pad_token_id or 0
    return Passes(
        checkpoint.model, Collator("padded", pad, 0, torch.device("cpu")), token_budget, torch.float32
    )


def drawn(vocabulary: int) -> tuple[list[np.ndarray], Continuations]:
    random = np.random.default_rng(0)
    start = random.integers(5, vocabulary, 10)
    texts = [
        np.concatenate([start, random.integers(5, vocabulary, n)]).astype(np.int32) for n in (1, 5, 30, 7, 7)
    ]
    ids = tuple(random.integers(5, vocabulary, n).astype(np.int32) for n in (1, 3, 2, 4))
    return texts, Continuations(ids)


def by_hand(checkpoint: Checkpoint, text: np.ndarray, continuation: np.ndarray) -> float:
    model = checkpoint.model
    ids = torch.from_numpy(continuation.astype(np.int64))
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            start = torch.tensor([model.config.decoder_start_token_id])
            logits = model(
                input_ids=torch.from_numpy(text.astype(np.int64))[None],
                decoder_input_ids=torch.cat([start, ids[:-1]])[None],
            ).logits[0]
        else:
            whole = torch.cat([torch.from_numpy(text.astype(np.int64)), ids])
            logits = model(input_ids=whole[None]).logits[0, len(text) - 1 : -1]
    return float(logits.log_softmax(dim=-1)[torch.arange(len(ids)), ids].sum())


@pytest.mark.parametrize(("name", "head"), KINDS)
def test_scores_are_those_of_each_continuation_alone(name: str, head: Head, checkpoint: Getter) -> None:
    loaded = checkpoint(name, head)
    texts, continuations = drawn(loaded.model.config.vocab_size)
    expected = [[by_hand(loaded, text, one) for one in continuations.ids] for text in texts]
    for budget in (16, 1000):
        found = continuation_scores(passes(loaded, budget), texts, continuations)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    apart = continuation_scores(passes(loaded), texts, continuations, share=False)
    np.testing.assert_allclose(apart, expected, atol=1e-5)


@pytest.mark.parametrize(("name", "head"), KINDS[:3])
def test_order_and_neighbours_do_not_matter(
    name: str, head: Head, checkpoint: Getter, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = checkpoint(name, head)
    texts, continuations = drawn(loaded.model.config.vocab_size)
    together = continuation_scores(passes(loaded), texts, continuations)
    alone = [continuation_scores(passes(loaded), [text], continuations)[0] for text in texts]
    np.testing.assert_allclose(alone, together, atol=1e-5)
    backwards = continuation_scores(passes(loaded), texts[::-1], continuations)
    np.testing.assert_allclose(backwards[::-1], together, atol=1e-5)
    monkeypatch.setattr(module, "CACHED_TOKENS", 1)  # one text at a time
    np.testing.assert_allclose(continuation_scores(passes(loaded), texts, continuations), together, atol=1e-5)


def test_the_shared_beginning_is_read_once(checkpoint: Getter, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = checkpoint("llama", "causal")
    texts, continuations = drawn(loaded.model.config.vocab_size)
    widths = []
    forward = loaded.model.forward

    def counted(input_ids: torch.Tensor, **options: object) -> object:
        widths.append(tuple(input_ids.shape))
        return forward(input_ids=input_ids, **options)

    monkeypatch.setattr(loaded.model, "forward", counted)
    counted.__signature__ = signature(forward)  # type: ignore[attr-defined]  # what the module asks for
    continuation_scores(passes(loaded, 1000), texts, continuations)
    # the beginning; what is left of each text, padded; all but first and last tokens of three labels, for five texts
    assert widths == [(1, 10), (5, 30), (15, 3)]


def test_what_texts_share_leaves_each_a_token() -> None:
    rows = [np.array(row, dtype=np.int32) for row in ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3])]
    assert module._common(rows) == 2
    assert module._common([rows[0], np.array([2, 2, 3], dtype=np.int32)]) == 0
    assert module._common(rows[:1]) == 0


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "relative", "none"])
def test_all_kinds_of_positions(positions: str) -> None:
    from sktransformer.nn import DecoderForCausalLM, TransformerConfig

    config = TransformerConfig(
        architecture="decoder",
        vocab_size=60,
        hidden_size=32,
        num_layers=2,
        num_attention_heads=2,
        positions=positions,
        max_position_embeddings=64,
    )
    with seeded(0, torch.device("cpu")):
        loaded = Checkpoint(DecoderForCausalLM(config).eval(), None, False)
    texts, continuations = drawn(60)
    expected = [[by_hand(loaded, text, one) for one in continuations.ids] for text in texts]
    np.testing.assert_allclose(continuation_scores(passes(loaded), texts, continuations), expected, atol=1e-5)


def test_windows_and_models_without_positions_are_read_whole(checkpoint: Getter) -> None:
    from transformers import MistralConfig, MistralForCausalLM

    loaded = checkpoint("gpt2", "causal")
    assert module._takes_parts(loaded.model)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = MistralConfig(
        vocab_size=60,
        num_key_value_heads=2,
        sliding_window=4,
        head_dim=16,
        bos_token_id=1,
        eos_token_id=2,
        **sizes,
    )
    model = MistralForCausalLM(config).eval()
    assert not module._takes_parts(model)
    windowed = Checkpoint(model, None, False)
    texts, continuations = drawn(60)
    found = continuation_scores(passes(windowed), texts, continuations)
    expected = [[by_hand(windowed, text, one) for one in continuations.ids] for text in texts]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["ours", "gpt_neo"])
def test_windows_that_no_cache_shows(kind: str) -> None:
    """Padding between what is shared and what follows would count as places of the window."""
    from transformers import GPTNeoConfig, GPTNeoForCausalLM

    from sktransformer.nn import DecoderForCausalLM, TransformerConfig

    with seeded(0, torch.device("cpu")):
        if kind == "ours":
            own = TransformerConfig(
                architecture="decoder", vocab_size=60, hidden_size=32, num_layers=2, attention_window=3
            )
            model: Any = DecoderForCausalLM(own)
        else:
            config = GPTNeoConfig(
                vocab_size=60,
                hidden_size=32,
                num_layers=2,
                num_heads=4,
                attention_types=[[["global", "local"], 1]],
                window_size=3,
            )
            model = GPTNeoForCausalLM(config)
        with torch.no_grad():
            for weight in model.parameters():  # sharp enough that a token more or less shows
                weight.add_(torch.randn_like(weight) * 0.2)
    loaded = Checkpoint(model.eval(), None, False)
    texts, continuations = drawn(60)
    expected = [[by_hand(loaded, text, one) for one in continuations.ids] for text in texts]
    np.testing.assert_allclose(continuation_scores(passes(loaded), texts, continuations), expected, atol=1e-4)
