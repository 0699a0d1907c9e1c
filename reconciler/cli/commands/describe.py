"""``kafka-quotas describe``: show the quotas of some or all entities of a cluster or a snapshot."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.cli import entity_options, option_groups, output
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result, lines_of
from reconciler.errors import UsageError
from reconciler.hooks import added, load

if TYPE_CHECKING:
    from reconciler.model import CurrentState, Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeArguments:
    """The command line of ``describe``."""

    paths: tuple[str, ...] = option_groups.connection_paths()
    entities: entity_options.FilterOptions = group(entity_options.FilterOptions)
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    current: str | None = option_groups.CURRENT
    history: bool = option("--history", section="Git", help="show who set each value, in which pull request, and who approved")
    audit: tuple[str, ...] = option(
        "--audit", section="Git", metavar="FILE", help="with --history: read runs from this file of apply --audit (repeatable)"
    )
    format: str = option_groups.format_option(("auto", "table", "text", "json"))


def run(args: DescribeArguments) -> Result:
    """Read and filter."""
    from reconciler.workflows import check_cluster_id, describe_cluster, load_target, quota_reader, stored_rule_notes

    if args.audit and not args.history:
        raise UsageError("--audit needs --history")
    access = args.connection.access(args.current)
    query = entity_options.selector_of(args.entities)
    for warning in entity_options.literal_default_warnings(args.entities):
        output.tell(f"warning: {warning}")
    target = load_target(args.paths, cluster=args.connection.cluster)
    spec = target.spec
    with quota_reader(spec, access) as reader:
        state = describe_cluster(reader, query)
        if not output.is_quiet():
            state = replace(state, notes=(*state.notes, *stored_rule_notes(state, reader, spec)))
    check_cluster_id(spec, state.cluster)
    if spec.name is not None:
        state = replace(state, cluster=state.cluster.named(spec.name))
    if args.history:
        return _history(args, state, has_manifests=target.managed)
    _say_what_else(state)
    if args.format == "table" or (args.format == "auto" and sys.stdout.isatty()):
        from reconciler.render import state_table

        if state.entities:
            output.print_lines([state_table(state)])
        return Result()
    return Result(forms={args.format: lambda: _pieces(args.format, state, query)})


def _history(args: DescribeArguments, state: CurrentState, *, has_manifests: bool) -> Result:
    """Return the authors of the values. Raises ``UsageError`` without manifests or the feature."""
    if not has_manifests:
        raise UsageError("--history needs the manifests of the cluster: give their folder, which is in git, as PATH")
    place = next(added("HISTORIES"), None)
    if place is None:
        raise UsageError("describe --history needs the feature insight, and its folder is not installed")
    result: Result = load(place)(state, args.paths, cluster=args.connection.cluster, audit=args.audit)
    if args.format == "json" or result.view is None:
        return result
    output.print_lines(lines_of(result.view()))
    return Result(notes=result.notes)


def _say_what_else(state: CurrentState) -> None:
    """Print warnings and notes that are not part of the result."""
    for node in state.unreadable:
        output.tell(f"warning: {node.message}")
    if not output.is_quiet():
        for note in state.notes:
            output.tell(f"note: {note}")
        if not state.entities:
            output.tell("no entity matches")


def _pieces(form: str, state: CurrentState, query: Selector) -> Iterator[str]:
    """The result in the form that is wanted; only that one's module is loaded."""
    if form == "json":
        from reconciler.documents import selector_to_json, snapshot_chunks

        return snapshot_chunks(state, selected=selector_to_json(query) or None)
    from reconciler.render import state_as_text

    return state_as_text(state, color=output.wants_color(sys.stdout))
