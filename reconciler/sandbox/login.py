"""Who may log in."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user of the SASL/PLAIN listener."""

    name: str
    password: str = field(repr=False)
