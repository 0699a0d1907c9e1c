"""The levels of one key drawn as a ladder, in ASCII: the hit is marked by an arrow, also without colours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import OTHER, ClientName, EntityName, Known, KnownAddress, display_name
from reconciler.render.amounts import amount
from reconciler.render.styled import Line, Style, line
from reconciler.resolution import CLIENT_PRECEDENCE, Rung, RungStatus

_STYLES: Final = {RungStatus.WINS: Style.GOOD, RungStatus.HIDDEN: Style.PLAIN}


def ladder_lines(key: str, client: Known, rungs: Sequence[Rung]) -> Iterator[Line]:
    """A title and one line a level, the strongest at the top; one line for a key that is set nowhere."""
    yield line()
    if all(rung.value is None for rung in rungs):
        yield line((f"  {key}", Style.STRONG), "  (set at none of the levels)")
        return
    labels = [_label(client, rung) for rung in rungs]
    width = max(len(label) for label in labels)
    amounts = ["-" if rung.value is None else amount(key, rung.value) for rung in rungs]
    values = max(len(text) for text in amounts)
    winner = next((rung.level for rung in rungs if rung.status is RungStatus.WINS), None)
    yield line((f"  {key}", Style.STRONG), "" if winner else "  (nothing applies)")
    for rung, label, text in zip(rungs, labels, amounts, strict=True):
        arrow, bar = ("==>", "|===|") if rung.status is RungStatus.WINS else ("   ", "|---|")
        said = f"  {arrow} {rung.level} {bar}  {label:<{width}}  {text:<{values}}  {_said(client, rung, winner)}"
        yield line((said.rstrip(), _STYLES.get(rung.status, Style.FAINT)))


def _said(client: Known, rung: Rung, winner: int | None) -> str:
    match rung.status:
        case RungStatus.WINS:
            return "applies"
        case RungStatus.HIDDEN:
            return f"hidden by level {winner}" if winner else "unclear"
        case RungStatus.UNSET:
            return ""
    if not isinstance(client, KnownAddress) and client.client_id == "":
        return "not for a client without a client id"
    return "no quota names it"


def _label(client: Known, rung: Rung) -> str:
    """The entity of a level, also of one that cannot be set for this client."""
    if rung.entity is not None:
        return str(rung.entity)
    if isinstance(client, KnownAddress):
        return f"ip={_shown(client.ip)}"
    names = CLIENT_PRECEDENCE[rung.level - 1].names_for(client.user, client.client_id)
    parts = zip(("user", "client-id"), names, strict=True)
    return " ".join(f"{entity_type}={_shown(name)}" for entity_type, name in parts if name is not None)


def _shown(name: ClientName | EntityName) -> str:
    if name is OTHER:
        return "(any other)"
    return display_name(name) if name else "(none)"
