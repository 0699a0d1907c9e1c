"""A metrics server as a source of traffic: ``spec.traffic`` of a cluster, and the matchers of ``--match``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, Self

_MATCHER: Final = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)
DEFAULT_DAYS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMatcher:
    """A condition on a label of series, as in PromQL: ``=``, ``!=``, ``=~`` or ``!~``."""

    label: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """``cluster="prod"``; shells take the quotes away, so they may be missing. Raises ``ValueError`` for another form."""
        if not (match := _MATCHER.fullmatch(text)):
            raise ValueError(text)
        label, operator, value = match.groups()
        if value[:1] in ('"', "'"):
            if len(value) < 2 or value[-1] != value[0]:
                raise ValueError(text)
            value = json.loads(value) if value[0] == '"' else value[1:-1]
            if not isinstance(value, str):
                raise ValueError(text)
        return cls(label=label, operator=operator, value=value)

    def __str__(self) -> str:
        """In PromQL."""
        return f"{self.label}{self.operator}{json.dumps(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricServer:
    """A Prometheus server. ``address`` begins with ``http``. ``http_config``: the file with its login, never the login itself."""

    address: str
    http_config: str | None = None
    match: tuple[LabelMatcher, ...] = ()
    days: int = DEFAULT_DAYS
    """How many days before now a backtest reads."""
