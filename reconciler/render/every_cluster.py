"""Results of several clusters together: one JSON document, or one text after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json, finding_to_json
from reconciler.model import ClusterFailure
from reconciler.render.findings_text import findings_lines
from reconciler.render.plan_text import cluster_title
from reconciler.render.styled import Line, Style, line


def clusters_to_json(documents: Iterable[Json], *, version: str = FORMAT_VERSION) -> dict[str, Json]:
    """``{format_version, clusters: [document, ...]}``, in the order of the clusters' names."""
    return {"format_version": version, "clusters": list(documents)}


def failure_to_json(failure: ClusterFailure) -> dict[str, Json]:
    """What stands in the list for a cluster without a result; ``errored`` is false when it was skipped on purpose."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(failure.cluster),
        "errored": not failure.skipped,
        "skipped": failure.skipped,
        "failure_reason": failure.failure_reason,
        "message": failure.message,
        "findings": [finding_to_json(finding) for finding in failure.findings],
    }


def failure_lines(failure: ClusterFailure) -> tuple[Line, ...]:
    """The same as text."""
    verdict = ("is skipped: ", Style.WARN) if failure.skipped else ("could not be looked at: ", Style.BAD)
    title = cluster_title(failure.cluster)
    return (line((f"{title[0].upper()}{title[1:]} ", Style.STRONG), verdict, failure.message), *findings_lines(failure.findings))


def joined(parts: Sequence[Sequence[Line]]) -> tuple[Line, ...]:
    """One after the other, with a rule between: every part begins with a line that names its cluster."""
    lines: list[Line] = []
    for index, part in enumerate(parts):
        if index:
            lines += [line(), line(("-" * 72, Style.FAINT)), line()]
        lines += part
    return tuple(lines)
