"""Options at the ends of their ranges, and options that leave nothing to choose from."""

import pytest
import torch

from sktransformer._engine.inference.generation.options import Decoding
from sktransformer._engine.inference.generation.processors import EXCLUDED, Processors
from sktransformer._engine.inference.generation.rows import Row


@pytest.mark.parametrize("temperature", [1e-10, 1e-40, 1e-300])
def test_the_lowest_temperatures_take_the_most_probable_token(writer, temperature):
    one = writer("gpt2")
    greedy = [texts[0].ids for texts in one.write()]
    drawn = [texts[0].ids for texts in one.write(do_sample=True, temperature=temperature, seed=1)]
    assert drawn == greedy


def test_a_penalty_beyond_all_numbers_leaves_other_tokens_alone():
    row = Row(0, 0, (), 5, [2])
    scores = torch.tensor([[1.0, 2.0, 3.0]])
    found = Processors(Decoding(max_new_tokens=5, frequency_penalty=1e6))([row], scores)
    assert found.tolist() == [[1.0, 2.0, 3.0 - 1e6]]
    assert scores.tolist() == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length_penalty": 1000.0}, "length_penalty must be at least -20 and at most 20"),
        ({"length_penalty": float("-inf")}, "length_penalty must be at least -20"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty must be at least 1e-06 and at most"),
        ({"frequency_penalty": float("inf")}, "frequency_penalty must be at least"),
    ],
)
def test_penalties_that_numbers_can_not_hold_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Decoding(max_new_tokens=3, **options)


def only(*allowed):
    """Return a processor that leaves these tokens, and none where there are none."""

    def keep(rows, scores):
        kept = scores.clone()
        kept[:, [token for token in range(scores.shape[1]) if token not in allowed]] = EXCLUDED
        return kept

    return keep


def test_what_must_not_come_again_gives_way_to_what_alone_may_come():
    options = Decoding(max_new_tokens=5, no_repeat_ngram_size=1, min_new_tokens=3, stop_ids=(0,))
    rows = [Row(0, 0, (), 5, [1]), Row(1, 0, (), 5, [2])]
    scores = torch.tensor([[0.0, 1.0, 2.0, 3.0]] * 2)
    found = Processors(options, [only(0, 1)])(rows, scores)
    # the first row has said 1, and may not stop yet: both are left; the second may say 1
    assert found[0].tolist() == [0.0, 1.0, EXCLUDED, EXCLUDED]
    assert found[1].tolist() == [EXCLUDED, 1.0, EXCLUDED, EXCLUDED]
    every_token_once = Processors(Decoding(max_new_tokens=9, no_repeat_ngram_size=1))
    spent = every_token_once([Row(0, 0, (), 9, [0, 1, 2, 3])], scores[:1])
    assert spent.tolist() == scores[:1].tolist()


def test_beams_that_nothing_allows_are_no_texts(writer):
    one = writer("gpt2")
    one_way = {"hooks": {"processors": [only(5, one.stops[0])]}, "max_new_tokens": 4}
    texts = one.write([one.prompts[1]], num_beams=4, num_outputs=4, min_new_tokens=3, **one_way)[0]
    # "5 5 5" that stops and "5 5 5 5" are all there are
    assert {tuple(text.ids) for text in texts} == {(5, 5, 5), (5, 5, 5, 5)}
    assert len(texts) == 4
    assert all(text.score > -1e6 for text in texts)
    nothing = one.write([one.prompts[1]], num_beams=2, hooks={"processors": [only()]})[0]
    assert [len(text.ids) for text in nothing] == [0]


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"do_sample": True}])
def test_a_model_that_gives_no_numbers_is_no_writer(writer, options):
    one = writer("gpt2")
    norm = one.model.transformer.ln_f.weight
    before = norm.detach().clone()
    with torch.no_grad():
        norm.fill_(torch.nan)
    try:
        with pytest.raises(FloatingPointError, match="the model's outputs are NaN"):
            one.write(**options)
        with pytest.raises(FloatingPointError, match="the model's outputs are NaN"):
            one.write(hooks={"processors": [only(3)]}, **options)
    finally:
        with torch.no_grad():
            norm.copy_(before)
