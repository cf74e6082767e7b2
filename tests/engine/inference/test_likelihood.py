"""Losses of next tokens: packed and padded rows give the same, and models that would mix texts are found out."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, BloomConfig, BloomForCausalLM

from sktransformer._engine.checkpoints.heads import Head
from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer._engine.checkpoints.structure import takes
from sktransformer._engine.devices import seeded
from sktransformer._engine.inference.likelihood import NOT_COUNTED, next_token_losses, reads_packed
from sktransformer._engine.text.batches import Collator
from sktransformer._engine.text.windows import Encoded
from sktransformer._engine.training.language_modelling import OnNextTokens
from sktransformer.testing.checkpoints import tiny_checkpoint

Getter = Callable[[str, Head], Checkpoint]
LENGTHS = (3, 9, 1, 6)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_losses_are_those_of_each_text_alone(name: str, layout: str, checkpoint: Getter) -> None:
    model = checkpoint(name, "causal").model
    random = np.random.default_rng(0)
    rows = [random.integers(5, model.config.vocab_size, n).astype(np.int32) for n in LENGTHS]
    targets = [np.append(row[1:].astype(np.int64), NOT_COUNTED) for row in rows]
    targets[1][:4] = NOT_COUNTED  # a prompt
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    encoded = Encoded(np.concatenate(rows), starts, np.arange(4, dtype=np.int32), 4)
    batch = Collator(layout, 0, 0, torch.device("cpu")).batch(encoded, np.arange(4))  # type: ignore[arg-type]
    flat = torch.from_numpy(np.concatenate(targets))
    with torch.no_grad():
        losses, owners = next_token_losses(model, batch, flat)
        means = OnNextTokens()(model, batch, flat)
        expected = []
        for row, told in zip(rows, targets, strict=True):
            logits = model(input_ids=torch.from_numpy(row.astype(np.int64))[None]).logits[0]
            one = F.cross_entropy(logits, torch.from_numpy(told), reduction="none")
            expected.append(one[torch.from_numpy(told != NOT_COUNTED)])
    assert owners.tolist() == [0] * 2 + [1] * 4 + [3] * 5
    torch.testing.assert_close(losses, torch.cat(expected), atol=1e-5, rtol=0)
    mean = torch.stack([one.mean() if len(one) else torch.zeros(()) for one in expected])
    torch.testing.assert_close(means, mean, atol=1e-5, rtol=0)


def test_models_that_mix_the_texts_of_a_row_are_padded(checkpoint: Getter) -> None:
    assert reads_packed(checkpoint("gpt2", "causal").model)
    assert reads_packed(checkpoint("llama", "causal").model)
    with seeded(0, torch.device("cpu")):
        bloom = BloomForCausalLM(BloomConfig(vocab_size=60, hidden_size=32, n_layer=2, n_head=2)).eval()
    assert not reads_packed(bloom)
    assert not bloom.training


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:fan_in_fan_out")  # of peft 0.21
def test_adapters_hide_no_argument() -> None:
    """PEFT's wrapper takes any argument: what the model within takes is looked up there."""
    peft = pytest.importorskip("peft")
    model = AutoModelForCausalLM.from_pretrained(tiny_checkpoint("gpt2")).eval()
    expected, packed = (takes(model), takes(model, body=True)), reads_packed(model)
    adapted = peft.get_peft_model(model, peft.LoraConfig(target_modules=["c_attn"], r=2))
    assert (takes(adapted), takes(adapted, body=True)) == expected
    assert "position_ids" in expected[0]
    assert reads_packed(adapted) == packed
