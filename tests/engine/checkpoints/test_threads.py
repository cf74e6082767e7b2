"""Checkpoints that are loaded in several threads are whole."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from sktransformer._engine.checkpoints.bundle import from_bundle, to_bundle
from sktransformer._engine.checkpoints.loading import load_checkpoint
from sktransformer._engine.checkpoints.sources import resolve
from sktransformer.testing import tiny_checkpoint


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_weights_that_are_tied_stay_tied(name):
    source = resolve(str(tiny_checkpoint(name)))
    alone = load_checkpoint(source, "seq2seq", need_head=True)
    bundle = to_bundle(alone, "seq2seq")
    ids = torch.tensor([[5, 6, 7, 1]])

    def logits(model):
        with torch.inference_mode():
            return model(input_ids=ids, decoder_input_ids=ids).logits

    def load(i):
        if i % 2:
            return from_bundle(bundle).model
        return load_checkpoint(source, "seq2seq", need_head=True).model

    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(load, range(8)))
    for model in models:
        assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
        torch.testing.assert_close(logits(model), logits(alone.model), rtol=0, atol=0)
