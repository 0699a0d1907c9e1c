"""Effective quotas for a terminal: a table of keys for each client, and what is to be said about the state they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler.model import Known, KnownAddress, ObservedFrom, display_name
from reconciler.render.amounts import amount
from reconciler.render.plan_text import cluster_title
from reconciler.render.resolve_ladder import ladder_lines
from reconciler.render.styled import Line, Style, line
from reconciler.resolution import CLIENT_LEVELS, USER_LEVELS, KeyAnswer, QuotaView, Resolution, Tags, ViewKind

_WIDTH: Final = max(len(key) for key in ("controller_mutation_rate", "connection_creation_rate"))
_ORIGINS: Final = {ObservedFrom.BROKER: "its brokers", ObservedFrom.ZOOKEEPER: "ZooKeeper", ObservedFrom.SNAPSHOT: "a snapshot"}


def resolution_lines(resolution: Resolution, *, every_key: bool) -> tuple[Line, ...]:
    """One client with a row a key; ``every_key``: also those that are unlimited."""
    return tuple(_lines(resolution, every_key=every_key))


def view_title(view: QuotaView) -> str:
    """``cluster prod-eu (4L6g3nShT, Kafka 4.3), read from its brokers at 2026-01-02 12:00:00 UTC``."""
    title, observed = cluster_title(view.cluster), view.observed
    if observed is None:
        return f"the manifests alone, for {title}"
    read = f"read from {_ORIGINS[observed.origin]} at {observed.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"{title}, {read}" + (", after the plan of the manifests" if view.kind is ViewKind.PLANNED else "")


def note_lines(notes: Iterable[str]) -> Iterator[Line]:
    """What is to be said beside the answers."""
    return (line(("Note: ", Style.FAINT), note) for note in notes)


def explained(resolutions: Sequence[Resolution]) -> Iterator[Line]:
    """What ``(any other)`` and ``(none)`` mean, where they are shown."""
    shown = " ".join(str(one.client) for one in resolutions)
    if "(any other)" in shown:
        yield line(("  (any other): whom no quota names", Style.FAINT))
    if "(none)" in shown:
        yield line(("  client-id=(none): a client that sends no client id", Style.FAINT))


def _lines(resolution: Resolution, *, every_key: bool) -> Iterator[Line]:
    yield line((str(resolution.client), Style.STRONG))
    limits = [amount(key, answer.value) for key, answer in resolution.quotas.items()]
    width = max(map(len, limits), default=0)
    sources = max((len(str(answer.source)) for answer in resolution.quotas.values()), default=0)
    rows = 0
    for key in resolution.keys:
        if (answer := resolution.quotas.get(key)) is not None:
            yield from _row(resolution.client, key, answer, width, sources)
        elif key in resolution.unknown:
            yield line(f"  {key:<{_WIDTH}}  ", ("unknown", Style.WARN), f": {resolution.unknown[key]}")
        elif every_key:
            yield line(f"  {key:<{_WIDTH}}  ", ("unlimited", Style.FAINT))
        else:
            continue
        rows += 1
    if not rows:
        yield line(("  unlimited", Style.FAINT))
    for key, rungs in (resolution.ladder or {}).items():
        yield from ladder_lines(key, resolution.client, rungs)


def _row(client: Known, key: str, answer: KeyAnswer, width: int, sources: int) -> Iterator[Line]:
    yield line(
        f"  {key:<{_WIDTH}}  {amount(key, answer.value):<{width}}  ",
        (f"level {answer.level}  {answer.source!s:<{sources}}  ", Style.PLAIN),
        (f"bucket {_tags(answer.bucket)}: {_whose(client, answer)}", Style.FAINT),
    )
    for hidden in answer.overridden or ():
        text = f"  {'  hides':<{_WIDTH}}  {amount(key, hidden.value):<{width}}  level {hidden.level}  {hidden.entity}"
        yield line((text, Style.FAINT))
    if answer.shared_with is not None and answer.shared_with.clients:
        shared = answer.shared_with
        more = f", and {shared.more} more" if shared.more else ""
        yield line((f"  {'  shared with':<{_WIDTH}}  {', '.join(map(str, shared.clients))}{more}", Style.FAINT))


def _tags(bucket: Tags) -> str:
    return " ".join(f"{tag}={'(its own)' if name is None else display_name(name)}" for tag, name in bucket.items())


def _whose(client: Known, answer: KeyAnswer) -> str:
    if isinstance(client, KnownAddress):
        return "for this address alone"
    if answer.level in USER_LEVELS:
        return "all client ids of the user together"
    if answer.level in CLIENT_LEVELS:
        return "all users of the client id together"
    return "for this user and client id alone"
