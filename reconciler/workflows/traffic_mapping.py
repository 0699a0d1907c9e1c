"""Reads the file of ``--mapping``, with its section about a metrics server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.workflows.trusted import TrustedTree

if TYPE_CHECKING:
    from reconciler.traffic import MetricRule, TrafficMapping


def read_trusted_mapping(path: Path | None, trusted: TrustedTree | None) -> TrafficMapping | None:
    """The mapping, if there is any. With ``trusted`` it is the reference's.

    Raises ``ManifestError`` with all findings, ``TrafficError`` for a missing file, and
    ``UntrustedError`` for one that only the work tree has.
    """
    from reconciler.traffic import parse_mapping, read_mapping

    if path is None:
        return None
    if trusted is None:
        return read_mapping(path)
    content = trusted.files.read(str(path))
    return parse_mapping(content.content, content.source)


def metric_rules(mapping: TrafficMapping | None, *, what: str) -> tuple[MetricRule, ...]:
    """How series of other names are read. ``what`` the mapping is used for. Raises ``UsageError`` for a mapping of files."""
    if mapping is None:
        return ()
    if not mapping.metrics:
        raise UsageError(f"The mapping has columns of files. For {what}, write spec.metrics")
    return mapping.metrics
