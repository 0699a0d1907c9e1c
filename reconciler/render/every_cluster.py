"""Results of several clusters together: one text after the other."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model import ClusterFailure
from reconciler.render.findings_text import findings_lines
from reconciler.render.plan_text import cluster_title
from reconciler.render.styled import Line, Style, line


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
