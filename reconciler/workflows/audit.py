"""Keep an audit file: one line for every run, however it ends."""

from __future__ import annotations

import os
import pwd
from dataclasses import replace
from pathlib import Path

from reconciler.documents import AuditedRun, audit_text, audit_to_json, failed_audit_to_json
from reconciler.files import append_line, require_appendable
from reconciler.model import ApplyReport, ClusterIdentity, ClusterSpec, ManifestCommit
from reconciler.ports import Clock


class AuditFile:
    """The line that this run is going to add; it learns what goes in as the run does."""

    def __init__(self, path: Path, *, command: str, validate_only: bool, clock: Clock) -> None:
        """Raise ``FileAccessError`` when no line could be added."""
        require_appendable(path)
        self._path = path
        self._clock = clock
        self._run = AuditedRun(command=command, started=clock.now(), os_user=os_user(), validate_only=validate_only)

    def about(self, spec: ClusterSpec, *, source: ManifestCommit, principal: str | None) -> None:
        """What the manifests and the connection's settings say."""
        cluster = ClusterIdentity(name=spec.name, id=spec.cluster_id)
        self._run = replace(self._run, cluster=cluster, source=source, principal=principal)

    def ended(self, report: ApplyReport) -> None:
        """Add the line of a run with a report. Raises ``FileAccessError``; then the file is as it was."""
        append_line(self._path, audit_text(audit_to_json(self._run, report, at=self._clock.now())))

    def broke_off(self, error: BaseException) -> None:
        """Add the line of a run that wrote nothing. Raises as ``ended``."""
        append_line(self._path, audit_text(failed_audit_to_json(self._run, error, at=self._clock.now())))


def os_user() -> str:
    """The account that this process runs as, by the system's own list: environment variables are anybody's to set."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
