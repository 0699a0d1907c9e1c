"""``--baseline``: what was applied last, as a git reference or as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.cli.declaration import option
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.workflows import GivenBaseline, TrustedTree


def baseline_option(also: str = "") -> Any:
    """``--baseline``; ``also``: what else may be written."""
    text = f"compare with the last apply: a git reference, or the file of apply --record-baseline{also}"
    return option("--baseline", section="Git", metavar="REF|FILE", help=text)


class BaselineSource:
    """The baseline that the user named, if any; a reference is read once for all clusters."""

    def __init__(self, name: str | None, paths: Sequence[str], *, all_clusters: bool = False) -> None:
        """Raise ``UsageError`` for a file with ``all_clusters``."""
        self._name = name
        self._paths = paths
        self._of_all: GivenBaseline | None = None
        if all_clusters and name is not None:
            self.check(name)
            self._of_all = self.given(None)

    @staticmethod
    def check(name: str) -> None:
        """Raise ``UsageError`` for a file, where the baseline of all clusters is wanted."""
        if Path(name).is_file():
            raise UsageError("a baseline file is of one cluster. With --all-clusters give a git reference as --baseline")

    def given(self, trusted: TrustedTree | None) -> GivenBaseline | None:
        """The baseline of one cluster; a file of a repository counts as the trusted reference has it."""
        if self._name is None or self._of_all is not None:
            return self._of_all
        from reconciler.workflows import given_baseline

        return given_baseline(self._name, self._paths, trusted=trusted)
