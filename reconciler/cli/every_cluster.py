"""``--all-clusters``: the same work for one cluster of the manifests or for every one, and one result of all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, output
from reconciler.cli.declaration import option
from reconciler.cli.option_groups import ConnectionOptions
from reconciler.cli.results import OutFile, Result, lines_of
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.model import ClusterFailure
    from reconciler.render import Block
    from reconciler.workflows import Intent, References

_FORMATS: Final = ("text", "json")
_WORST_FIRST: Final = (exit_codes.NOT_DONE, exit_codes.REFUSED, exit_codes.DIFFERENCES)
_AT_ONCE: Final = 8
"""Clusters that are read at the same time."""


ALL_CLUSTERS: Final = option("--all-clusters", section="Cluster", help="take every cluster of the manifests (not with --cluster)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenClusters(ConnectionOptions):
    """One cluster of the manifests, or all of them."""

    all_clusters: bool = ALL_CLUSTERS

    def check(self, **excluded: str | None) -> None:
        """Raise ``UsageError`` for ``--all-clusters`` beside an option that is about one cluster, by the option's name."""
        about_one = {"cluster": self.cluster, "bootstrap_server": self.bootstrap_server, "zookeeper": self.zookeeper, **excluded}
        for name, value in about_one.items():
            if value and self.all_clusters:
                raise UsageError(f"--all-clusters and --{name.replace('_', '-')} exclude each other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is read of the manifests."""

    paths: tuple[str, ...]
    choice: ChosenClusters
    references: References
    fail_on: str = "error"


def load_one(wanted: Wanted) -> Intent:
    """The intent for the chosen cluster. Raises as ``load_intent``."""
    from reconciler.model import Severity
    from reconciler.workflows import load_intent

    return load_intent(
        wanted.paths, cluster=wanted.choice.cluster, fail_on=Severity(wanted.fail_on), references=wanted.references
    )


def load_every(wanted: Wanted) -> Sequence[Intent | ClusterFailure]:
    """The intents for every cluster. Raises as ``load_every_intent``."""
    from reconciler.model import Severity
    from reconciler.workflows import load_every_intent

    return load_every_intent(wanted.paths, fail_on=Severity(wanted.fail_on), references=wanted.references)


def result_for(wanted: Wanted, work: Callable[[Intent], Result], form: str, files: Sequence[OutFile]) -> Result:
    """The result of the chosen cluster; with ``--all-clusters`` that of all, some at a time.

    ``form`` and ``files``: those of ``--format`` and ``--out``. Raises ``UsageError`` for one that is for one cluster only.
    """
    if not wanted.choice.all_clusters:
        return work(load_one(wanted))
    from reconciler.workflows import for_every

    for name in (form, *(name for name, _ in files)):
        if name not in _FORMATS:
            raise UsageError(f"--all-clusters prints {' or '.join(_FORMATS)}. For {name} take one cluster at a time")
    return _combined(for_every(load_every(wanted), work, parallel=_AT_ONCE))


def _combined(results: Sequence[Result | ClusterFailure]) -> Result:
    """The results of several clusters as one: 1 if a cluster did not finish, else 3 if one is refused, 2 if any differs, or 0."""
    from reconciler.documents import cluster_failure_to_json, clusters_to_json
    from reconciler.render import failure_lines, findings_lines, join_parts

    failures = [each for each in results if not isinstance(each, Result)]
    codes = {each.exit for each in results if isinstance(each, Result)}
    if any(not failure.skipped for failure in failures):
        codes.add(exit_codes.NOT_DONE)

    def part(each: Result | ClusterFailure) -> Sequence[Block]:
        if not isinstance(each, Result):
            return failure_lines(each)
        assert each.view is not None
        return (*findings_lines(each.beside), *lines_of(each.view()))

    def document(each: Result | ClusterFailure) -> Json:
        if not isinstance(each, Result):
            return cluster_failure_to_json(each)
        assert each.document is not None
        return each.document()

    def whole() -> Json:
        # Programs read the document, and people the log of its job.
        for failure in failures:
            output.print_lines(failure_lines(failure)[:1], sys.stderr)
        return clusters_to_json(map(document, results))

    return Result(
        exit=next((code for code in _WORST_FIRST if code in codes), exit_codes.DONE),
        view=lambda: join_parts([part(each) for each in results]),
        document=whole,
        notes=[note for each in results if isinstance(each, Result) for note in each.notes],
    )
