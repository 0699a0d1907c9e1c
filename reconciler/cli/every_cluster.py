"""``--all-clusters``: printing the results of several clusters, and the one exit code for all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from reconciler.cli import exit_codes, output
from reconciler.cli.arguments import OutputArguments
from reconciler.errors import UsageError
from reconciler.model import ClusterFailure

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.render import Block

T = TypeVar("T")
FORMATS: Final = ("text", "json")


def check_formats(args: OutputArguments, files: Sequence[tuple[str, Path]] = ()) -> None:
    """Raise ``UsageError`` for a format for one cluster only."""
    for name in (args.format, *(name for name, _ in files)):
        if name not in FORMATS:
            msg = f"--all-clusters prints {' or '.join(FORMATS)}. For {name} plan one cluster at a time, or render each plan"
            raise UsageError(msg)


def print_every(
    args: OutputArguments,
    results: Sequence[T | ClusterFailure],
    *,
    document: Callable[[T], Json],
    lines: Callable[[T], Sequence[Block]],
    files: Sequence[tuple[str, Path]] = (),
    version: str | None = None,
) -> None:
    """Print all results as one, after writing them to the files of ``--out``. ``version``: of the list of the documents."""
    from reconciler.documents import cluster_failure_to_json, clusters_to_json
    from reconciler.files import write_whole
    from reconciler.formats import FORMAT_VERSION, document_text
    from reconciler.render import failure_lines, join_parts, plain

    def whole() -> Json:
        documents = (cluster_failure_to_json(r) if isinstance(r, ClusterFailure) else document(r) for r in results)
        return clusters_to_json(documents, version=version or FORMAT_VERSION)

    def text() -> Sequence[Block]:
        return join_parts([failure_lines(r) if isinstance(r, ClusterFailure) else lines(r) for r in results])

    for name, path in files:
        write_whole(path, [document_text(whole()) if name == "json" else plain(text())])
    output.print_result(args, document=whole, lines=text)
    if args.format == "json":
        for result in results:
            if isinstance(result, ClusterFailure):
                output.print_lines(args, failure_lines(result)[:1], sys.stderr)


def exit_code(
    results: Sequence[T | ClusterFailure], *, differs: Callable[[T], bool], detailed: bool, stopped: bool = False
) -> int:
    """1 if any cluster did not finish or findings ``stopped`` it, else 2 if any differs and ``--detailed-exitcode``, else 0."""
    if stopped or any(isinstance(result, ClusterFailure) and not result.skipped for result in results):
        return exit_codes.NOT_DONE
    if detailed and any(differs(result) for result in results if not isinstance(result, ClusterFailure)):
        return exit_codes.DIFFERENCES
    return exit_codes.DONE
