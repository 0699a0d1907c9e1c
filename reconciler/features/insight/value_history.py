"""Who set a value: the commits that declared it, the runs of audit files that applied these, and who approved."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from reconciler.cli.results import Result
from reconciler.documents import AUDIT, AUDIT_ROWS, VALUES, AuditRecord, Document, parse, row
from reconciler.errors import FileAccessError, GitError, ManifestError, UsageError
from reconciler.features.insight.incident import LimitOrigin
from reconciler.features.insight.past_quotas import declared_quota, limit_origin
from reconciler.model import (
    ChangeStatus,
    ClusterIdentity,
    CurrentState,
    DesiredQuota,
    Entity,
    MergedRequest,
    display_name,
    escaped,
    in_canonical_order,
    same_value,
)
from reconciler.render import Line, Style, line
from reconciler.text import amount, count_of, shown
from reconciler.workflows import ManifestsAt, manifests_at

MOST_RUNS: Final = 200
"""Runs that are kept, the last ones of each file."""
_LONGEST_LINE: Final = 1 << 20
_MOST_VALUES: Final = 5
"""Values of one quota, the newest first."""
_MOST_QUOTAS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValue:
    """One value of a quota in the manifests, and how it came there."""

    value: float | None
    """The value, in the unit of its key. ``None``: it was computed from the cluster, as a total is."""
    text: str
    """The value as the manifest has it."""
    origin: LimitOrigin
    """The commit that set it."""
    request: MergedRequest | None = None
    """The merged request that brought this commit, as an audited run recorded it. ``None``: no run did."""
    run: str | None = None
    """The address of the CI job that first applied it. ``None``: no audited run names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaHistory:
    """One quota of the cluster or of the manifests."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    key: str
    """The quota key."""
    live: float | None
    """The value on the cluster. ``None``: not set."""
    values: tuple[SetValue, ...] = ()
    """The values in git, the newest first. Empty for a quota that no manifest declares."""
    missing: str | None = None
    """Why the origin of the value is not known. ``None``: it is known."""
    last_write: AuditRecord | None = None
    """The last audited run that changed the entity, or that may have: one whose line names no entity. ``None``: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histories:
    """The quotas that were asked for."""

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    quotas: tuple[QuotaHistory, ...]
    """By entity and key."""


HISTORY: Final = Document(
    cls=Histories,
    name="history",
    title="kafka-quotas describe --history",
    codec=VALUES.extended(
        {
            SetValue: row("value text *origin pull_request=request? run?"),
            **AUDIT_ROWS,
            QuotaHistory: row("entity key live values missing? last_write?"),
        }
    ),
)


def read_runs(files: Sequence[str]) -> tuple[tuple[AuditRecord, ...], tuple[str, ...]]:
    """Return the latest runs of audit files, the latest first, and notes about lines that are not a record of a run.

    Raises ``FileAccessError`` for a file that cannot be read.
    """
    runs: list[AuditRecord] = []
    notes: list[str] = []
    for name in files:
        try:
            with Path(name).open("rb") as file:
                of_file, wrong = runs_of(file, name)
        except OSError as error:
            raise FileAccessError(f"cannot read the audit file {name}: {error.strerror}") from error
        runs, notes = [*runs, *of_file], [*notes, *wrong]
    runs.sort(key=lambda record: (record.ended, record.run.started), reverse=True)
    return tuple(runs[:MOST_RUNS]), tuple(notes)


def runs_of(file: BinaryIO, name: str) -> tuple[tuple[AuditRecord, ...], tuple[str, ...]]:
    """Return the last runs of an opened audit file, in the order of the file, and notes about other lines.

    ``name`` is for the notes.
    """
    kept: deque[AuditRecord] = deque(maxlen=MOST_RUNS)
    wrong: list[str] = []
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        try:
            kept += [AUDIT.build(parse(line))] if line.strip() else []
        except (ValueError, RecursionError) as error:
            wrong.append(f"{escaped(name)}:{number} is not a line that --audit writes, and is left out: {error}")
    notes = wrong if len(wrong) < 2 else [f"{wrong[0]}. So are {count_of(len(wrong) - 1, 'more line')}"]
    return tuple(kept), tuple(notes)


def histories(state: CurrentState, paths: Sequence[str], *, cluster: str | None, audit: Sequence[str]) -> Result:
    """Find where the values of these entities come from. Raises ``GitError``, ``ManifestError`` and ``FileAccessError``."""
    recorded, left_out = read_runs(audit)
    now = manifests_at("HEAD", paths)
    if now.git.shallow():
        raise GitError("--history needs the whole history, and this is a shallow clone. Fetch all commits")
    known = [run for run in recorded if run.is_of(state.cluster)]
    quotas = [(entity, key) for entity in in_canonical_order(state.entities) for key in sorted(state.entities[entity])]
    if len(quotas) > _MOST_QUOTAS:
        raise UsageError(f"--history is for {_MOST_QUOTAS} quotas at most, and these are {len(quotas):,}. Choose by --name")
    origins = tuple(
        quota_history(now, paths, (entity, key, state.entities[entity][key]), cluster, known) for entity, key in quotas
    )
    result = Histories(cluster=state.cluster, quotas=origins)
    notes = list(left_out)
    if not audit:
        notes.append("no audit file was given, so who approved is not known. Pass --audit FILE, which apply --audit wrote")
    return Result(view=lambda: _lines(result), document=lambda: HISTORY.write(result), notes=notes)


def quota_history(
    now: ManifestsAt,
    paths: Sequence[str],
    quota: tuple[Entity, str, float | None],
    cluster: str | None,
    runs: Sequence[AuditRecord],
) -> QuotaHistory:
    """Find where the values of one quota come from. ``quota`` has its value on the cluster. ``runs``: those of the cluster."""
    entity, key, live = quota
    values: list[SetValue] = []
    at = now
    try:
        while len(values) < _MOST_VALUES:
            declared = declared_quota(at, cluster, entity, key)
            origin = limit_origin(at, paths, cluster=cluster, entity=entity, key=key, runs=runs) if declared else None
            if declared is None or origin is None:
                break
            number = declared.value if isinstance(declared, DesiredQuota) and declared.unit is None else None
            value = SetValue(value=number, text=declared.text, origin=origin)
            values.append(_with_runs(value, now, runs))
            if origin.before is None:
                break
            at = manifests_at(f"{origin.commit}^", paths)
        missing = None if values else "no manifest declares it, so it was set by other means"
    except (GitError, ManifestError, UsageError) as error:
        missing = None if values else str(error)
    last = next((run for run in runs if run.may_have_written(entity) and (run.entities or _wrote(run))), None)
    return QuotaHistory(entity=entity, key=key, live=live, values=tuple(values), missing=missing, last_write=last)


def _wrote(run: AuditRecord) -> bool:
    return any(run.summary.get(status, 0) for status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN))


def _with_runs(value: SetValue, now: ManifestsAt, runs: Sequence[AuditRecord]) -> SetValue:
    """Add the first run that applied the value, and the request whose merge brought its commit."""
    commit, applied = value.origin.commit, value.origin.applied
    contexts = [(each.ended, each.run.context) for each in runs if each.run.context is not None]
    job = next((context.job for ended, context in contexts if ended == applied), None)
    requests = (context.pull_request for _, context in contexts)
    brought = (each for each in requests if each is not None and _has_brought(each, commit, now))
    return replace(value, run=job.run if job is not None else None, request=next(brought, None))


def _has_brought(request: MergedRequest, commit: str, now: ManifestsAt) -> bool:
    """Whether the merge brought the commit: the branch did not have it before. A record may name any text as a commit."""
    merge = request.merge_commit
    if merge is None or not now.git.contains(now.commit, merge):
        return False
    return now.git.contains(merge, commit) and not now.git.contains(f"{merge}^", commit)


def _lines(result: Histories) -> Iterator[Line]:
    last = None
    for quota in result.quotas:
        if quota.entity != last:
            yield line((str(quota.entity), Style.STRONG))
            last = quota.entity
        yield line(f"  {quota.key}: {amount(quota.key, quota.live)}")
        if quota.missing is not None:
            yield line(f"    who set it is not known: {escaped(quota.missing)}")
        newest = quota.values[0].value if quota.values else None
        if newest is not None and not same_value(newest, quota.live):
            yield line(f"    set by other means: the manifests declare {amount(quota.key, newest)}. kafka-quotas drift compares")
        if (last_run := quota.last_write) is not None:
            user, ended = display_name(last_run.run.os_user), f"{last_run.ended:%Y-%m-%d %H:%M} UTC"
            verb = "last changed" if last_run.entities else "can have been changed last"
            yield line(f"    entity {verb} by {escaped(last_run.run.command)} of {user} until {ended}, by the audit")
        for number, value in enumerate(quota.values):
            yield from _value_lines(quota.key, value, is_first=number == 0)


def _value_lines(key: str, value: SetValue, *, is_first: bool) -> Iterator[Line]:
    origin, request = value.origin, value.request
    text = amount(key, value.value) if value.value is not None else escaped(value.text)
    yield line(f"    {'declared' if is_first else 'before'} {text} at {escaped(origin.file)}:{origin.line}")
    author, at = display_name(origin.author), f"{origin.committed:%Y-%m-%d %H:%M} UTC"
    yield line(f"      set by {author} on {at}, commit {origin.commit[:12]}: {shown(origin.subject)}")
    if request is not None:
        names = ", ".join(map(display_name, request.approvers))
        approved = f"approved by {names}" if names else "without an approval"
        merged = f", merged by {display_name(request.merged_by)}" if request.merged_by else ""
        where = f" ({escaped(request.url)})" if request.url else ""
        yield line(f"      in pull request {request.number}{where}, {approved}{merged}")
    if origin.applied is not None:
        run = f" by {escaped(value.run)}" if value.run else ""
        yield line(f"      applied on {origin.applied:%Y-%m-%d %H:%M} UTC{run}")
