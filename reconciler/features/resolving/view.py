"""Effective quotas for a terminal: a table of keys for each client, and notes about the state they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler.model import OTHER, ClientName, EntityName, Known, KnownAddress, display_name
from reconciler.render import Block, Column, Line, Style, cluster_title, labelled, line, read_words, table
from reconciler.resolution import (
    CLIENT_LEVELS,
    CLIENT_PRECEDENCE,
    USER_LEVELS,
    KeyAnswer,
    QuotaView,
    Resolution,
    Rung,
    RungStatus,
    Tags,
    ViewKind,
)
from reconciler.text import amount, live_expiry_text, unit_text

_WIDTH: Final = max(len(key) for key in ("controller_mutation_rate", "connection_creation_rate"))


def view_title(view: QuotaView) -> str:
    """``cluster prod-eu (4L6g3nShT, Kafka 4.3), read from its brokers at 2026-01-02 12:00:00 UTC``."""
    title, observed = cluster_title(view.cluster), view.observed
    if observed is None:
        return f"the manifests alone, for {title}"
    return f"{title}, {read_words(observed)}" + (", after the plan of the manifests" if view.kind is ViewKind.PLANNED else "")


def note_lines(notes: Iterable[str]) -> Iterator[Line]:
    """Notes beside the answers."""
    return (labelled("Note: ", Style.FAINT, note) for note in notes)


def ladders_of(resolutions: Sequence[Resolution]) -> Iterator[Line]:
    """The legend of ``(any other)`` and ``(none)``, for answers that show them."""
    shown = " ".join(str(resolution.client) for resolution in resolutions)
    if "(any other)" in shown:
        yield line(("  (any other): every client that no quota names", Style.FAINT))
    if "(none)" in shown:
        yield line(("  client-id=(none): a client that sends no client-id", Style.FAINT))


_COLUMNS: Final = (Column(title="key"), Column(title="limit", least=9), Column(title="level"), Column(title="set by", least=16))


def resolution_lines(resolution: Resolution, *, every_key: bool) -> Iterator[Block]:
    """One client with a row a key; ``every_key``: also those that are unlimited."""
    yield line((str(resolution.client), Style.STRONG))
    rows: list[tuple[str | tuple[str, Style], ...] | Line] = []
    for key in resolution.keys:
        if (answer := resolution.quotas.get(key)) is not None:
            rows += _rows(resolution.client, key, answer)
        elif key in resolution.unknown:
            rows.append(line(f"  {key:<{_WIDTH}}  ", ("unknown", Style.WARN), f": {resolution.unknown[key]}"))
        elif every_key:
            rows.append(line(f"  {key:<{_WIDTH}}  ", ("unlimited", Style.FAINT)))
    yield table(_COLUMNS, rows, titled=False) if rows else line(("  unlimited", Style.FAINT))
    for key, rungs in (resolution.ladder or {}).items():
        yield from ladder_lines(key, resolution.client, rungs)


def _rows(client: Known, key: str, answer: KeyAnswer) -> Iterator[tuple[str | tuple[str, Style], ...] | Line]:
    profile = "" if answer.profile is None else f" (profile {display_name(answer.profile)})"
    yield f"{key:<{_WIDTH}}", amount(key, answer.value), f"level {answer.level}", f"{answer.source}{profile}"
    yield line((f"  {'  quota group':<{_WIDTH}}  {_whose(client, answer)}", Style.FAINT), hang=6)
    if answer.unit is not None:
        yield line((f"  {'  declared':<{_WIDTH}}  {unit_text(key, answer.unit)}", Style.FAINT), hang=6)
    if answer.expiry is not None:
        yield line((f"  {'  temporary':<{_WIDTH}}  {live_expiry_text(key, answer.expiry)}", Style.FAINT), hang=6)


def _tags(bucket: Tags) -> str:
    return " ".join(f"{tag}={'(its own)' if name is None else display_name(name)}" for tag, name in bucket.items())


def _whose(client: Known, answer: KeyAnswer) -> str:
    """``all client-ids of user=payments-api``."""
    tags = _tags(answer.bucket)
    if "group" in answer.bucket:
        return f"all members of {tags}"
    if isinstance(client, KnownAddress):
        return f"{tags} alone"
    if answer.level in USER_LEVELS:
        return f"all client-ids of {tags}"
    if answer.level in CLIENT_LEVELS:
        return f"all users of {tags}"
    return f"{tags} alone"


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
        row = f"  {arrow} {rung.level} {bar}  {label:<{width}}  {text:<{values}}  {_said(client, rung, winner)}"
        yield line((row.rstrip(), _STYLES.get(rung.status, Style.FAINT)))


def _said(client: Known, rung: Rung, winner: int | None) -> str:
    match rung.status:
        case RungStatus.WINS:
            return "applies"
        case RungStatus.HIDDEN:
            return "overridden" if winner else "unclear"
        case RungStatus.UNSET:
            return ""
    if not isinstance(client, KnownAddress) and client.client_id == "":
        return "not for a client without a client-id"
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
