"""Texts are those of Transformers' `generate`, and do not depend on who shares a batch."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MambaConfig,
    MambaForCausalLM,
    MBartConfig,
    MBartForConditionalGeneration,
    MistralConfig,
    MistralForCausalLM,
)

from sktransformer._engine.errors import OutOfMemoryBackoffWarning, WrongTaskError
from sktransformer._engine.inference.generation import schedule
from sktransformer._engine.inference.generation.generate import generate
from sktransformer._engine.inference.generation.options import Decoding
from sktransformer._engine.inference.generation.rows import Prompt
from sktransformer.nn import DecoderForCausalLM, EncoderDecoderForSeq2SeqLM, TransformerConfig

LONGEST = 12
FIVE = ("gpt2", "llama", "t5", "bart", "marian")
SEARCHES = {
    "greedy": {},
    "beams": {"num_beams": 3},
    "long ones, early": {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True},
    "short ones, never early": {"num_beams": 2, "length_penalty": -1.0, "early_stopping": "never"},
    "greedy with penalty": {"repetition_penalty": 1.7},
    "beams with rules": {
        "num_beams": 3,
        "repetition_penalty": 1.7,
        "no_repeat_ngram_size": 2,
        "min_new_tokens": 4,
    },
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", FIVE)
def test_texts_and_scores_are_those_of_transformers(writer, most_rows, name, search):
    one, options = writer(name), SEARCHES[search]
    expected = one.transformers(**options)
    most_rows(4)  # rows join and leave
    found = one.write(**options)
    assert [texts[0].ids for texts in found] == [ids for ids, _ in expected]
    for texts, (_, score) in zip(found, expected, strict=True):
        if score is not None:
            assert texts[0].score == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", FIVE)
def test_no_cut_changes_a_text(writer, most_rows, name, beams):
    one = writer(name)
    whole = one.write(num_beams=beams)
    for prompt, texts in zip(one.prompts, whole, strict=True):
        (alone,) = one.write([prompt], num_beams=beams)
        assert alone[0].ids == texts[0].ids
        assert alone[0].finish == texts[0].finish
        assert alone[0].score == pytest.approx(texts[0].score, abs=1e-5)
    ids = [texts[0].ids for texts in whole]
    assert [texts[0].ids for texts in one.write(one.prompts[::-1], num_beams=beams)] == ids[::-1]
    most_rows(1)
    assert [texts[0].ids for texts in one.write(one.prompts[:4], num_beams=beams)] == ids[:4]
    most_rows(3 * beams)
    assert [texts[0].ids for texts in one.write(num_beams=beams)] == ids
    most_rows(32)
    assert [texts[0].ids for texts in one.write(budget=60 * beams, num_beams=beams)] == ids


SIZES = {
    "vocab_size": 60,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "bos_token_id": 0,
    "max_position_embeddings": 64,
}
BODY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
HALVES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
OTHERS = {
    "mbart": lambda: MBartForConditionalGeneration(MBartConfig(**SIZES, **HALVES)),
    "nllb": lambda: M2M100ForConditionalGeneration(M2M100Config(**SIZES, **HALVES)),
    **{
        f"ours, {positions}": functools.partial(
            lambda positions: EncoderDecoderForSeq2SeqLM(
                TransformerConfig(
                    architecture="encoder-decoder", hidden_size=32, num_layers=2, positions=positions, **SIZES
                )
            ),
            positions,
        )
        for positions in ("sinusoidal", "learned", "rotary", "alibi", "relative")
    },
    "ours, a decoder": lambda: DecoderForCausalLM(
        TransformerConfig(
            architecture="decoder", hidden_size=32, num_layers=2, num_key_value_heads=1, **SIZES
        )
    ),
    "sliding windows, grouped keys": lambda: MistralForCausalLM(
        MistralConfig(**SIZES, **BODY, num_key_value_heads=2, sliding_window=6)
    ),
    "alibi": lambda: BloomForCausalLM(BloomConfig(vocab_size=60, hidden_size=32, n_layer=2, n_head=2)),
}


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", OTHERS)
def test_other_ways_of_counting_positions(most_rows, spread, name, beams):
    torch.manual_seed(0)
    model = OTHERS[name]().eval()
    spread(model)
    encodes, stops = model.config.is_encoder_decoder, (2, 7, 16, 25, 34, 43)
    begin = (model.config.decoder_start_token_id,) if encodes else ()
    random = np.random.default_rng(0)
    prompts = [random.integers(5, 60, size=n).astype(np.int32) for n in (1, 5, 20, 3, 9, 33, 2, 17)]
    most_rows(4)
    found = generate(
        schedule.Run(model, torch.device("cpu"), torch.float32, 10_000),
        [Prompt(ids, begin) for ids in prompts],
        Decoding(max_new_tokens=20, stop_ids=stops, num_beams=beams),
    )
    for ids, texts in zip(prompts, found, strict=True):
        output = model.generate(
            torch.tensor(ids[None].astype(np.int64)),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=20,
            num_beams=beams,
            do_sample=False,
            eos_token_id=list(stops),
            pad_token_id=1,
        )
        expected = output[0].tolist()[1 if encodes else len(ids) :]
        end = next((i for i, token in enumerate(expected) if token in stops), len(expected))
        assert texts[0].ids == expected[:end]


def test_the_best_hypotheses_come_in_the_order_of_their_scores(writer):
    one = writer("bart")
    for texts in one.write(num_beams=4, num_outputs=3):
        assert len(texts) == 3
        assert [text.score for text in texts] == sorted((text.score for text in texts), reverse=True)
    assert one.write(num_beams=4, num_outputs=1)[2] == one.write(num_beams=4, num_outputs=3)[2][:1]


def test_a_score_is_the_log_probability_by_the_length(writer):
    one = writer("gpt2")
    prompt = one.prompts[4]
    for penalty in (0.0, 1.0):
        (text,) = one.write([prompt], length_penalty=penalty)[0]
        whole = [*prompt.ids.tolist(), *text.ids]
        with torch.no_grad():
            steps = one.model(torch.tensor([whole])).logits[0, len(prompt.ids) - 1 :].log_softmax(dim=-1)
        total = float(steps[:-1].gather(1, torch.tensor(text.ids)[:, None]).sum())
        assert text.finish == "stop"
        length = len(text.ids) + 1  # the stop token is the most probable one after the last
        assert text.score == pytest.approx((total + float(steps[-1].max())) / length**penalty, abs=1e-4)


def test_samples_depend_on_seed_prompt_and_number_alone(writer, most_rows):
    one = writer("llama")
    options = {"do_sample": True, "num_outputs": 3, "temperature": 1.5, "seed": 5}
    whole = [[text.ids for text in texts] for texts in one.write(**options)]
    assert len({tuple(ids) for texts in whole for ids in texts}) > 12  # they differ
    most_rows(3)
    assert [[text.ids for text in texts] for texts in one.write(one.prompts[::-1], **options)] == whole[::-1]
    assert [text.ids for text in one.write([one.prompts[2]], **{**options, "num_outputs": 1})[0]] == whole[2][
        :1
    ]
    assert [[text.ids for text in texts] for texts in one.write(**{**options, "seed": 6})] != whole
    twice = one.write([one.prompts[1], one.prompts[1]], **options)
    assert twice[0] == twice[1]


def test_samples_follow_the_distribution_and_its_cuts(writer):
    one = writer("gpt2")
    prompt = one.prompts[1]
    with torch.no_grad():
        logits = one.model(torch.tensor(prompt.ids[None].astype(np.int64))).logits[0, -1]
    shares = (logits / 2.0).softmax(dim=-1)
    options = {"do_sample": True, "num_outputs": 400, "temperature": 2.0, "max_new_tokens": 1, "stop_ids": ()}
    firsts = [text.ids[0] for text in one.write([prompt], **options)[0]]
    best = int(shares.argmax())
    share = float(shares[best])
    assert firsts.count(best) / 400 == pytest.approx(share, abs=4 * (share * (1 - share) / 400) ** 0.5)
    ranked = shares.argsort(descending=True).tolist()
    for cut, allowed in (
        ({"top_k": 3}, 3),
        ({"top_p": float(shares[ranked[:2]].sum()) - 1e-4}, 2),
        ({"min_p": 1.0}, 1),
    ):
        firsts = [text.ids[0] for text in one.write([prompt], **{**options, "num_outputs": 60, **cut})[0]]
        assert set(firsts) <= set(ranked[:allowed])
        assert len(set(firsts)) == allowed


def test_a_frequency_penalty_is_taken_off_for_each_time(writer):
    one = writer("gpt2")
    free = one.write(stop_ids=())
    held = one.write(stop_ids=(), frequency_penalty=1e4)
    assert any(len(set(texts[0].ids)) < LONGEST for texts in free)
    assert all(len(set(texts[0].ids)) == LONGEST for texts in held)


def test_forced_tokens_and_bounds_of_length(writer):
    one = writer("marian")
    texts = [found[0] for found in one.write(forced_first=9, forced_last=11, min_new_tokens=3, stop_ids=(2,))]
    assert all(text.ids[0] == 9 for text in texts)
    assert all(text.ids[-1] == 11 for text in texts if text.finish == "length")
    assert all(3 <= len(text.ids) <= LONGEST for text in texts)
    expected = one.transformers(num_beams=3, forced_bos_token_id=9, forced_eos_token_id=2)
    found = one.write(num_beams=3, forced_first=9, forced_last=2)
    assert [texts[0].ids for texts in found] == [ids for ids, _ in expected]


def test_stop_strings_end_a_text(writer):
    one = writer("gpt2")
    hooks = {"decode": lambda ids: " ".join(map(str, ids))}
    plain = one.write(stop_ids=())
    token = plain[4][0].ids[3]
    for beams in (1, 2):
        for texts in one.write(stop_ids=(), num_beams=beams, stop_strings=(f" {token}",), hooks=hooks):
            text = texts[0]
            assert (text.finish == "stop_string") == (token in text.ids[1:])
            assert text.ids[1:].count(token) <= 1


def test_tokens_are_streamed_in_order_and_once(writer, most_rows, monkeypatch):
    one = writer("bart")
    heard: dict[tuple[int, int], list[int]] = {}

    def on_token(prompt, sample, token):
        heard.setdefault((prompt, sample), []).append(token)

    options = {"do_sample": True, "num_outputs": 2}
    memory_for(monkeypatch, one.model, rows=6)
    with pytest.warns(OutOfMemoryBackoffWarning):
        found = one.write(hooks={"on_token": on_token}, **options)
    assert heard == {
        (i, sample): text.ids
        for i, texts in enumerate(found)
        for sample, text in enumerate(texts)
        if text.ids
    }


def test_a_processor_sees_rows_and_changes_scores(writer, most_rows):
    one = writer("t5")

    def only_even(rows, scores):
        assert len(rows) == len(scores)
        for row in rows:
            assert list(row.context) == list(one.begin)
            assert all(token % 2 == 0 for token in row.generated)
        scores[:, 1::2] = -torch.inf
        return scores

    most_rows(5)
    for beams in (1, 2):
        found = one.write(num_beams=beams, hooks={"processors": [only_even]})
        assert all(token % 2 == 0 for texts in found for token in texts[0].ids)


def memory_for(monkeypatch, model, rows):
    """Let a pass of more than `rows` rows run out of memory."""
    forward = model.forward

    def limited(*args, **kwargs):
        ids = kwargs.get("input_ids", kwargs.get("decoder_input_ids"))
        if len(ids) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(*args, **kwargs)

    limited.__wrapped__ = forward  # its arguments are looked up
    monkeypatch.setattr(model, "forward", limited)


@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_short_memory_gives_the_same_texts_with_one_warning(writer, monkeypatch, name):
    one = writer(name)
    for beams in (1, 3):
        expected = one.write(num_beams=beams)
        with monkeypatch.context() as patch:
            memory_for(patch, one.model, rows=beams)
            with pytest.warns(OutOfMemoryBackoffWarning, match="token_budget=") as record:
                found = one.write(num_beams=beams)
            assert len(record) == 1
        assert [texts[0].ids for texts in found] == [texts[0].ids for texts in expected]
    memory_for(monkeypatch, one.model, rows=0)
    with pytest.raises(torch.OutOfMemoryError):
        one.write()


def test_texts_end_at_the_last_position(writer):
    one = writer("gpt2")  # 64 positions
    texts = [found[0] for found in one.write(max_new_tokens=100, stop_ids=())]
    assert [len(text.ids) for text in texts] == [64 - n for n in (1, 5, 20, 3, 9, 33, 2, 17)]
    with pytest.raises(ValueError, match=r"prompt 1 has 64 tokens, and the model has 64 positions"):
        one.write([one.prompts[0], Prompt(np.zeros(64, dtype=np.int32))])
    assert [len(one.write([Prompt(one.ids[1], limit=4)], stop_ids=())[0][0].ids)] == [4]


def test_what_can_not_be_generated(writer):
    one = writer("gpt2")
    assert one.write([]) == []
    with pytest.raises(ValueError, match="prompt 1 has no tokens"):
        one.write([one.prompts[0], Prompt(np.zeros(0, dtype=np.int32))])
    with pytest.raises(ValueError, match=r"num_beams=9999 is more than the \d+ tokens"):
        one.write(num_beams=9999)
    with pytest.raises(ValueError, match=r"top_k=9999 is more than the \d+ tokens"):
        one.write(do_sample=True, top_k=9999)
    with pytest.raises(ValueError, match="stop_strings need decode"):
        one.write(stop_strings=("a",))
    with pytest.raises(ValueError, match="on_token needs num_beams=1"):
        one.write(num_beams=2, hooks={"on_token": print})
    state = MambaForCausalLM(MambaConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, state_size=2))
    with pytest.raises(WrongTaskError, match="keep a recurrent state"):
        generate(
            schedule.Run(state, torch.device("cpu"), torch.float32, 100),
            one.prompts,
            Decoding(max_new_tokens=2),
        )


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"max_new_tokens": 0}, ValueError, "max_new_tokens must be at least 1"),
        ({"min_new_tokens": 13}, ValueError, "min_new_tokens=13 is more than max_new_tokens=12"),
        ({"do_sample": True, "num_beams": 2}, ValueError, "contradict each other"),
        ({"temperature": 0.5}, ValueError, "temperature=0.5: an option of sampling"),
        ({"top_k": 5, "top_p": 0.5}, ValueError, "top_k=5, top_p=0.5: an option of sampling"),
        ({"num_outputs": 3, "num_beams": 2}, ValueError, "raise num_beams, or pass do_sample=True"),
        ({"do_sample": True, "temperature": 0}, ValueError, "temperature must be above 0"),
        ({"do_sample": True, "top_p": 1.5}, ValueError, "top_p must be above 0 and at most 1"),
        ({"early_stopping": "later"}, ValueError, 'early_stopping must be True, False or "never"'),
        ({"num_beams": 2.0}, TypeError, "num_beams must be an integer"),
        ({"stop_strings": ("",)}, ValueError, "stop_strings must hold texts"),
    ],
)
def test_contradictions_are_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        Decoding(**{"max_new_tokens": LONGEST, **options})
