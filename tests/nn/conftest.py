"""Tiny models of this room, in evaluation mode and with weights large enough for faults to show."""

import pytest
import torch

from sktransformer.nn import TransformerConfig
from sktransformer.nn.registration import MODELS

SHAPE = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
}


@pytest.fixture
def build():
    """Return a function that builds a model from a class and fields of its configuration."""

    def build(kind, **fields):
        architecture = {"Encoder": "encoder", "Decoder": "decoder"}.get(
            kind.__name__.split("For")[0].removesuffix("Model")
        )
        config = TransformerConfig(**{"architecture": architecture or "encoder-decoder", **SHAPE, **fields})
        torch.manual_seed(0)
        model = kind(config).eval()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.ndim > 1 and "embeddings.tokens" not in name:
                    weight.normal_(std=0.3)
        return model

    return build


@pytest.fixture
def ids():
    """Tokens (2, 9), none of them special."""
    return torch.randint(3, 40, (2, 9), generator=torch.Generator().manual_seed(1))


def all_models():
    return [model for models in MODELS.values() for model in models]
