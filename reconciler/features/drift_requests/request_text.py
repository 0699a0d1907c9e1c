"""Title and text of a pull request about drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.documents import AuditRecord
from reconciler.features.drift_requests.adoption import PROPOSED, Adoption
from reconciler.manifest import match_text
from reconciler.model import ApplyResult, ChangeStatus, ClusterSpec, Drift, EntityDrift, display_name, escaped
from reconciler.render import View, code, drift_view, fold, prose, shorten, view_markdown
from reconciler.text import count_of, list_some

_VIEW: Final = 17_000
"""Bytes of one result."""
_MOST: Final = 20
"""Entities or quotas of one list."""
_NAME: Final = 120
_NAMED: Final = 5


def _is_complete(run: AuditRecord) -> bool:
    same = run.result is ApplyResult.NOTHING_TO_DO or (run.result is ApplyResult.DONE and run.verified)
    return same and run.run.command in ("apply", "run") and not run.run.validate_only


def proposal_title(drift: Drift, mode: str, count: int) -> str:
    """``Adopt drift of prod-eu: 3 entities``."""
    name = shorten(escaped(display_name(drift.cluster.name or "kafka")), _NAME)
    return f"{mode.capitalize()} drift of {name}: {count_of(count, 'entity', 'entities')}"


def proposal_body(
    drift: Drift, reverting: Sequence[str], adoption: Adoption, runs: Sequence[AuditRecord], *, mode: str, spec: ClusterSpec
) -> str:
    """Return the text: the changes on the cluster, what a merge does, what a revert writes, and how to ignore an entity.

    ``runs``: audited ones of the cluster, the latest first.
    """
    chosen = replace(
        drift,
        entities=tuple(each for each in drift.entities if each.drift in PROPOSED),
        counts={each: count if each in PROPOSED else 0 for each, count in drift.counts.items()},
        notes=(),
    )
    lines = [
        *_what_merging_does(mode),
        "",
        *_since(drift, runs, chosen.entities),
        "",
        _without_title(drift_view(chosen)),
        "",
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


def _since(drift: Drift, runs: Sequence[AuditRecord], drifted: Sequence[EntityDrift]) -> Iterator[str]:
    """Yield since when the cluster differs, and which audited runs can have changed an entity that drifted."""
    baseline, complete = drift.baseline, next(filter(_is_complete, runs), None)
    later = [run for run in runs if run.has_written and (complete is None or run.ended > complete.ended)]
    later = [run for run in later if any(run.may_have_written(each.entity) for each in drifted)]
    if baseline is not None:
        commit = f" of commit {code(baseline.commit[:12])}" if baseline.commit else ""
        yield f"Another writer made these changes after the last complete `apply`{commit}. Kafka keeps no record of who: look for"
        yield "`ALTER_CLIENT_QUOTAS` in the brokers' authorizer log, and for audit lines of `alter`."
    if complete is not None:
        ended = f"{complete.ended:%Y-%m-%d %H:%M} UTC"
        yield f"At {ended} the cluster had the declared values, by the audit of {_run(complete)}."
    yield f"Read at {drift.observed.at:%Y-%m-%d %H:%M} UTC."
    if later:
        yield ""
        yield "Audited runs since then that changed these entities, or may have:"
        yield ""
        for run in later[:_MOST]:
            who = f"{code(run.run.command)} of {code(run.run.os_user, limit=_NAME)} until {run.ended:%Y-%m-%d %H:%M} UTC"
            named = list_some([code(str(entity), limit=_NAME) for entity in run.entities], _NAMED)
            count = count_of(run.summary[ChangeStatus.APPLIED], "entity", "entities")
            yield f"- {who}: {named or count} written, {_run(run)}"


def _run(run: AuditRecord) -> str:
    job = run.run.context.job.run if run.run.context is not None else None
    return code(job, limit=_NAME) if job is not None else "a run outside of CI"


def _left(adoption: Adoption) -> Iterator[str]:
    if not adoption.left:
        return
    yield f"**{count_of(len(adoption.left), 'entity needs', 'entities need')} a change by hand:**"
    yield ""
    yield from (f"- {code(str(each.entity), limit=_NAME)}: {prose(reason)}" for each, reason in adoption.left[:_MOST])
    if len(adoption.left) > _MOST:
        yield f"- and {len(adoption.left) - _MOST} more"
    yield ""


def folded(title: str, view: View) -> Iterator[str]:
    """Yield a result behind a fold, as Markdown."""
    yield from fold(title, _without_title(view).split("\n"))
    yield ""


def _without_title(view: View) -> str:
    return view_markdown(view, budget=_VIEW).partition("\n\n")[2].strip()


def _ignoring(adopted: tuple[EntityDrift, ...], spec: ClusterSpec) -> Iterator[str]:
    place = spec.place("scope")
    where = f" ({code(f'{place.file}:{place.line}', limit=_NAME)})" if place is not None else ""
    entries = (f"      - {match_text(each.entity)}" for each in adopted[:_MOST])
    block = ("", "```yaml", "spec:", "  scope:", "    exclude:", *entries, "```")
    yield from fold("Ignore an entity instead", (f"Add its line to `scope.exclude` of the Cluster manifest{where}:", *block))
