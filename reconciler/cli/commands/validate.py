"""``kafka-quotas validate``: check manifests without a cluster."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, option_groups, output
from reconciler.cli.declaration import option
from reconciler.cli.every_cluster import check_formats, combined
from reconciler.cli.results import VALIDATE_FORMATS, OutFile, Result, lines_of
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.model import Span
    from reconciler.render import Block
    from reconciler.workflows import Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateArguments:
    """The command line of ``validate``."""

    paths: tuple[str, ...] = option_groups.PATHS
    fail_on: str = option_groups.FAIL_ON
    trusted_ref: str | None = option_groups.TRUSTED_REF
    cluster: str | None = option(
        "--cluster", section="Cluster", metavar="NAME", help="check for this Cluster manifest only [default: for every one]"
    )
    all_clusters: bool = option(
        "--all-clusters", section="Cluster", help="check every cluster, each by itself (not with --cluster)"
    )
    all_findings: bool = option(
        "--all-findings", section="Output", help="print every finding as text [default: the first 20 of a rule, and a count]"
    )
    format: str = option_groups.format_option(VALIDATE_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(VALIDATE_FORMATS)


def run(args: ValidateArguments) -> Result:
    """Check; exit 1 when a finding is at or above ``--fail-on``."""
    from reconciler.cli.output import PatientProgress
    from reconciler.model import Severity
    from reconciler.workflows import stop_on, validate_every, validate_manifests

    if args.all_clusters:
        if args.cluster is not None:
            raise UsageError("--all-clusters and --cluster exclude each other")
        check_formats(args.format, args.out)
    with PatientProgress() as progress:
        progress.step("reading the manifests")
        if args.all_clusters:
            every = validate_every(args.paths, trusted_ref=args.trusted_ref)
            result = combined([_of_cluster(args, name, checked) for name, checked in every])
            findings = [finding for _, checked in every for finding in checked.findings]
        else:
            validation = validate_manifests(args.paths, cluster=args.cluster, trusted_ref=args.trusted_ref)
            result, findings = _result(args, validation), [*validation.findings]
    return dataclasses.replace(result, then=lambda: stop_on(findings, Severity(args.fail_on)))


def _result(args: ValidateArguments, checked: Validation) -> Result:
    from reconciler.documents import FINDINGS, FindingList
    from reconciler.render import findings_outputs, findings_view, validation_lines

    counts = {"files": checked.files, "clusters": checked.clusters, "entities": checked.entities}
    width = output.text_width(sys.stdout)

    def lines() -> Sequence[Block]:
        sources = _sources(args, checked)
        return validation_lines(checked.findings, **counts, sources=sources, width=width, every=args.all_findings)

    return Result(
        exit=exit_codes.DONE,
        view=lines,
        document=lambda: FINDINGS.write(FindingList.of(checked.findings, counts)),
        findings=lambda: checked.findings,
        page=lambda: findings_view(checked.findings),
        forms={"outputs": lambda: findings_outputs(checked.findings)},
    )


def _of_cluster(args: ValidateArguments, name: str, checked: Validation) -> Result:
    from reconciler.model import display_name
    from reconciler.render import Style, line

    whole = _result(args, checked)
    assert whole.view is not None
    assert whole.document is not None
    view, document = whole.view, whole.document

    def named() -> Json:
        made = document()
        assert isinstance(made, dict)
        return {**made, "cluster": name}

    return dataclasses.replace(
        whole, view=lambda: (line((f"Cluster {display_name(name)}", Style.STRONG)), *lines_of(view())), document=named
    )


def _sources(args: ValidateArguments, checked: Validation) -> Mapping[Span, str]:
    from reconciler.render import shown_findings
    from reconciler.workflows import source_lines

    return source_lines(shown_findings(checked.findings, every=args.all_findings), checked.read) if checked.findings else {}
