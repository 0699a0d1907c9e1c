"""Two mechanisms of SASL that the core does not know."""

from __future__ import annotations

from typing import Final

LOGINS: Final = ("reconciler.features.logins.kinds:KINDS",)
