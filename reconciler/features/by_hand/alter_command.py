"""``kafka-quotas alter``: change the quotas of one entity by hand, guarded and verified as ``apply`` is."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
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
    from reconciler.ports import QuotaCluster
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
    expose_clients: bool = option(
        "--expose-clients",
        section="Changes",
        help="make brokers measure every client: set a default quota far above any network, where it lifts no other limit",
    )
    keys: tuple[str, ...] = option(
        "--keys",
        section="Changes",
        metavar="KEY,...",
        help="with --expose-clients, measure by these keys [default: both byte rates]",
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

    check_guard_ids(args.write.accept)
    if args.expose_clients:
        return _expose(args)
    if args.keys:
        raise UsageError("--keys needs --expose-clients")
    access = args.connection.access()
    with writing.audited(args.write, "alter", args.format) as audit, LiveProgress() as progress:
        approver = writing.Approver(write=args.write, as_json=args.format == "json", progress=progress)
        request = _request(args)
        for warning in _warnings(args, request):
            output.tell(f"warning: {warning}")
        target = _target(args)
        temporary = _temporary(args, request, target)
        audit.about(target.spec, access, source=lambda: target.source, trusted=target.trusted)
        if temporary is None:
            report = _alter(args, lambda *_: request, target, approver)
        else:
            # The manifests declare the values from now on, so no guard has to keep them apart.
            plain = replace(target, managed=False)
            report = _alter(args, lambda *_: request, plain, approver, lambda: _write(args, temporary, approver))
            if report.result is ApplyResult.NOTHING_TO_DO:
                _write(args, temporary, approver)
    return writing.finish(args.write, report, audit, args.format, cluster=lambda: (*args.paths, *args.connection.command_words()))


def _expose(args: AlterArguments) -> Result:
    """The same for the quota that makes every client visible, which depends on those of the cluster."""
    from reconciler.cli.output import LiveProgress
    from reconciler.features.by_hand.expose import exposed_keys, exposing_request
    from reconciler.model import ApplyResult

    entity = args.entity
    if any((entity.entity_name, entity.entity_names, entity.entity_defaults, args.add, args.delete, args.length)):
        raise UsageError(
            "--expose-clients chooses the entity and its values: without options of Entity, --add, --delete and --for"
        )
    keys, added = exposed_keys(args.keys), list[str]()

    def request(cluster: QuotaCluster, target: ClusterTarget) -> AlterRequest:
        made, exposure = exposing_request(cluster, keys, target)
        for note in exposure.notes.values():
            output.tell(f"note: {note}")
        added.extend(exposure.add)
        return made

    with writing.audited(args.write, "alter", args.format) as audit, LiveProgress() as progress:
        approver = writing.Approver(write=args.write, as_json=args.format == "json", progress=progress)
        target = _target(args)
        audit.about(target.spec, args.connection.access(), source=lambda: target.source, trusted=target.trusted)
        report = _alter(args, request, target, approver)
    result = writing.finish(args.write, report, audit, args.format)
    if args.write.validate_only or not added or report.result not in (ApplyResult.DONE, ApplyResult.PARTIAL):
        return result
    undo = ("--accept", "default-entity", "--defaults", "user,client-id", "--delete", ",".join(added))
    warning = (
        f"note: while user=<default> client-id=<default> has {','.join(added)}, these keys limit no client when you set them "
        "on a client-id or on the default user. Undo this first:"
    )
    command = shlex.join(["kafka-quotas", "alter", *args.paths, *args.connection.command_words(), *undo])
    return replace(result, notes=(warning, command))


def _target(args: AlterArguments) -> ClusterTarget:
    from reconciler.workflows import load_target

    return load_target(args.paths, cluster=args.connection.cluster, trusted_ref=args.trusted_ref)


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
    return make_alter_request(entity, add=_added(args), delete=_deleted(args))


def _added(args: AlterArguments) -> dict[str, str]:
    """``--add``, not yet looked into. Raises ``UsageError``."""
    quotas: dict[str, str] = {}
    for setting in _listed(args.add, "--add"):
        key, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"--add takes KEY=VALUE, not {shown(setting)}. Values have no comma in them")
        if key in quotas:
            raise UsageError(f"--add sets {shown(key)} twice")
        quotas[key] = value
    return quotas


def _deleted(args: AlterArguments) -> list[str]:
    keys: list[str] = []
    for key in _listed(args.delete, "--delete"):
        if "=" in key:
            raise UsageError(f"--delete takes keys without values, not {shown(key)}")
        if key in keys:
            raise UsageError(f"--delete names {shown(key)} twice")
        keys.append(key)
    return keys


def _listed(texts: tuple[str, ...], option: str) -> Iterator[str]:
    for text in texts:
        for part in text.split(","):
            if not part:
                raise UsageError(f"{option}: there is nothing before or after a comma in {shown(text)}")
            yield part


def _warnings(args: AlterArguments, request: AlterRequest) -> Iterator[str]:
    from reconciler.workflows import name_warnings

    yield from entity_options.literal_default_warnings(args.entity)
    yield from (f"{text} [{rule}]" for rule, text in name_warnings(request.entity) if rule != "literal-default-name")


def _alter(
    args: AlterArguments,
    request: Callable[[QuotaCluster, ClusterTarget], AlterRequest],
    target: ClusterTarget,
    approver: writing.Approver,
    before_write: Callable[[], None] = lambda: None,
) -> ApplyReport:
    from reconciler.ports import SystemClock
    from reconciler.workflows import Approval, Dialogue, alter_entities, open_cluster

    write = args.write
    approval = Approval(accepted=write.accept, expected_digest=write.expect_digest, settings=write.settings())

    def confirm(plan: Plan) -> bool:
        confirmed = approver.confirm(plan)
        if confirmed:
            before_write()
        return confirmed

    approver.progress.step("connecting to the cluster")
    cluster = open_cluster(target.spec, args.connection.access(), trusted=target.trusted)
    with writing.given_back(cluster):
        return alter_entities(
            cluster,
            (request(cluster, target),),
            approval,
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
