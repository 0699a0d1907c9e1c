"""``kafka-quotas import``: turn the quota files of another tool into manifests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes
from reconciler.cli.declaration import argument, option
from reconciler.cli.option_groups import format_option
from reconciler.cli.results import Result

if TYPE_CHECKING:
    from reconciler.features.importing.conversion import ImportSummary
    from reconciler.render import Line

_TOOLS = ("jikkou", "strimzi", "terraform")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportArguments:
    """The command line of ``import``."""

    files: tuple[str, ...] = argument("FILE", nargs="+", help="files of that tool, or folders with such files")
    tool: str = option(
        "--from",
        required=True,
        choices=_TOOLS,
        metavar="TOOL",
        help=f"read the files of {', '.join(_TOOLS)}. For every other tool, use export",
    )
    folder: str = option(
        "--folder", default="quotas", metavar="DIR", help="write the manifests into this folder [default: quotas]"
    )
    overwrite: bool = option("--overwrite", help="write also into a folder that is not empty")
    partial: bool = option("--partial", help="write the convertible quotas [default: write nothing when one is not]")
    format: str = format_option(("text", "json", "github", "sarif"))


def run(args: ImportArguments) -> Result:
    """Convert; exit 1 when nothing was written."""
    from reconciler.cli.output import LiveProgress
    from reconciler.documents import FINDINGS, FindingList
    from reconciler.features.importing.conversion import import_files

    with LiveProgress() as progress:
        progress.step(f"reading the files of {args.tool}")
        result = import_files(args.tool, args.files, folder=Path(args.folder), overwrite=args.overwrite, partial=args.partial)
    counts = {
        "files": len(result.files),
        "clusters": result.clusters if result.written else 0,
        "entities": result.entities if result.written else 0,
    }
    return Result(
        exit=exit_codes.DONE if result.written else exit_codes.NOT_DONE,
        view=lambda: _lines(result, args.folder, partial=args.partial),
        document=lambda: FINDINGS.write(FindingList.of(result.findings, counts)),
        findings=lambda: result.findings,
    )


def _lines(result: ImportSummary, folder: str, *, partial: bool) -> list[Line]:
    from reconciler.model import escaped
    from reconciler.render import findings_lines, line
    from reconciler.text import count_of

    lines = list(findings_lines(result.findings))
    left = f"{count_of(result.unconverted, 'thing')} could not be converted"
    if result.written:
        sources, entities = count_of(result.sources, "file"), count_of(result.entities, "entity", "entities")
        lines.append(line(f"Wrote {entities} of {sources} to {escaped(folder)}:"))
        lines += [line(f"  {file.path}") for file in result.files]
        if result.unconverted:
            lines.append(line(f"{left}. These manifests lack that."))
    elif result.entities:
        rest = count_of(result.entities, "entity", "entities")
        other = "" if partial else f", or write what could be ({rest}) with --partial"
        lines.append(line(f"Nothing was written: {left}. Correct that{other}."))
    else:
        lines.append(line("Nothing was written: there is no quota that could be converted."))
    return lines
