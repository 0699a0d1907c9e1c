"""``kafka-quotas alter``: change the quotas of one entity by hand, guarded and verified as ``apply`` is."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.cli import entity_options, exposing, options, output, run_outputs, writing
from reconciler.cli.arguments import WritingArguments, typed
from reconciler.errors import ManifestError, UsageError
from reconciler.text import shown

if TYPE_CHECKING:
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import ApplyReport, Plan
    from reconciler.ports import QuotaCluster
    from reconciler.workflows import AlterRequest, AlterTarget, Approval, TemporaryValues


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterArguments(WritingArguments):
    """The command line of ``alter``."""

    entity_name: tuple[str, ...]
    entity_names: tuple[str, ...]
    entity_defaults: tuple[str, ...]
    add: tuple[str, ...]
    delete: tuple[str, ...]
    length: str | None
    expose_clients: bool
    keys: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``alter``."""
    options.add_connection_path_argument(parser, also=", its managed entities and the limits of a write")
    entity_options.add_entity_options(parser)
    changes = options.section(parser, "Changes")
    changes.add_argument(
        "--add",
        action="append",
        default=[],
        metavar="KEY=VALUE,...",
        help="set these quotas, with values as in manifests, such as 10MiB",
    )
    changes.add_argument("--delete", action="append", default=[], metavar="KEY,...", help="remove these quotas")
    changes.add_argument(
        "--for",
        dest="length",
        metavar="TIME",
        help="take the values of --add back after this time, such as 90m, 2h or 3d: write an expiry into the manifests of PATH",
    )
    exposing.add_exposing_options(changes)
    writing.add_writing_options(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_options(parser)
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> AlterArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(AlterArguments, namespace)


def run(args: AlterArguments) -> int:
    """Plan the one change, write it, print its report; the exit code states whether anything was written."""
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import ApplyResult
    from reconciler.policy import check_guard_ids

    check_guard_ids(args.accept)
    if args.expose_clients:
        return _expose(args)
    if args.keys:
        raise UsageError("--keys needs --expose-clients")
    with run_outputs.audited(args, "alter") as audit, PatientProgress(args) as progress:
        request = _request(args)
        for warning in _warnings(args, request):
            output.tell(f"warning: {warning}")
        with _findings_printed(args):
            target = _target(args)
            temporary = _temporary(args, request, target)
        audit.about(target.spec, source=lambda: target.source, trusted=target.trusted)
        if temporary is None:
            report = _alter(args, lambda *_: request, target, progress)
        else:
            # The manifests declare the values from now on, so no guard has to keep them apart.
            plain = replace(target, managed=False)
            report = _alter(args, lambda *_: request, plain, progress, lambda: _write(args, temporary, progress))
            if report.result is ApplyResult.NOTHING_TO_DO:
                _write(args, temporary, progress)
    return run_outputs.finish(args, report, audit)


def _expose(args: AlterArguments) -> int:
    """The same for the quota that makes every client visible, which depends on those of the cluster."""
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import ApplyResult

    chosen = exposing.Exposing(args)
    with run_outputs.audited(args, "alter") as audit, PatientProgress(args) as progress:
        with _findings_printed(args):
            target = _target(args)
        audit.about(target.spec, source=lambda: target.source, trusted=target.trusted)
        report = _alter(args, chosen.request, target, progress)
    code = run_outputs.finish(args, report, audit)
    if report.result in (ApplyResult.DONE, ApplyResult.PARTIAL):
        chosen.tell_undo()
    return code


def _target(args: AlterArguments) -> AlterTarget:
    from reconciler.workflows import load_target

    return load_target(args.paths, cluster=args.cluster, trusted_ref=args.trusted_ref)


@contextlib.contextmanager
def _findings_printed(args: AlterArguments) -> Iterator[None]:
    """Print the findings of manifests that stop the run."""
    try:
        yield
    except ManifestError as error:
        output.print_findings(args, error.findings, to_stdout=True)
        raise


def _temporary(args: AlterArguments, request: AlterRequest, target: AlterTarget) -> TemporaryValues | None:
    from reconciler.workflows import SystemClock, parse_length, temporary_values

    if args.length is None:
        return None
    return temporary_values(request, target, until=SystemClock().now() + parse_length(args.length))


def _write(args: AlterArguments, temporary: TemporaryValues, progress: PatientProgress) -> None:
    """Change the manifests, right before the cluster: a value there without its expiry would stay."""
    from reconciler.workflows import require_unchanged, write_revisions

    if args.validate_only:
        return
    require_unchanged(temporary.revisions)
    write_revisions(temporary.revisions)
    with progress.silent():
        for note in temporary.notes:
            output.tell(f"note: {note}")


def _request(args: AlterArguments) -> AlterRequest:
    from reconciler.workflows import make_alter_request

    entity = entity_options.entity_of(args)
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

    yield from entity_options.literal_default_warnings(args)
    yield from (f"{text} [{rule}]" for rule, text in name_warnings(request.entity) if rule != "literal-default-name")


def _approval(args: AlterArguments) -> Approval:
    from reconciler.apply import ApplySettings
    from reconciler.workflows import Approval

    return Approval(
        accepted=tuple(args.accept),
        expected_digest=args.expect_digest,
        settings=writing.interruptible(ApplySettings(validate_only=args.validate_only)),
    )


def _alter(
    args: AlterArguments,
    request: Callable[[QuotaCluster, AlterTarget], AlterRequest],
    target: AlterTarget,
    progress: PatientProgress,
    before_write: Callable[[], None] = lambda: None,
) -> ApplyReport:
    from reconciler.workflows import SystemClock, alter_entity, open_cluster

    approval = _approval(args)

    def confirm(plan: Plan) -> bool:
        confirmed = writing.confirm(args, plan, progress)
        if confirmed:
            before_write()
        return confirmed

    progress.step("connecting to the cluster")
    cluster = open_cluster(target.spec, options.access(args), trusted=target.trusted)
    with writing.given_back(cluster):
        return alter_entity(
            cluster,
            request(cluster, target),
            approval,
            target=target,
            confirm=confirm,
            preview=lambda plan: _preview(args, plan, progress),
            clock=SystemClock(),
            progress=progress,
        )


def _preview(args: AlterArguments, plan: Plan, progress: PatientProgress) -> None:
    """The plan where no person will be asked about it; of a plan that is not going to be written, what there is to know."""
    if args.validate_only and plan.changes:
        writing.preview(args, plan, progress)
    elif not plan.changes or plan.tripped:
        with progress.silent():
            for note in plan.notes:
                output.tell(f"note: {note}")
