"""How texts are written: options, constraints, drafts, streams."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._engine.checkpoints.bundle import from_bundle, to_bundle
from ..._engine.checkpoints.loading import Checkpoint, load_checkpoint
from ..._engine.checkpoints.sources import resolve
from ..._engine.devices import draw_seed
from ..._engine.errors import TruncationWarning, warn_user
from ..._engine.inference.generation.assisted import assisted
from ..._engine.inference.generation.constraints import Constraint, grammar_of
from ..._engine.inference.generation.generate import generate
from ..._engine.inference.generation.options import Decoding
from ..._engine.inference.generation.rows import Generated, Prompt
from ..._engine.inference.generation.schedule import Run, writing_budget
from ..._engine.text.windows import IntArray
from ..._engine.validation import check_number
from .base import ContinuingTransformer
from .prompts import Prompts, end_tokens
from .texts import Decoder, OnText, Stream, until

DRAWN = ("top_k", "top_p", "min_p")


class WritingTransformer(ContinuingTransformer):
    """A model that writes; not to be used by itself."""

    max_new_tokens: int
    min_new_tokens: int
    num_return_sequences: int
    num_beams: int
    length_penalty: float
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float
    frequency_penalty: float
    no_repeat_ngram_size: int
    stop_strings: Sequence[str]
    json_schema: Any
    regex: str | None
    grammar: str | None
    choices: Any
    draft_model: Any

    draft_: Checkpoint
    draft_key_: str

    def _validate_common(self) -> None:
        super()._validate_common()
        check_number("temperature", self.temperature, low=0)
        self._check_contradictions()
        self._decoding()
        grammar = self._grammar()
        if grammar is not None and len(self.stop_strings):
            raise ValueError(
                "stop_strings would cut a constrained text before it is complete; pass one of the two."
            )
        if self.draft_model is not None:
            self._check_draft(grammar)

    def _check_contradictions(self) -> None:
        check_number("num_beams", self.num_beams, low=1, integer=True)
        if isinstance(self.stop_strings, str):
            raise TypeError("stop_strings must be a list of texts, got one str; put it into a list.")
        if not isinstance(self.stop_strings, (Sequence, np.ndarray)):
            raise TypeError(
                f"stop_strings must be a list of texts, got {type(self.stop_strings).__name__}; pass [] for none."
            )
        drawn = [f"{name}={getattr(self, name)!r}" for name in DRAWN if getattr(self, name) is not None]
        if self.temperature == 0 and drawn:
            raise ValueError(
                f"{', '.join(drawn)} and temperature=0 contradict each other: 0 takes the most probable token; pass a "
                f"temperature above 0 to draw."
            )
        if self.temperature > 0 and self.num_beams != 1:
            raise ValueError(
                f"temperature={self.temperature} and num_beams={self.num_beams} contradict each other: samples are "
                f"drawn one by one; pass temperature=0, or num_beams=1."
            )
        check_number("num_return_sequences", self.num_return_sequences, low=1, integer=True)
        if self.temperature == 0 and self.num_return_sequences > self.num_beams:
            raise ValueError(
                f"num_return_sequences={self.num_return_sequences}, but temperature=0 gives {self.num_beams} "
                f"text(s) with num_beams={self.num_beams}; pass a temperature above 0, or more beams."
            )

    def _check_draft(self, grammar: str | None) -> None:
        plain: dict[str, Any] = {
            "temperature": 0,
            "num_beams": 1,
            "repetition_penalty": 1.0,
            "frequency_penalty": 0.0,
        }
        plain |= {"no_repeat_ngram_size": 0, "min_new_tokens": 0}
        other = [
            f"{name}={getattr(self, name)!r}" for name, value in plain.items() if getattr(self, name) != value
        ]
        other += ["a constraint"] if grammar is not None else []
        if other:
            raise ValueError(
                f"draft_model speeds up the plain greedy text, and does not go with {', '.join(other)}; leave out "
                f"one of the two."
            )

    def _check_stream(self, on_text: Any) -> None:
        if not callable(on_text):
            raise TypeError(
                f"on_text must be a function of a row, a sample and a piece, got {type(on_text).__name__}."
            )
        if self.num_beams > 1:
            raise ValueError(
                f"on_text and num_beams={self.num_beams} contradict each other: which text a beam search takes shows "
                f"at its end; pass num_beams=1, or leave out on_text."
            )

    def _grammar(self) -> str | None:
        return grammar_of(
            json_schema=self.json_schema, regex=self.regex, grammar=self.grammar, choices=self.choices
        )

    def _decoding(self, stop_ids: tuple[int, ...] = (), seed: int = 0) -> Decoding:
        draws = self.temperature > 0
        return Decoding(
            max_new_tokens=self.max_new_tokens,
            min_new_tokens=self.min_new_tokens,
            num_beams=self.num_beams,
            length_penalty=self.length_penalty,
            num_outputs=self.num_return_sequences,
            do_sample=bool(draws),
            temperature=self.temperature if draws else 1.0,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            frequency_penalty=self.frequency_penalty,
            no_repeat_ngram_size=self.no_repeat_ngram_size,
            stop_ids=stop_ids,
            stop_strings=tuple(self.stop_strings),
            seed=seed,
        )

    # -- writing ----------------------------------------------------------------------------------------------------

    def _write(self, X: Any, on_text: OnText | None) -> list[list[str]]:
        """Return the texts of each row."""
        self._ready()
        self._validate_common()  # parameters may have been set since the fit
        if on_text is not None:
            self._check_stream(on_text)
        prompts = self._prompts_again(X)
        if not len(prompts):
            return []
        rows = self._contexts(prompts)
        stops = end_tokens(self.model_, self.tokenizer_)
        options = self._decoding(stops, draw_seed(self.random_state) if self.temperature else 0)
        # the answer to a message stands alone; what goes on from a text is joined to it
        answers = self.responds_ or self.chat == "always" or any(turns is not None for turns in prompts.turns)
        decoder = Decoder(self.tokenizer_, joined=not answers)
        stream = None if on_text is None else Stream(on_text, decoder, rows, options.stop_strings)
        grammar = self._grammar()
        constraint = None
        if grammar is not None:
            width = int(self.model_.get_output_embeddings().weight.shape[0])
            constraint = Constraint(grammar, self.tokenizer_, width, stops)
        found = self._generated(rows, options, decoder, stream, constraint)
        texts = self._texts(found, rows, options, decoder, constraint)
        if stream is not None:
            for row, several in enumerate(texts):
                for sample, text in enumerate(several):
                    stream.end(row, sample, text)
        return texts

    def _contexts(self, prompts: Prompts) -> list[IntArray]:
        """Return the tokens of the prompts; of long ones the end, with one warning."""
        limit = self._limit()
        if limit == self.max_length_:  # the model's own positions: room for the text too
            limit = max(1, limit - min(int(self.max_new_tokens), limit // 2))
        rows = self._prompt_encoder().ids(prompts)
        n_cut = sum(len(row) > limit for row in rows)
        if n_cut:
            warn_user(
                f"{n_cut} of {len(rows)} prompts are longer than {limit} tokens, and only their ends were read; raise "
                f"max_length where the model allows it, or shorten them.",
                TruncationWarning,
                n_cut=n_cut,
                n_documents=len(rows),
            )
        return [row[-limit:] for row in rows]

    def _generated(
        self,
        rows: list[IntArray],
        options: Decoding,
        decoder: Decoder,
        stream: Stream | None,
        constraint: Any,
    ) -> list[list[Generated]]:
        passes = self._passes()
        device = passes.collator.device
        if self.draft_model is not None:
            draft = self._draft()
            draft.model.to(device)  # type: ignore[arg-type]  # the stubs lose `self` there
            return [[one] for one in assisted(passes.model, draft.model, rows, options, passes.precision)]
        run = Run(
            passes.model,
            device,
            passes.precision,
            writing_budget(self.token_budget, device),
            progress=bool(self.verbose),
        )
        return generate(
            run,
            [Prompt(row) for row in rows],
            options,
            processors=() if constraint is None else (constraint,),
            decode=decoder.plain if options.stop_strings else None,
            on_token=stream,
        )

    def _texts(
        self,
        found: list[list[Generated]],
        rows: list[IntArray],
        options: Decoding,
        decoder: Decoder,
        constraint: Constraint | None,
    ) -> list[list[str]]:
        if constraint is None:
            return [
                [until(decoder.text(one.ids, row.tolist()), options.stop_strings) for one in several]
                for several, row in zip(found, rows, strict=True)
            ]
        texts: list[list[str]] = []
        n_ended = 0
        for i, several in enumerate(found):
            texts.append([])
            for one in several:
                ending = constraint.ending(one.ids)
                if ending is None:
                    raise ValueError(
                        f"the text for X[{i}] can't be brought to an end that the constraint allows, after "
                        f"{constraint.text(one.ids)[-60:]!r}; raise max_new_tokens, or loosen the constraint."
                    )
                n_ended += bool(ending)
                texts[-1].append(constraint.text([*one.ids, *ending]))
        if n_ended:
            warn_user(
                f"{n_ended} of {sum(map(len, found))} texts were not complete after max_new_tokens="
                f"{self.max_new_tokens} and got a short ending that the constraint allows, which the model did not "
                f"choose; raise max_new_tokens, or tighten the constraint.",
                TruncationWarning,
                n_cut=n_ended,
                n_documents=len(found),
            )
        return texts

    # -- the draft --------------------------------------------------------------------------------------------------

    def _draft(self) -> Checkpoint:
        """Return the small model that proposes tokens, loaded once."""
        key = str(self.draft_model)
        if getattr(self, "draft_key_", None) != key:
            if not isinstance(self.draft_model, (str, os.PathLike)):
                raise TypeError(
                    f"draft_model must be a hub id, a folder, 'bundled:NAME' or None, got "
                    f"{type(self.draft_model).__name__}."
                )
            draft = load_checkpoint(resolve(self.draft_model), "causal", need_head=True)
            if draft.tokenizer.get_vocab() != self.tokenizer_.get_vocab():
                raise ValueError(
                    f"draft_model={key} has other tokens than {self.model}; pass a smaller model of the same family."
                )
            self.draft_, self.draft_key_ = draft, key
        return self.draft_

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and learned state, with the draft, which travels too."""
        if self.draft_model is not None and hasattr(self, "model_"):
            self._draft()
        state = super().__getstate__()
        draft = state.pop("draft_", None)
        if draft is not None:
            state["draft_bundle_"] = to_bundle(draft, "causal")
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the models on the CPU."""
        state = dict(state)
        bundle = state.pop("draft_bundle_", None)
        super().__setstate__(state)
        if bundle is not None:
            self.draft_ = from_bundle(bundle)


def as_array(texts: list[list[str]], several: int) -> npt.NDArray[Any]:
    """Return texts as an array of objects, (n,), or (n, k) where there are k of each."""
    whole = np.empty((len(texts), several), dtype=object)
    for i, row in enumerate(texts):
        whole[i] = row
    return whole[:, 0] if several == 1 else whole
