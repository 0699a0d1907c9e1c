"""Check manifests without any cluster: files, documents, and what they come to for every cluster.

The lint rules run over the state that a cluster shall have, with the severities of the Repository document.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.errors import ReconcilerError
from reconciler.logs import log_event
from reconciler.manifest import UnreadableError, read_file
from reconciler.model import Change, ClusterSpec, CurrentState, DesiredState, Entity, Finding, Severity, Span, in_order
from reconciler.planning import quotas_after
from reconciler.policy import Subject, lint_state
from reconciler.workflows.load import LoadedManifests, adjusted, desired_for, load_manifests, stop_on
from reconciler.workflows.trusted import References, not_yet_findings, read_references

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What was checked: findings in the order of their places, and counts of what was read."""

    findings: tuple[Finding, ...]
    files: int
    clusters: int
    entities: int
    """Different entities, over all clusters that were checked."""
    read: frozenset[str]
    """The files that were read, as findings name them."""


def validate_manifests(paths: Sequence[str], *, cluster: str | None = None, trusted_ref: str | None = None) -> Validation:
    """Check everything below the paths, for one cluster or (``None``) for each.

    Findings about files that the user did not ask for are left out. A cluster that the trusted reference does not have yet is
    checked by its own document. Raises ``UsageError`` for an unknown cluster, ``GitError`` or
    ``ManifestError`` for a reference.
    """
    trust = None if trusted_ref is None else read_references(References(trusted=trusted_ref), paths).trust
    return validate_loaded(load_manifests(paths, trust=trust), cluster)


def validate_loaded(loaded: LoadedManifests, cluster: str | None) -> Validation:
    """As ``validate_manifests``, for manifests that are read already."""
    known = sorted({*loaded.clusters, *loaded.proposed})
    names: Sequence[str | None] = known or [None]
    if cluster is not None:
        names = [cluster]
        if cluster not in known and any(finding.severity is Severity.ERROR for finding in loaded.findings):
            # Its document may be the one that cannot be read: what is wrong there is the better answer.
            names = []
    # A dictionary, because most findings about claims are the same for every cluster.
    findings = dict.fromkeys(loaded.findings)
    seen = set()
    entities: set[Entity] = set()
    for name in names:
        state, of_cluster = _of_cluster(loaded, name)
        entities.update(state.entities)
        for finding in of_cluster:
            if (
                place := (finding.id, finding.span, finding.related, finding.key, finding.message if finding.span is None else "")
            ) not in seen:
                seen.add(place)
                findings[finding] = None
    return Validation(
        findings=in_order(finding for finding in findings if loaded.is_shown(finding)),
        files=len(loaded.files if loaded.selected is None else loaded.selected),
        clusters=len(known) if cluster is None else len(names),
        entities=len(entities),
        read=frozenset(loaded.files),
    )


def _of_cluster(loaded: LoadedManifests, name: str | None) -> tuple[DesiredState, Sequence[Finding]]:
    is_new = name is not None and name not in loaded.clusters and name in loaded.proposed
    judged_by = loaded
    if is_new and name is not None and loaded.trust is not None:
        # Its own document decides how it is checked, and nothing else of the pull request.
        clusters = {**loaded.trust.clusters, name: loaded.proposed[name]}
        judged_by = replace(loaded, trust=replace(loaded.trust, clusters=clusters))
    spec, state, findings = desired_for(judged_by, name)
    later = not_yet_findings(loaded, name) if loaded.trust is not None else ()
    return state, (*findings, *lint_offline(judged_by, spec, state), *later)


def stop_on_reading(loaded: LoadedManifests, cluster: str | None, fail_on: Severity) -> None:
    """Raise ``ManifestError`` when manifests cannot be read, with all other findings, too: none has to wait for the next run."""
    if not any(finding.severity.at_least(fail_on) for finding in loaded.findings):
        return
    findings: Sequence[Finding] = loaded.findings
    with contextlib.suppress(ReconcilerError):
        findings = validate_loaded(loaded, cluster).findings
    stop_on(findings, fail_on)


def lint_offline(loaded: LoadedManifests, spec: ClusterSpec, desired: DesiredState) -> tuple[Finding, ...]:
    """What can be known without the cluster; ``desired`` is what ``desired_for`` gave. A filter narrows only what is shown."""
    if loaded.selected is not None:
        desired = loaded.desired(spec)
    linted = lint_state(Subject(desired=desired, spec=spec, after=desired.values()))
    severities = loaded.repository.lint
    findings = adjusted(tuple(linted), severities) if severities else linted
    return in_order(finding for finding in findings if loaded.is_shown(finding))


def lint_change(
    spec: ClusterSpec,
    desired: DesiredState,
    current: CurrentState,
    changes: Sequence[Change],
    *,
    severities: Mapping[str, Severity | None],
) -> tuple[Finding, ...]:
    """What can be known of a plan."""
    after = quotas_after(current.entities, changes)
    changed = [change.entity for change in changes]
    subject = Subject(
        desired=desired,
        spec=spec,
        after=after,
        before=current.entities,
        changed=changed,
        unreadable=current.unreadable,
    )
    findings = tuple(lint_state(subject))
    return in_order(adjusted(findings, severities) if severities else findings)


_LINE_END: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_DOCUMENT: Final = re.compile(r"(?:---|\.\.\.)(?:\s|$)")
_OURS: Final = re.compile(r"""apiVersion["']?\s*:\s*["']?kafka-quotas/""")
_SECRET: Final = re.compile(
    r"pass(?:w|phrase|\b)|pwd|secret|token|jaas|credential|authorization|bearer|private|(?<![a-z])key(?![a-z])|[_.-]?apikey",
    re.IGNORECASE,
)


def source_lines(findings: Iterable[Finding], read: Container[str]) -> Mapping[Span, str]:
    """The lines of files that findings are about, without line ends.

    Only files that were ``read`` are read again: another may be a pipe, or a link that leads out. Empty lines, files that are
    gone, and lines that may have a secret are left out.
    """
    wanted: dict[str, list[Span]] = {}
    for finding in findings:
        if finding.span is not None and finding.span.file in read:
            wanted.setdefault(finding.span.file, []).append(finding.span)
    texts: dict[Span, str] = {}
    for file, spans in wanted.items():
        log_event(_log, "source lines read", file=file, lines=len(spans))
        with contextlib.suppress(UnreadableError):
            lines = _LINE_END.split(read_file(file).decode("utf-8-sig", "backslashreplace"))
            shown = _of_manifests(lines)
            texts.update((span, lines[span.line - 1]) for span in spans if span.line in shown and _is_plain(lines, span.line))
    return texts


def _of_manifests(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines whose document states that it is ours."""
    numbers: set[int] = set()
    for document in _documents(lines):
        if any(_OURS.search(lines[number - 1]) for number in document):
            numbers.update(document)
    return numbers


def _documents(lines: Sequence[str]) -> Iterator[range]:
    """The numbers of the lines of each document."""
    begin = 1
    for number, line in enumerate(lines, 1):
        if _DOCUMENT.match(line):
            yield range(begin, number)
            begin = number
    yield range(begin, len(lines) + 1)


def _is_plain(lines: Sequence[str], number: int) -> bool:
    """Whether neither the line nor a field above it, of which it is a part, looks like a secret. Not for an empty line."""
    line = lines[number - 1]
    if not line.strip() or _SECRET.search(line):
        return False
    indent = _indent(line)
    for above in reversed(lines[: number - 1]):
        if above.strip() and _indent(above) < indent:
            if _SECRET.search(above):
                return False
            indent = _indent(above)
        if indent == 0:
            break
    return True


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
