"""Texts for many prompts: sorted by length, in one batch that rows leave as they end and waiting prompts fill up.

A fixed batch runs until its longest text ends, mostly over rows that ended before. What comes out does not depend on
which rows share a batch, but for the rounding of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from transformers import PreTrainedModel

from ...checkpoints.structure import max_tokens
from ...cpu.kernels import computing
from ...errors import OutOfMemoryBackoffWarning, WrongTaskError, warn_user
from .beams import Beams
from .choices import Choices
from .flight import Flight
from .options import Decoding
from .positions import RELATIVE, row_positions
from .processors import Processors
from .rows import Decode, Generated, OnToken, Processor, Prompt, StopStrings
from .schedule import Run, Schedule


def generate(
    run: Run,
    prompts: Sequence[Prompt],
    options: Decoding,
    *,
    processors: Sequence[Processor] = (),
    decode: Decode | None = None,
    on_token: OnToken | None = None,
) -> list[list[Generated]]:
    """Generate `options.num_outputs` texts for each prompt.

    Parameters
    ----------
    run : Run
        The model, and how it is run.
    prompts : sequence of Prompt
        Without padding; none may be empty.
    options : Decoding
        How tokens are chosen, and when a text ends.
    processors : sequence of Processor, optional
        Called on the scores of each step after the penalties, before the cuts of sampling. They may not keep state from
        call to call but by a row's `prompt`, `sample` and `generated`: rows come and go, and may begin again.
    decode : callable, optional
        Turns ids into text; needed for stop strings.
    on_token : callable, optional
        Called with prompt, sample and token as each is chosen; the order of a sample's tokens is that of its text.

    Returns
    -------
    list of list of Generated
        The texts of each prompt, in the order given: of beams the best first, of samples by their number.

    Raises
    ------
    ValueError
        For an empty prompt, more beams than tokens of the vocabulary, stop strings without `decode`, a stream of beams.
    WrongTaskError
        For an architecture that keeps a recurrent state.
    """
    _check(run.model, prompts, options, decode, on_token)
    if not prompts:
        return []
    chain = Processors(options, processors)
    stops = StopStrings(options.stop_strings, decode)
    chooser: Any = Beams(options, chain, stops)
    if options.num_beams == 1:
        chooser = Choices(options, chain, stops, on_token)
    with computing(run.device, run.precision), row_positions(run.model) as positions:
        flight = Flight(run.model, run.device, positions)
        schedule = Schedule(run, _limited(run.model, prompts), options, chooser, flight)
        found = schedule.run_all()
    if schedule.budget < run.token_budget:
        _warn(schedule.budget)
    return [[text for _, text in sorted(of_prompt.items())] for of_prompt in found]


def _check(
    model: PreTrainedModel,
    prompts: Sequence[Prompt],
    options: Decoding,
    decode: Decode | None,
    on_token: OnToken | None,
) -> None:
    kinds = getattr(model.config.get_text_config(decoder=True), "layer_types", None) or ()
    if (
        getattr(model, "_is_stateful", False)
        or not all("attention" in kind for kind in kinds)
        or ("linear_attention" in kinds)
    ):
        raise WrongTaskError(
            f"{model.config.model_type!r} models keep a recurrent state, which can't be generated from here; pass a "
            f"model whose layers attend."
        )
    vocabulary = int(model.get_output_embeddings().weight.shape[0])
    if options.num_beams > vocabulary:
        raise ValueError(
            f"num_beams={options.num_beams} is more than the {vocabulary} tokens of the vocabulary; lower it."
        )
    if options.top_k is not None and options.top_k > vocabulary:
        raise ValueError(
            f"top_k={options.top_k} is more than the {vocabulary} tokens of the vocabulary; lower it."
        )
    if options.stop_strings and decode is None:
        raise ValueError("stop_strings need decode, a function that turns ids into text.")
    if on_token is not None and options.num_beams > 1:
        raise ValueError(
            f"on_token needs num_beams=1, got {options.num_beams}: which tokens a beam search takes shows at its end."
        )
    for i, prompt in enumerate(prompts):
        if not len(prompt.ids) or (model.config.is_encoder_decoder and not prompt.begin):
            raise ValueError(f"prompt {i} has no tokens to go on from; give it the token that begins a text.")


def _limited(model: PreTrainedModel, prompts: Sequence[Prompt]) -> list[Prompt]:
    """Return the prompts, none of whose texts leads beyond the last position of the model's decoder."""
    most = None if model.config.model_type in RELATIVE else max_tokens(model.config, None)
    if most is None:
        return list(prompts)
    limited = []
    for i, prompt in enumerate(prompts):
        n = len(prompt.begin) if model.config.is_encoder_decoder else len(prompt.ids)
        if n >= most:
            raise ValueError(
                f"prompt {i} has {n} tokens, and the model has {most} positions, which leaves none for a text; cut it."
            )
        limited.append(replace(prompt, limit=min(most - n, prompt.limit or most)))
    return limited


def _warn(token_budget: int) -> None:
    warn_user(
        f"out of memory: continued with at most {token_budget} tokens at a time (same result, slower); "
        f"pass token_budget={token_budget} to start there.",
        OutOfMemoryBackoffWarning,
    )
