"""PEFT's adapters go onto our linear layers."""

import pytest
import torch

from sktransformer.nn import DecoderForCausalLM, EncoderDecoderForSeq2SeqLM, EncoderForSequenceClassification

KINDS = {
    "SEQ_CLS": EncoderForSequenceClassification,
    "CAUSAL_LM": DecoderForCausalLM,
    "SEQ_2_SEQ_LM": EncoderDecoderForSeq2SeqLM,
}


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft 0.21 calls what Transformers 5.24 renamed
@pytest.mark.parametrize("task", KINDS)
def test_lora_trains_and_merges(build, ids, task):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(task_type=task, r=4, target_modules=["query", "value"], init_lora_weights=False)
    adapted = peft.get_peft_model(build(KINDS[task]), config).eval()
    labels = torch.tensor([0, 1]) if task == "SEQ_CLS" else ids
    made = adapted(input_ids=ids, labels=labels)
    made.loss.backward()
    learned = {name for name, weight in adapted.named_parameters() if weight.grad is not None}
    assert learned
    assert all("lora_" in name or "classifier" in name for name in learned)
    merged = adapted.merge_and_unload()
    torch.testing.assert_close(merged(ids, labels=labels).logits, made.logits, atol=1e-4, rtol=1e-4)
