"""Title and text of a pull request about drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.documents import AuditRecord
from reconciler.features.drift_requests.adoption import PROPOSED, Adoption
from reconciler.features.insight.value_history import QuotaHistory
from reconciler.model import DEFAULT, ApplyResult, ChangeStatus, ClusterSpec, Drift, EntityDrift, Plan, display_name, escaped
from reconciler.render import code, drift_view, fold, plan_view, prose, shorten, view_markdown
from reconciler.text import amount, count_of, list_some
from reconciler.yaml import scalar_text

_TABLE: Final = 18_000
_PLAN: Final = 16_000
MOST: Final = 20
"""Entities or quotas of one list."""
_NAME: Final = 120
_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPast:
    """What is known from before the drift. ``runs``: audited ones of the cluster, the latest first."""

    runs: tuple[AuditRecord, ...] = ()
    quotas: tuple[QuotaHistory, ...] = ()
    """Quotas that drifted, with the origin of their declared values."""
    left_out: int = 0

    @property
    def complete(self) -> AuditRecord | None:
        """The latest run after which the cluster had the declared values."""
        return next((run for run in self.runs if _is_complete(run)), None)

    @property
    def since(self) -> tuple[AuditRecord, ...]:
        """Runs that wrote afterwards, and can have changed an entity that drifted."""
        complete, entities = self.complete, {quota.entity for quota in self.quotas}
        later = (run for run in self.runs if run.has_written and (complete is None or run.ended > complete.ended))
        return tuple(run for run in later if self.left_out or not entities or any(map(run.may_have_written, entities)))


def _is_complete(run: AuditRecord) -> bool:
    same = run.result is ApplyResult.NOTHING_TO_DO or (run.result is ApplyResult.DONE and run.verified)
    return same and run.run.command in ("apply", "run") and not run.run.validate_only


def proposal_title(drift: Drift, mode: str, count: int) -> str:
    """``Adopt drift of prod-eu: 3 entities``."""
    name = shorten(escaped(display_name(drift.cluster.name or "kafka")), _NAME)
    return f"{mode.capitalize()} drift of {name}: {count_of(count, 'entity', 'entities')}"


def proposal_body(
    drift: Drift, reverting: Sequence[str], adoption: Adoption, past: DriftPast, *, mode: str, spec: ClusterSpec
) -> str:
    """Return the text: the changes on the cluster, what a merge does, what a revert writes, and how to ignore an entity."""
    chosen = replace(
        drift,
        entities=tuple(each for each in drift.entities if each.drift in PROPOSED),
        counts={each: count if each in PROPOSED else 0 for each, count in drift.counts.items()},
        notes=(),
    )
    lines = [
        *_what_merging_does(mode),
        "",
        *_since(drift, past),
        "",
        view_markdown(drift_view(chosen), budget=_TABLE).partition("\n\n")[2].strip(),
        "",
        *_set_by(past),
        *_left(adoption),
        *reverting,
        *_ignoring(adoption.adopted, spec),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _what_merging_does(mode: str) -> Iterator[str]:
    if mode == "adopt":
        yield "**Merge to keep the values of the cluster.** The manifests get them, so the next `apply` changes none of them."
        yield "To restore the declared values instead, close this request and run `apply`."
    else:
        yield "**Merge to restore the declared values.** The commit changes no file: its merge starts `apply`."
        yield "To keep the values of the cluster instead, change the manifests, or run `drift --propose adopt`."


def _since(drift: Drift, past: DriftPast) -> Iterator[str]:
    baseline, complete = drift.baseline, past.complete
    if baseline is not None:
        commit = f" of commit {code(baseline.commit[:12])}" if baseline.commit else ""
        yield f"Another writer made these changes after the last complete `apply`{commit}. Kafka keeps no record of who: look for"
        yield "`ALTER_CLIENT_QUOTAS` in the brokers' authorizer log, and for audit lines of `alter`."
    if complete is not None:
        ended = f"{complete.ended:%Y-%m-%d %H:%M} UTC"
        yield f"At {ended} the cluster had the declared values, by the audit of {_run(complete)}."
    yield f"Read at {drift.observed.at:%Y-%m-%d %H:%M} UTC."
    if past.since:
        yield ""
        yield "Audited runs since then that changed these entities, or may have:"
        yield ""
        for run in past.since[:MOST]:
            who = f"{code(run.run.command)} of {code(run.run.os_user, limit=_NAME)} until {run.ended:%Y-%m-%d %H:%M} UTC"
            named = list_some([code(str(entity), limit=_NAME) for entity in run.entities], _NAMED)
            count = count_of(run.summary[ChangeStatus.APPLIED], "entity", "entities")
            yield f"- {who}: {named or count} written, {_run(run)}"


def _run(run: AuditRecord) -> str:
    job = run.run.context.job.run if run.run.context is not None else None
    return code(job, limit=_NAME) if job is not None else "a run outside of CI"


def _set_by(past: DriftPast) -> Iterator[str]:
    """Yield who set the values that the manifests declare, folded."""
    lines = []
    for quota in past.quotas:
        about = f"- {code(str(quota.entity), limit=_NAME)} {code(quota.key)}"
        if not quota.values:
            lines.append(f"{about}: {prose(quota.missing or 'not known')}")
            continue
        value = quota.values[0]
        text = amount(quota.key, value.value) if value.value is not None else value.text
        line = f"{about}: {code(text)} by {code(display_name(value.origin.author), limit=_NAME)}"
        line += f" on {value.origin.committed:%Y-%m-%d}, commit {code(value.origin.commit[:12])}"
        if value.request is not None:
            names = ", ".join(code(display_name(name), limit=_NAME) for name in value.request.approvers)
            line += f", request {value.request.number}, {f'approved by {names}' if names else 'without an approval'}"
        if value.origin.applied is not None:
            line += f", applied at {value.origin.applied:%Y-%m-%d %H:%M} UTC"
        lines.append(line)
    if past.left_out:
        lines.append(f"- and {past.left_out:,} more: kafka-quotas describe --history")
    if lines:
        yield from fold("Who set the declared values", lines)


def _left(adoption: Adoption) -> Iterator[str]:
    if not adoption.left:
        return
    yield f"**{count_of(len(adoption.left), 'entity needs', 'entities need')} a change by hand:**"
    yield ""
    yield from (f"- {code(str(each.entity), limit=_NAME)}: {prose(reason)}" for each, reason in adoption.left[:MOST])
    if len(adoption.left) > MOST:
        yield f"- and {len(adoption.left) - MOST} more"
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
    for each in adopted[:MOST]:
        parts = (f"{kind}: {'{default: true}' if name is DEFAULT else scalar_text(name)}" for kind, name in each.entity.parts)
        entries.append(f"      - {{{', '.join(parts)}}}")
    block = ("", "```yaml", "spec:", "  scope:", "    exclude:", *entries, "```")
    yield from fold("Ignore an entity instead", (f"Add its line to `scope.exclude` of the Cluster manifest{where}:", *block))
