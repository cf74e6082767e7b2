"""FlauBERT with norms before the sublayers runs, and computes what its configuration says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from sktransformer._engine.checkpoints.flaubert import _SelfReturningCache, repair_flaubert
from sktransformer._engine.checkpoints.loading import Checkpoint
from sktransformer.testing.checkpoints import SENTENCES

Loader = Callable[..., Checkpoint]


def reference(loaded: Checkpoint, ids: torch.Tensor) -> torch.Tensor:
    """Compute a pre-norm FlauBERT from its weights: x + attention(norm x), then x + ffn(norm x), layer by layer.

    Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture", figure 1 (b).
    """
    w = dict(loaded.model.state_dict())
    config = loaded.model.config

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], config.layer_norm_eps)

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (config.n_heads, -1)).transpose(0, 1)  # (heads, T, d)

    x = w["embeddings.weight"][ids] + w["position_embeddings.weight"][: len(ids)]
    x = norm(x, "layer_norm_emb")
    for layer in range(config.n_layers):
        y = norm(x, f"layer_norm1.{layer}")
        q, k, v = (heads(linear(y, f"attentions.{layer}.{part}_lin")) for part in "qkv")
        attended = F.scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1)
        x = x + linear(attended, f"attentions.{layer}.out_lin")
        y = norm(x, f"layer_norm2.{layer}")
        y = (
            F.gelu(linear(y, f"ffns.{layer}.lin1"))
            if config.gelu_activation
            else linear(y, f"ffns.{layer}.lin1").relu()
        )
        x = x + linear(y, f"ffns.{layer}.lin2")
    return x


def hidden(loaded: Checkpoint, ids: torch.Tensor, **inputs: torch.Tensor) -> torch.Tensor:
    states: torch.Tensor = loaded.model(input_ids=ids, **inputs).last_hidden_state
    return states


@pytest.mark.parametrize("text", SENTENCES[:3])
@torch.inference_mode()
def test_a_pre_norm_model_computes_the_formula(text: str, checkpoint: Loader) -> None:
    loaded = checkpoint("flaubert-prenorm", "encoder")
    assert loaded.model.config.pre_norm
    ids = loaded.tokenizer(text, return_tensors="pt")["input_ids"]
    torch.testing.assert_close(hidden(loaded, ids)[0], reference(loaded, ids[0]), rtol=0, atol=1e-5)


@torch.inference_mode()
def test_calls_do_not_see_each_other(checkpoint: Loader) -> None:
    """Each forward has a cache of its own: the second call is not taken for a continuation of the first."""
    loaded = checkpoint("flaubert-prenorm", "encoder")
    first, second = (loaded.tokenizer(text, return_tensors="pt")["input_ids"] for text in SENTENCES[:2])
    before = hidden(loaded, first)
    hidden(loaded, second)
    assert torch.equal(hidden(loaded, first), before)


@torch.inference_mode()
def test_padding_changes_nothing(checkpoint: Loader) -> None:
    loaded = checkpoint("flaubert-prenorm", "encoder")
    ids = loaded.tokenizer(SENTENCES[0], return_tensors="pt")["input_ids"]
    padded = F.pad(ids, (0, 5), value=loaded.tokenizer.pad_token_id)
    mask = F.pad(torch.ones_like(ids), (0, 5))
    states = hidden(loaded, padded, attention_mask=mask)
    torch.testing.assert_close(states[:, : ids.shape[1]], hidden(loaded, ids), rtol=0, atol=1e-6)


def test_gradients_reach_the_embeddings(fresh_checkpoint: Loader) -> None:
    loaded = fresh_checkpoint("flaubert-prenorm", "classification")
    ids = loaded.tokenizer(SENTENCES[0], return_tensors="pt")["input_ids"]
    loaded.model(input_ids=ids).logits.sum().backward()
    gradient = loaded.model.get_input_embeddings().weight.grad
    assert isinstance(gradient, torch.Tensor)
    assert set(gradient.abs().sum(dim=1).nonzero().flatten().tolist()) == set(ids.flatten().tolist())


def test_only_the_pre_norm_model_gets_a_hook(checkpoint: Loader) -> None:
    hooks = {
        name: len(checkpoint(name, "encoder").model.base_model._forward_pre_hooks)
        for name in ("flaubert-prenorm", "flaubert", "bert")
    }
    assert hooks == {"flaubert-prenorm": 1, "flaubert": 0, "bert": 0}


def test_a_cache_that_is_given_is_kept(fresh_checkpoint: Loader) -> None:
    from transformers.cache_utils import DynamicCache

    loaded = fresh_checkpoint("flaubert-prenorm", "encoder")
    own = _SelfReturningCache(DynamicCache(), DynamicCache())
    ids = loaded.tokenizer(SENTENCES[0], return_tensors="pt")["input_ids"]
    loaded.model(input_ids=ids, cache=own)
    assert own.get_seq_length() == ids.shape[1]
    assert own[0] is own[1] is own


def test_repair_leaves_other_models_alone(fresh_checkpoint: Loader) -> None:
    model = fresh_checkpoint("distilbert", "encoder").model
    before = dict(model._forward_pre_hooks)
    repair_flaubert(model)
    assert dict(model._forward_pre_hooks) == before
