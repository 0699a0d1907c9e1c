"""``kafka-quotas verify-ref``: ask GitHub whether a run of the default branch stored what a reference has."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed
from reconciler.errors import FileAccessError

if TYPE_CHECKING:
    from reconciler.features.pull_requests.stored_reference import StoredReference
    from reconciler.formats import Json
    from reconciler.render import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRefArguments(OutputArguments):
    """The command line of ``verify-ref``."""

    ref: str
    branch: str
    workflow: tuple[str, ...]
    snapshot: Path | None
    repository: str | None
    api_url: str | None
    token_file: Path | None
    wait: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``verify-ref``."""
    parser.add_argument("ref", metavar="REF", help="a full reference, as fetched: refs/kafka-quotas/snapshot/prod")
    parser.add_argument(
        "--branch",
        required=True,
        metavar="REF",
        help="trust runs of this default branch, such as refs/remotes/origin/main",
    )
    parser.add_argument(
        "--workflow",
        required=True,
        action="append",
        metavar="FILE",
        help="trust runs of this file in .github/workflows, such as quotas-apply.yml (repeatable)",
    )
    parser.add_argument("--snapshot", type=Path, metavar="FILE", help="write the verified snapshot to this file")
    options.add_github_options(parser, wait=60.0)
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> VerifyRefArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(VerifyRefArguments, namespace)


def run(args: VerifyRefArguments) -> int:
    """Verify; 3 when no trusted run stored the reference, 1 when that could not be asked."""
    from reconciler.features.pull_requests.stored_reference import SNAPSHOT, GitHubRepository, TrustedRuns, verify_reference
    from reconciler.files import write_whole
    from reconciler.workflows import SystemClock

    github = GitHubRepository(
        environment=os.environ, repository=args.repository, api_url=args.api_url, token_file=args.token_file
    )
    trusted = TrustedRuns(branch=args.branch, workflows=args.workflow)
    stored = verify_reference(args.ref, trusted=trusted, folder=".", github=github, clock=SystemClock(), patience=args.wait)
    if args.snapshot is not None:
        if stored.snapshot is None:
            raise FileAccessError(f"{args.ref} has no file {SNAPSHOT}")
        write_whole(args.snapshot, [stored.snapshot.decode()])
    output.print_result(args, document=lambda: _document(stored), lines=lambda: [_line(stored)])
    return exit_codes.DONE


def _document(stored_reference: StoredReference) -> dict[str, Json]:
    from reconciler.formats import FORMAT_VERSION

    return {
        "format_version": FORMAT_VERSION,
        "ref": stored_reference.ref,
        "commit": stored_reference.commit,
        "run": stored_reference.run,
        "run_commit": stored_reference.run_commit,
    }


def _line(stored_reference: StoredReference) -> Line:
    from reconciler.render import line

    return line(f"Run {stored_reference.run} of commit {stored_reference.run_commit[:12]} stored {stored_reference.ref}.")
