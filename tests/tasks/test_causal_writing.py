"""CausalLMGenerator: how tokens are chosen, and texts that keep to a grammar."""

import json
import pickle
import re
from typing import Any

import joblib
import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from sktransformer._engine.devices import seeded
from sktransformer.exceptions import PersistenceError, TruncationWarning
from sktransformer.tasks.causal import CausalLMGenerator
from sktransformer.testing.checkpoints import tiny_checkpoint

PROMPTS = ["le", "le chat noir est assis", " ".join(["où est la gare ? le chat"] * 2)]


def writer(name: str = "gpt2", **settings: Any) -> CausalLMGenerator:
    given = {"max_new_tokens": 12, "device": "cpu", "precision": "float32", **settings}
    return CausalLMGenerator(str(tiny_checkpoint(name)), **given)


# -- choosing tokens ---


def test_samples_repeat_under_a_seed_alone_and_together() -> None:
    settings = {"temperature": 1.0, "num_return_sequences": 3, "top_p": 0.95, "random_state": 7}
    model = writer(**settings)
    drawn = model.predict(PROMPTS)
    assert drawn.shape == (3, 3)
    assert len(set(drawn[1])) > 1
    assert writer(**settings).predict(PROMPTS).tolist() == drawn.tolist()
    assert model.predict(PROMPTS[1:2]).tolist() == drawn[1:2].tolist()
    assert model.set_params(random_state=8).predict(PROMPTS).tolist() != drawn.tolist()


def test_cuts_of_the_distribution() -> None:
    greedy = writer().predict(PROMPTS).tolist()
    assert writer(temperature=1.0, top_k=1, random_state=0).predict(PROMPTS).tolist() == greedy
    assert writer(temperature=1.0, top_p=1e-6, random_state=0).predict(PROMPTS).tolist() == greedy
    assert writer(temperature=1.0, min_p=1.0, random_state=0).predict(PROMPTS).tolist() == greedy


def test_penalties_keep_tokens_from_coming_again() -> None:
    def share_of_different(**settings: Any) -> float:
        model = writer(max_new_tokens=20, **settings)
        text = model.predict(["le chat"])[0]
        tokens = model.tokenizer_(text)["input_ids"]
        return len(set(tokens)) / len(tokens)

    plain = share_of_different()
    assert share_of_different(frequency_penalty=100.0) > plain
    assert share_of_different(repetition_penalty=10.0) > plain


def test_stop_strings_are_left_out_and_streams_add_up() -> None:
    model = writer("gpt2", max_new_tokens=20, temperature=1.0, num_return_sequences=2, random_state=0)
    pieces: dict[tuple[int, int], list[str]] = {}
    whole = model.predict(
        PROMPTS[:2], on_text=lambda row, sample, text: pieces.setdefault((row, sample), []).append(text)
    )
    assert {key: "".join(parts) for key, parts in pieces.items()} == {
        (row, sample): whole[row, sample] for row in range(2) for sample in range(2)
    }
    assert max(map(len, pieces.values())) > 3
    stop = next(character for character in whole[0, 0][3:] if not character.isspace())
    streamed: dict[tuple[int, int], str] = {}

    def say(row: int, sample: int, text: str) -> None:
        streamed[row, sample] = streamed.get((row, sample), "") + text

    stopped = model.set_params(stop_strings=[stop]).predict(PROMPTS[:2], on_text=say)
    assert stopped[0, 0] == whole[0, 0][: whole[0, 0].index(stop)]
    assert streamed.get((0, 0), "") == stopped[0, 0]
    assert stop not in "".join(stopped.ravel())


def test_what_can_not_be_told_as_it_comes() -> None:
    with pytest.raises(ValueError, match="on_text and num_beams=2 contradict each other"):
        writer(num_beams=2).predict(PROMPTS, on_text=print)
    with pytest.raises(TypeError, match=r"on_text must be a function .*, got str"):
        writer().predict(PROMPTS, on_text="print")


def test_a_draft_writes_the_same_text(tmp_path: Any) -> None:
    plain = writer("gpt2", max_new_tokens=16)
    expected = plain.predict(PROMPTS[:2]).tolist()
    assisted = writer("gpt2", max_new_tokens=16, draft_model=str(tiny_checkpoint("gpt2", tmp_path / "draft")))
    assert assisted.predict(PROMPTS[:2]).tolist() == expected
    joblib.dump(assisted, tmp_path / "a.joblib")
    loaded = joblib.load(tmp_path / "a.joblib")
    assert loaded.draft_ is not None
    assert loaded.predict(PROMPTS[:2]).tolist() == expected
    with pytest.raises(ValueError, match="has other tokens than"):
        writer("gpt2", draft_model=str(tiny_checkpoint("llama"))).predict(PROMPTS)
    with pytest.raises(ValueError, match=r"does not go with temperature=1.0"):
        writer(draft_model="x", temperature=1.0).predict(PROMPTS)


def test_a_draft_with_fewer_positions_helps_as_far_as_it_reads(tmp_path: Any) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint("gpt2"))
    short = GPT2Config(vocab_size=len(tokenizer), n_positions=12, n_embd=16, n_layer=1, n_head=2)
    with seeded(0, torch.device("cpu")):
        GPT2LMHeadModel(short).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    prompts = ["le", "le chat noir est", " ".join(["où est la gare ?"] * 3)]  # the last has 15 tokens or more
    expected = writer(max_new_tokens=24).predict(prompts).tolist()
    assert writer(max_new_tokens=24, draft_model=str(tmp_path)).predict(prompts).tolist() == expected


def test_streams_add_up_where_characters_are_bytes() -> None:
    """Bytes beside each other are read together: one that is none of UTF-8 changes what came before it."""
    model = writer("llama", max_new_tokens=20, temperature=1.0, num_return_sequences=12, random_state=0)
    pieces: dict[tuple[int, int], str] = {}

    def say(row: int, sample: int, text: str) -> None:
        pieces[row, sample] = pieces.get((row, sample), "") + text

    whole = model.predict(PROMPTS, on_text=say)
    assert {(i, j): pieces.get((i, j), "") for i in range(3) for j in range(12)} == {
        (i, j): whole[i, j] for i in range(3) for j in range(12)
    }


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"stop_strings": None}, TypeError, r"stop_strings must be a list .* pass \[\] for none"),
        ({"num_beams": 0}, ValueError, "num_beams must be at least 1, got 0"),
        ({"draft_model": 5}, TypeError, "draft_model must be a hub id, a folder"),
    ],
)
def test_what_is_no_option(settings: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        writer(**settings).predict(PROMPTS)


# -- constraints ---

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("max_new_tokens", [1, 7, 60])
def test_json_is_never_malformed(name: str, max_new_tokens: int) -> None:
    pytest.importorskip("llguidance")
    model = writer(name, json_schema=SCHEMA, max_new_tokens=max_new_tokens, temperature=1.0, random_state=0)
    with pytest.warns(TruncationWarning, match="got a short ending that the constraint allows"):
        texts = model.predict(["le", "où est la gare ?", ""])
    for text in texts:
        found = json.loads(text)
        assert set(found) == {"name", "age", "tags"}
        assert isinstance(found["age"], int)
        assert set(found["tags"]) <= {"a", "b"}
        assert found["tags"]


def test_other_constraints() -> None:
    pytest.importorskip("llguidance")
    drawn = {"temperature": 1.0, "num_return_sequences": 4, "random_state": 0, "max_new_tokens": 30}
    chosen = writer(choices=["oui", "oui, bien sûr", "non"], **drawn).predict(PROMPTS)
    assert set(chosen.ravel()) <= {"oui", "oui, bien sûr", "non"}
    for text in writer("llama", regex="[A-C]{3}-[0-9]{2,4}", **drawn).predict(PROMPTS).ravel():
        assert re.fullmatch("[A-C]{3}-[0-9]{2,4}", text)
    for text in (
        writer(grammar='start: "(" start ")" | "x"', **{**drawn, "max_new_tokens": 5}).predict(["a"]).ravel()
    ):
        assert re.fullmatch(r"(\(*)x(\)*)", text)
        assert text.count("(") == text.count(")")
    beams = writer(choices=["oui", "non"], num_beams=2, num_return_sequences=2, max_new_tokens=8).predict(
        ["le chat"]
    )
    assert set(beams[0]) == {"oui", "non"}
    unrepeated = writer("llama", choices=["banana banana"], no_repeat_ngram_size=1, max_new_tokens=40)
    assert unrepeated.predict(["a"]).tolist() == ["banana banana"]
    short = writer("llama", choices=["oui"], min_new_tokens=12).predict(["a"])
    assert short.tolist() == ["oui"]


@pytest.mark.filterwarnings("ignore::sktransformer.exceptions.TruncationWarning")
def test_constraints_that_can_not_be_met() -> None:
    pytest.importorskip("llguidance")
    for schema, fault in (
        ({"type": "integer", "minimum": 5, "maximum": 3}, r"minimum \(5\) is greater than maximum \(3\)"),
        ({"type": "strin"}, "Invalid type: strin"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "incompatible types"),
    ):
        with pytest.raises(ValueError, match=f"the constraint can't be met or read: .*{fault}"):
            writer(json_schema=schema).predict(["le"])
    with pytest.raises(ValueError, match=r"can't be met or read: .*unclosed character class"):
        writer(regex="[a-").predict(["le"])
    with pytest.raises(ValueError, match="the constraint can't be met: no text does"):
        writer(regex=r"[^\s\S]").predict(["le"])
    with pytest.raises(ValueError, match="json_schema=False can't be met"):
        writer(json_schema=False).predict(["le"])
    with pytest.raises(ValueError, match="json_schema can't be read as JSON"):
        writer(json_schema="{").predict(["le"])
    with pytest.raises(ValueError, match="json_schema and regex contradict each other"):
        writer(json_schema={}, regex="a").predict(["le"])
    with pytest.raises(ValueError, match="choices is empty"):
        writer(choices=[]).predict(["le"])
    with pytest.raises(TypeError, match="choices must be a list"):
        writer(choices="oui").predict(["le"])
    with pytest.raises(ValueError, match="stop_strings would cut a constrained text"):
        writer(choices=["oui"], stop_strings=["u"]).predict(["le"])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:fan_in_fan_out")  # of peft 0.21
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_an_adapter_that_changes_nothing_changes_no_text(name: str, tmp_path: Any) -> None:
    peft = pytest.importorskip("peft")
    model = writer(name)
    expected, score = model.predict(PROMPTS).tolist(), model.score(PROMPTS)
    # LoRA begins with a product of zero
    model.model_ = peft.get_peft_model(model.model_, peft.LoraConfig(target_modules="all-linear", r=2))
    assert model.predict(PROMPTS).tolist() == expected
    assert model.score(PROMPTS) == pytest.approx(score, abs=1e-5)
    # what only peft can read is not written
    for store in (pickle.dumps, lambda one: one.save_pretrained(tmp_path)):
        with pytest.raises(PersistenceError, match=r"model_ is a PeftModel.*merge_and_unload\(\) returns"):
            store(model)
    model.model_ = model.model_.merge_and_unload()
    assert pickle.loads(pickle.dumps(model)).predict(PROMPTS).tolist() == expected
