"""``kafka-quotas validate``: check manifests without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, option_groups
from reconciler.cli.declaration import option
from reconciler.cli.results import VALIDATE_FORMATS, OutFile, Result
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import Finding
    from reconciler.workflows import LoadedManifests


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateArguments:
    """The command line of ``validate``."""

    paths: tuple[str, ...] = option_groups.PATHS
    fail_on: str = option_groups.FAIL_ON
    trusted_ref: str | None = option_groups.TRUSTED_REF
    base: str | None = option(
        "--base",
        section="Git",
        metavar="REF",
        help="count findings that this git reference has, too, as before [default: --trusted-ref]",
    )
    cluster: str | None = option(
        "--cluster", section="Cluster", metavar="NAME", help="check for this Cluster manifest only [default: for every one]"
    )
    write_baseline: str | None = option(
        "--write-baseline", metavar="FILE", help="list the findings in this manifest, so that they count as before from now on"
    )
    format: str = option_groups.format_option(VALIDATE_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(VALIDATE_FORMATS)


def run(args: ValidateArguments) -> Result:
    """Check; exit 1 when a finding is at or above ``--fail-on``."""
    from reconciler.cli.output import LiveProgress
    from reconciler.documents import FINDINGS, FindingList
    from reconciler.model import Severity
    from reconciler.render import findings_outputs, findings_view, validation_lines
    from reconciler.workflows import References, stop_on, validate_manifests

    with LiveProgress() as progress:
        progress.step("reading the manifests")
        references = References(trusted=args.trusted_ref, base=args.base)
        checked = validate_manifests(args.paths, cluster=args.cluster, references=references)
    counts = {"files": checked.files, "clusters": checked.clusters, "entities": checked.entities}
    if args.write_baseline is not None:
        whole = args.cluster is None and checked.loaded.complete
        return Result(notes=(_write_baseline(args.write_baseline, checked.findings, checked.loaded, whole=whole),))
    return Result(
        exit=exit_codes.DONE,
        view=lambda: validation_lines(checked.findings, **counts),
        document=lambda: FINDINGS.write(FindingList.of(checked.findings, counts)),
        findings=lambda: checked.findings,
        page=lambda: findings_view(checked.findings),
        forms={"outputs": lambda: findings_outputs(checked.findings)},
        then=lambda: stop_on(checked.findings, Severity(args.fail_on)),
    )


def _write_baseline(file: str, findings: Sequence[Finding], loaded: LoadedManifests, *, whole: bool) -> str:
    """Write the findings baseline, and return a sentence about it. ``whole``: other entries go.

    Raises ``ManifestError`` for errors, and ``UsageError`` for a file that would not count.
    """
    import datetime

    from reconciler.hooks import added, load
    from reconciler.text import count_of
    from reconciler.workflows import stop_on

    stop_on(findings)
    writers = list(added("BASELINE_WRITERS"))
    if not writers:
        raise UsageError("--write-baseline needs the feature findings_baseline, and its folder is not installed")
    today = datetime.datetime.now(tz=datetime.UTC).date()
    count = load(writers[0])(file, findings, loaded, whole=whole, today=today)
    return f"{file} lists {count_of(count, 'finding')}. Write in it why they may stay, and commit it"
