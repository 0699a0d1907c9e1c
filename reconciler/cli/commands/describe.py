"""``kafka-quotas describe``: show the quotas of some or all entities of a cluster or a snapshot."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.cli import entity_options, exit_codes, options, output
from reconciler.cli.arguments import ClusterArguments, typed
from reconciler.errors import OutputError

if TYPE_CHECKING:
    from reconciler.model import CurrentState, Entity, Selector, ValueExpiry


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeArguments(ClusterArguments):
    """The command line of ``describe``."""

    current: str | None
    entity_name: tuple[str, ...]
    entity_names: tuple[str, ...]
    entity_defaults: tuple[str, ...]
    entity_any: tuple[str, ...]
    entity_named: tuple[str, ...]
    entity_prefix: tuple[str, ...]
    entity_strict: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``describe``."""
    options.add_connection_path_argument(parser)
    entity_options.add_entity_options(parser)
    entity_options.add_filter_options(parser)
    options.add_cluster_options(parser)
    options.add_current_option(parser, "read this snapshot instead of the live cluster")
    options.add_output_options(parser, formats=("auto", "table", "text", "json", "yaml", "csv"))


def parse(namespace: argparse.Namespace) -> DescribeArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(DescribeArguments, namespace)


def run(args: DescribeArguments) -> int:
    """Read, filter, print."""
    from reconciler.workflows import check_cluster_id, cluster_to_read, describe_cluster, quota_reader, stored_rule_notes

    options.check_one_state(args, args.current)
    query = entity_options.selector_of(args)
    for warning in entity_options.literal_default_warnings(args):
        output.tell(f"warning: {warning}")
    spec, loaded = cluster_to_read(args.paths, args.cluster)
    with quota_reader(spec, options.access(args, current=args.current)) as reader:
        state = describe_cluster(reader, query)
        if not args.quiet:
            state = replace(state, notes=(*state.notes, *stored_rule_notes(state, reader, spec)))
    check_cluster_id(spec, state.cluster)
    if spec.name is not None:
        state = replace(state, cluster=state.cluster.named(spec.name))
    expiries: Mapping[tuple[Entity, str], ValueExpiry] = {}
    if loaded is not None:
        from reconciler.workflows import live_expiries

        expiries = live_expiries(loaded.desired(spec), state)
    is_table = args.format == "table" or (args.format == "auto" and sys.stdout.isatty())
    _say_what_else(args, state, {} if is_table else expiries)
    if is_table:
        _print_table(args, state, expiries)
        return exit_codes.DONE
    try:
        sys.stdout.writelines(_pieces(args, state, query))
        sys.stdout.flush()
    except OSError as error:
        raise OutputError(f"cannot print the result: {error.strerror}") from error
    return exit_codes.DONE


def _say_what_else(args: DescribeArguments, state: CurrentState, expiries: Mapping[tuple[Entity, str], ValueExpiry]) -> None:
    """What is not part of the result, and should be known."""
    for node in state.unreadable:
        output.tell(f"warning: {node.message}")
    if not args.quiet:
        for note in state.notes:
            output.tell(f"note: {note}")
        if expiries:
            from reconciler.workflows import expiry_notes

            for note in expiry_notes(expiries):
                output.tell(f"note: {note}")
        if not state.entities:
            output.tell("no entity matches")


def _print_table(args: DescribeArguments, state: CurrentState, expiries: Mapping[tuple[Entity, str], ValueExpiry]) -> None:
    from reconciler.render import state_table

    if state.entities:
        output.print_lines(args, [state_table(state, expiries)])


def _pieces(args: DescribeArguments, state: CurrentState, query: Selector) -> Iterator[str]:
    """The result in the form that is wanted; only that one's module is loaded."""
    if args.format == "json":
        from reconciler.documents import selector_to_json, snapshot_chunks

        return snapshot_chunks(state, selected=selector_to_json(query) or None)
    if args.format == "yaml":
        from reconciler.manifest import entries_document

        return entries_document(state, introduction=_introduction(state))
    if args.format == "csv":
        from reconciler.render import state_as_csv

        return state_as_csv(state)
    from reconciler.render import state_as_text

    return state_as_text(state, color=output.wants_color(args.color, sys.stdout))


def _introduction(state: CurrentState) -> str:
    from reconciler.model import display_name

    name = state.cluster.name or state.cluster.id
    return f"Quotas of cluster {display_name(name) if name else 'unknown'} at {state.observed.at:%Y-%m-%d %H:%M:%S} UTC"
