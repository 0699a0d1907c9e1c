"""``kafka-quotas tool verify-ref``: ask GitHub whether a run of the default branch stored what a reference has."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli.declaration import argument, option
from reconciler.cli.option_groups import format_option
from reconciler.cli.results import Result
from reconciler.errors import FileAccessError

if TYPE_CHECKING:
    from reconciler.features.pull_requests.stored_reference import StoredReference
    from reconciler.render import Line

_PATIENCE_S: Final = 60.0
"""How long rate limits and faults of GitHub may take, in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRefArguments:
    """The command line of ``tool verify-ref``. Repository, address and token come from the environment, as in a workflow."""

    ref: str = argument("REF", help="a full reference, as fetched: refs/kafka-quotas/snapshot/prod")
    branch: str = option(
        "--branch",
        required=True,
        metavar="REF",
        help="trust runs of this default branch, such as refs/remotes/origin/main",
    )
    workflow: tuple[str, ...] = option(
        "--workflow",
        required=True,
        metavar="FILE",
        help="trust runs of this file in .github/workflows, such as quotas-apply.yml (repeatable)",
    )
    snapshot: Path | None = option("--snapshot", metavar="FILE", help="write the verified snapshot to this file")
    format: str = format_option()


def run(args: VerifyRefArguments) -> Result:
    """Verify; exit 3 when no trusted run stored the reference, 1 when that could not be asked."""
    from reconciler.features.pull_requests.document import STORED
    from reconciler.features.pull_requests.stored_reference import SNAPSHOT, GitHubRepository, TrustedRuns, verify_reference
    from reconciler.files import write_whole
    from reconciler.ports import SystemClock

    stored = verify_reference(
        args.ref,
        trusted=TrustedRuns(branch=args.branch, workflows=args.workflow),
        folder=".",
        github=GitHubRepository(environment=os.environ),
        clock=SystemClock(),
        patience=_PATIENCE_S,
    )
    if args.snapshot is not None:
        if stored.snapshot is None:
            raise FileAccessError(f"{args.ref} has no file {SNAPSHOT}")
        write_whole(args.snapshot, [stored.snapshot.decode()])
    return Result(view=lambda: [_line(stored)], document=lambda: STORED.write(stored))


def _line(stored_reference: StoredReference) -> Line:
    from reconciler.render import line

    return line(f"Run {stored_reference.run} of commit {stored_reference.run_commit[:12]} stored {stored_reference.ref}.")
