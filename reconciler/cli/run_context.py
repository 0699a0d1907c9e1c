"""Who approved what a run writes: asked beside the run, so that it neither delays nor fails it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from reconciler.cli import output
from reconciler.errors import ReconcilerError
from reconciler.hooks import added, load
from reconciler.model import RunContext, escaped

_SECONDS: Final = 5.0
"""The longest wait for the answer, after the run has ended."""

Source: TypeAlias = Callable[[Mapping[str, str]], Iterator[RunContext]]
"""Yields what is known at once, then what had to be asked for. Raises ``ReconcilerError``."""


class ContextLookup:
    """One question to what features know of the environment. ``sources``: theirs by default."""

    def __init__(self, environment: Mapping[str, str] | None = None, sources: tuple[Source, ...] | None = None) -> None:
        self._environment = dict(os.environ if environment is None else environment)
        self._sources = tuple(load(place) for place in added("RUN_CONTEXTS")) if sources is None else sources
        self._found: RunContext | None = None
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._ask, name="context", daemon=True)
        self._thread.start()

    def result(self, seconds: float = _SECONDS) -> RunContext | None:
        """Return the context that is known by now, or in some seconds. A warning states what is missing."""
        self._thread.join(seconds)
        problem = f"the forge did not answer within {seconds:g} s of the run's end" if self._thread.is_alive() else self._problem
        if problem is not None:
            output.tell(f"warning: the record of this run lacks who approved it: {escaped(problem)}")
        return self._found

    def _ask(self) -> None:
        try:
            for source in self._sources:
                for context in source(self._environment):
                    self._found = context
        except ReconcilerError as error:
            self._problem = str(error)
        except Exception as error:  # noqa: BLE001 - whatever breaks here, the run and its record go on
            self._problem = f"{type(error).__name__}: {error}"
