"""``kafka-quotas alter``: change the quotas of one entity by hand, guarded and verified as ``apply`` is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.cli import entity_options, option_groups, output, writing
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result
from reconciler.errors import UsageError
from reconciler.text import shown

if TYPE_CHECKING:
    from reconciler.features.by_hand.temporary import TemporaryValues
    from reconciler.model import ApplyReport, Plan
    from reconciler.workflows import AlterRequest, ClusterTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterArguments:
    """The command line of ``alter``."""

    paths: tuple[str, ...] = option_groups.connection_paths(", its managed entities and the limits of a write")
    entity: entity_options.EntityOptions = group(entity_options.EntityOptions)
    add: tuple[str, ...] = option(
        "--add", section="Changes", metavar="KEY=VALUE,...", help="set these quotas, with values as in manifests, such as 10MiB"
    )
    delete: tuple[str, ...] = option("--delete", section="Changes", metavar="KEY,...", help="remove these quotas")
    length: str | None = option(
        "--for",
        section="Changes",
        metavar="TIME",
        help="take the values of --add back after this time, such as 90m, 2h or 3d: write an expiry into the manifests of PATH",
    )
    write: writing.WritingOptions = group(writing.WritingOptions)
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    format: str = option_groups.format_option()


def run(args: AlterArguments) -> Result:
    """Plan the one change, write it, print its report; the exit code states whether anything was written."""
    from reconciler.cli.output import LiveProgress
    from reconciler.model import ApplyResult
    from reconciler.policy import check_guard_ids
    from reconciler.workflows import load_target

    check_guard_ids(args.write.accept)
    access = args.connection.access()
    with writing.audited(args.write, "alter", args.format) as audit, LiveProgress() as progress:
        approver = writing.Approver(write=args.write, as_json=args.format == "json", progress=progress)
        request = _request(args)
        for warning in _warnings(args, request):
            output.tell(f"warning: {warning}")
        target = load_target(args.paths, cluster=args.connection.cluster, trusted_ref=args.trusted_ref)
        temporary = _temporary(args, request, target)
        audit.about(target.spec, access, source=lambda: target.source, trusted=target.trusted)
        if temporary is not None:
            # The manifests declare the values from now on, so no guard has to keep them apart.
            target = replace(target, managed=False)
        report = _alter(args, request, target, approver, temporary)
        if temporary is not None and report.result is ApplyResult.NOTHING_TO_DO:
            _write(args, temporary, approver)
    return writing.finish(args.write, report, audit, args.format, cluster=lambda: (*args.paths, *args.connection.command_words()))


def _temporary(args: AlterArguments, request: AlterRequest, target: ClusterTarget) -> TemporaryValues | None:
    from reconciler.features.by_hand.temporary import parse_length, temporary_values
    from reconciler.ports import SystemClock

    if args.length is None:
        return None
    return temporary_values(request, target, until=SystemClock().now() + parse_length(args.length))


def _write(args: AlterArguments, temporary: TemporaryValues, approver: writing.Approver) -> None:
    """Change the manifests, right before the cluster: a value there without its expiry would stay."""
    from reconciler.features.by_hand.temporary import require_unchanged
    from reconciler.features.manifest_edits import write_revisions

    if args.write.validate_only:
        return
    require_unchanged(temporary.revisions)
    write_revisions(temporary.revisions)
    with approver.progress.silent():
        for note in temporary.notes:
            output.tell(f"note: {note}")


def _request(args: AlterArguments) -> AlterRequest:
    from reconciler.workflows import make_alter_request

    entity = entity_options.entity_of(args.entity)
    if entity is None:
        raise UsageError("name an entity: --name TYPE=NAME, --names TYPE=NAME,..., --defaults TYPE,...")
    return make_alter_request(entity, add=_added(args), delete=_parts(args.delete))


def _added(args: AlterArguments) -> dict[str, str]:
    """``--add``, not yet looked into. Raises ``UsageError``."""
    quotas: dict[str, str] = {}
    for setting in _parts(args.add):
        key, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"--add takes KEY=VALUE, not {shown(setting)}. Values have no comma in them")
        if key in quotas:
            raise UsageError(f"--add sets {shown(key)} twice")
        quotas[key] = value
    return quotas


def _parts(texts: tuple[str, ...]) -> list[str]:
    return [part for text in texts for part in text.split(",")]


def _warnings(args: AlterArguments, request: AlterRequest) -> Iterator[str]:
    from reconciler.workflows import name_warnings

    yield from entity_options.literal_default_warnings(args.entity)
    yield from (f"{text} [{rule}]" for rule, text in name_warnings(request.entity) if rule != "literal-default-name")


def _alter(
    args: AlterArguments,
    request: AlterRequest,
    target: ClusterTarget,
    approver: writing.Approver,
    temporary: TemporaryValues | None,
) -> ApplyReport:
    from reconciler.ports import SystemClock
    from reconciler.workflows import Approval, Dialogue, alter_entities, open_cluster

    write = args.write

    def confirm(plan: Plan) -> bool:
        confirmed = approver.confirm(plan)
        if confirmed and temporary is not None:
            _write(args, temporary, approver)
        return confirmed

    approver.progress.step("connecting to the cluster")
    cluster = open_cluster(target.spec, args.connection.access(), trusted=target.trusted)
    with writing.given_back(cluster):
        return alter_entities(
            cluster,
            (request,),
            Approval(accepted=write.accept, expected_digest=write.expect_digest, settings=write.settings()),
            target=target,
            dialogue=Dialogue(confirm=confirm, show=lambda plan: _preview(write, plan, approver)),
            clock=SystemClock(),
            progress=approver.progress,
        )


def _preview(write: writing.WritingOptions, plan: Plan, approver: writing.Approver) -> None:
    """The plan where no person will be asked about it; of a plan that is not going to be written, what there is to know."""
    if write.validate_only and plan.changes:
        approver.preview(plan)
    elif not plan.changes or plan.tripped:
        with approver.progress.silent():
            for note in plan.notes:
                output.tell(f"note: {note}")
