"""Tables in a state that travels."""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd


class TablesTravel:
    """A mixin that stores tables as lists: skops knows no pandas, and pickles of pandas do not outlive its versions."""

    _frames: ClassVar[tuple[str, ...]] = ()
    _series: ClassVar[tuple[str, ...]] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and learned state, tables as dicts."""
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]  # BaseEstimator's: a dict
        for name in self._frames:
            if name in state:
                state[name] = state[name].to_dict("list")
        for name in self._series:
            if name in state:
                table = state[name]
                state[name] = {"index": table.index.tolist(), "data": table.tolist(), "name": table.name}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state, dicts as tables again."""
        state = dict(state)
        for name in self._frames:
            if isinstance(state.get(name), dict):
                state[name] = pd.DataFrame(state[name])
        for name in self._series:
            if isinstance(state.get(name), dict):
                state[name] = pd.Series(**state[name])
        super().__setstate__(state)  # type: ignore[misc]  # BaseEstimator's
