"""Values that are set for a while by hand: the entries in the manifests that take them back."""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import FileAccessError, UsageError
from reconciler.features.manifest_edits import (
    clusters_of_values,
    entry_of_value,
    in_place,
    read_manifest,
    rewrite_file,
    with_override,
    with_revisions,
)
from reconciler.formats import ValueRefusedError, parse_value, value_text
from reconciler.model import (
    DesiredQuota,
    Entity,
    FileRevision,
    Message,
    QuotaKey,
    Span,
    compose,
    display_name,
    flag_part,
    key_part,
    name_part,
)
from reconciler.text import count_of, list_some, moment_text, shown
from reconciler.workflows import AlterRequest, ClusterTarget, desired_for, stop_on
from reconciler.yaml import ScalarEdit, ScalarEditError, expand_scalars

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}
_LENGTH: Final = re.compile(r"([1-9][0-9]{0,4})([mhd])")
_LONGEST: Final = datetime.timedelta(days=366)
_NAMED: Final = 3
_WITHOUT: Final = (
    "--for needs the manifests of the cluster: without them nothing would take the value back. Pass the folder of the manifests "
    "as PATH"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryValues:
    """The files with values that expire, and a sentence for each value."""

    revisions: tuple[FileRevision, ...]
    notes: tuple[Message, ...]


def parse_length(text: str) -> datetime.timedelta:
    """``90m``, ``2h``, ``3d``. Raises ``UsageError``."""
    match = _LENGTH.fullmatch(text)
    length = datetime.timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None
    if length is None or length > _LONGEST:
        raise UsageError(f"--for takes minutes, hours or days such as 90m, 2h or 3d, up to 366d, not {shown(text)}")
    return length


def temporary_values(request: AlterRequest, target: ClusterTarget, *, until: datetime.datetime) -> TemporaryValues:
    """The manifests with the values of a request until a moment, and then those that they declare now. Nothing is written.

    Raises ``UsageError`` where no manifest could take a value back, ``FileAccessError`` for a file that cannot be edited, and
    ``ManifestError`` for a value that the rules of the repository refuse.
    """
    if not target.managed or target.loaded is None:
        raise UsageError(_WITHOUT)
    if request.delete or not request.add:
        raise UsageError("--for sets values for a while: give them with --add, and no --delete")
    if not target.spec.scope.contains(request.entity):
        raise UsageError(f"{request.entity} is outside the scope of the manifests, so no run would take the value back")
    until = until.astimezone(datetime.UTC).replace(microsecond=0)
    sharing = clusters_of_values(target.loaded, but=target.spec.name)
    edits, notes = defaultdict[str, list[ScalarEdit]](list), []
    overrides, shared = defaultdict[str, dict[str, str]](dict), dict[str, Span]()
    for key, number in request.add.items():
        quota = _place(QuotaKey(key), request.entity, target)
        place, value = quota.source, value_text(QuotaKey(key), number)
        timed = f"value: {value}, until: {until:%Y-%m-%dT%H:%M:%SZ}"
        others = sharing.get(place)
        if others:
            _require_no_override(key, request.entity, target, others)
            # Without then, an override falls back to the value of the entry.
            overrides[place.file][key], shared[place.file] = f"{{{timed}}}", place
        else:
            new = f"{{{timed}, then: {quota.text}}}"
            edits[place.file].append(ScalarEdit(line=place.line, column=place.column, old=quota.text, new=new))
        notes.append(_note(key, quota, value, until, only=target.spec.name if others else None))

    revisions = []
    for file in sorted({*edits, *overrides}):
        before = after = read_manifest(file)
        with in_place(file):
            if edits[file]:
                after = expand_scalars(after, edits[file])
            if file in shared:
                line, column = shared[file].line, shared[file].column
                path = entry_of_value(after, shared[file])
                if path is None:
                    raise ScalarEditError(ScalarEdit(line=line, column=column, old="quotas", new="overrides"))
                after = with_override(after, path, target.spec.name or "", overrides[file])
        revisions.append(rewrite_file(file, before, after, paths=target.paths))
    # A value that the rules refuse would stop every later run.
    stop_on(desired_for(with_revisions(target.loaded, revisions), target.spec.name)[2])
    return TemporaryValues(revisions=tuple(revisions), notes=tuple(notes))


def require_unchanged(revisions: Sequence[FileRevision]) -> None:
    """Raise ``FileAccessError`` for a file that changed since it was read: the user may take long to confirm."""
    for revision in revisions:
        if read_manifest(revision.path) != revision.before:
            raise FileAccessError(f"{shown(revision.path)} changed meanwhile. Nothing was written: run the command again")


def _note(key: str, quota: DesiredQuota, value: str, until: datetime.datetime, *, only: str | None = None) -> Message:
    where = compose(" for cluster {cluster} alone", cluster=name_part(only)) if only is not None else ""
    return compose(
        "{place} declares {key} as {value} until {when}, then {then}{where}. Commit the file, so that {run} or {apply} takes it "
        "back.",
        place=quota.source,
        key=key_part(key),
        value=name_part(value),
        when=name_part(moment_text(until)),
        then=name_part(quota.text),
        where=where,
        run=flag_part("run --apply"),
        apply=flag_part("apply"),
    )


def _place(key: QuotaKey, entity: Entity, target: ClusterTarget) -> DesiredQuota:
    """The declared value, which stands alone at its place. Raises ``UsageError`` with what to do otherwise."""
    declared = target.desired.entities.get(entity)
    quota = None if declared is None else declared.quotas.get(key) or declared.units.get(key)
    if declared is None or quota is None:
        msg = f"no manifest declares {key.value} for {entity}, so a value that expires has no place"
        raise UsageError(f"{msg}. Add an entry with {{value: VALUE, until: MOMENT}} to a manifest, and apply it")
    for reason in _obstacles(key, entity, target, quota):
        raise UsageError(f"{quota.source}: {reason}")
    assert isinstance(quota, DesiredQuota)
    return quota


def _obstacles(key: QuotaKey, entity: Entity, target: ClusterTarget, quota: object) -> Iterator[str]:
    """Yield why a value cannot be replaced where it stands."""
    by_hand = "Change the manifest by hand"
    expiry = target.desired.entities[entity].expiries.get(key)
    if expiry is not None:
        over = "expired" if expiry.expired else "expires"
        yield f"{key.value} for {entity} {over} already, on {moment_text(expiry.at)}. {by_hand}: move until"
    if not isinstance(quota, DesiredQuota) or not _is_plain(key, quota):
        yield f"the value of {key.value} is computed from a total or a group. {by_hand}"
        return
    if quota.profile is not None:
        yield f"the value of {key.value} is that of profile {display_name(quota.profile)}. Give {entity} its own"
    by_entity = {each: declared.quotas.get(key) for each, declared in target.desired.entities.items() if each != entity}
    others = [str(each) for each, other in by_entity.items() if other is not None and other.source == quota.source]
    if others:
        sharing = count_of(len(others), "other entity shares", "other entities share")
        yield f"{sharing} the value: {list_some(others, _NAMED)}. Give {entity} its own"


def _require_no_override(key: str, entity: Entity, target: ClusterTarget, others: Sequence[str]) -> None:
    """Raise ``UsageError`` when the entry has an override for this cluster already: two of them must not match."""
    documents = target.loaded.documents if target.loaded is not None else ()
    entries = [entry for document in documents for entry in document.entries if entry.declared.entity == entity]
    existing = [override for entry in entries for override in entry.overrides if override.clusters.chooses(target.spec)]
    if existing:
        names = list_some(others, _NAMED)
        raise UsageError(
            f"{existing[0].span}: {entity} has an override for this cluster already, and {key} is also that of {names}. "
            "Add the value to this override by hand"
        )


def _is_plain(key: QuotaKey, quota: DesiredQuota) -> bool:
    try:
        return quota.unit is None and parse_value(key, quota.text).number == quota.value
    except ValueRefusedError:
        return False
