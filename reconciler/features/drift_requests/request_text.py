"""Title and text of a pull request about drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.features.drift_requests.adoption import PROPOSED, Adoption
from reconciler.model import DEFAULT, ClusterSpec, Drift, EntityDrift, Plan, display_name, escaped
from reconciler.render import code, drift_view, fold, plan_view, prose, shorten, size, view_markdown
from reconciler.text import count_of
from reconciler.yaml import scalar_text

_LIMIT: Final = 60_000
"""Bytes of the whole text. GitHub accepts 65,536 characters."""
_TABLE: Final = 18_000
_PLAN: Final = 16_000
TRAFFIC_BYTES: Final = 16_000
_MOST: Final = 20
_NAME: Final = 120


def proposal_title(drift: Drift, mode: str, count: int) -> str:
    """``Adopt drift of prod-eu: 3 entities``."""
    name = shorten(escaped(display_name(drift.cluster.name or "kafka")), _NAME)
    return f"{mode.capitalize()} drift of {name}: {count_of(count, 'entity', 'entities')}"


def proposal_body(drift: Drift, reverting: Sequence[str], adoption: Adoption, *, mode: str, spec: ClusterSpec) -> str:
    """What changed on the cluster, what a merge does, what a revert writes, and how to ignore an entity instead."""
    chosen = replace(
        drift,
        entities=tuple(each for each in drift.entities if each.drift in PROPOSED),
        counts={each: count if each in PROPOSED else 0 for each, count in drift.counts.items()},
        notes=(),
    )
    lines = [
        *_what_merging_does(mode),
        "",
        *_since(drift),
        "",
        view_markdown(drift_view(chosen), budget=_TABLE).partition("\n\n")[2].strip(),
        "",
        *_left(adoption),
        *reverting,
        *_ignoring(adoption.adopted, spec),
    ]
    text = "\n".join(lines).rstrip() + "\n"
    return text if size((text,)) <= _LIMIT else shorten(text, _LIMIT // 4)


def _what_merging_does(mode: str) -> Iterator[str]:
    if mode == "adopt":
        yield "**Merge to keep the values of the cluster.** The manifests get them, so the next `apply` changes none of them."
        yield "To restore the declared values instead, close this request and run `apply`."
    else:
        yield "**Merge to restore the declared values.** The commit changes no file: its merge starts `apply`."
        yield "To keep the values of the cluster instead, change the manifests, or run `drift --propose adopt`."


def _since(drift: Drift) -> Iterator[str]:
    baseline = drift.baseline
    if baseline is not None:
        commit = f" of commit {code(baseline.commit[:12])}" if baseline.commit else ""
        yield f"Another writer made these changes after the last complete `apply`{commit}. Kafka keeps no record of who: look for"
        yield "`ALTER_CLIENT_QUOTAS` in the brokers' authorizer log, and for audit lines of `alter`."
    yield f"Read at {drift.observed.at:%Y-%m-%d %H:%M} UTC."


def _left(adoption: Adoption) -> Iterator[str]:
    if not adoption.left:
        return
    yield f"**{count_of(len(adoption.left), 'entity needs', 'entities need')} a change by hand:**"
    yield ""
    yield from (f"- {code(str(each.entity), limit=_NAME)}: {prose(reason)}" for each, reason in adoption.left[:_MOST])
    if len(adoption.left) > _MOST:
        yield f"- and {len(adoption.left) - _MOST} more"
    yield ""


def revert_markdown(plan: Plan, mode: str) -> Iterator[str]:
    """The plan of the manifests as they are, with its effects on clients and its guards."""
    title = "What the merge writes" if mode == "revert" else "What a revert would write"
    text = view_markdown(plan_view(plan), budget=_PLAN).partition("\n\n")[2].strip()
    yield from fold(title, text.split("\n"))
    yield ""


def _ignoring(adopted: tuple[EntityDrift, ...], spec: ClusterSpec) -> Iterator[str]:
    place = spec.place("scope")
    where = f" ({code(f'{place.file}:{place.line}', limit=_NAME)})" if place is not None else ""
    entries = []
    for each in adopted[:_MOST]:
        parts = (f"{kind}: {'{default: true}' if name is DEFAULT else scalar_text(name)}" for kind, name in each.entity.parts)
        entries.append(f"      - {{{', '.join(parts)}}}")
    block = ("", "```yaml", "spec:", "  scope:", "    exclude:", *entries, "```")
    yield from fold("Ignore an entity instead", (f"Add its line to `scope.exclude` of the Cluster manifest{where}:", *block))
