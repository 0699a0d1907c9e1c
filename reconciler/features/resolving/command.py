"""``kafka-quotas resolve``: which limits apply to a client, where they come from, and which clients share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import entity_options, exit_codes, option_groups, output
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import Entity
    from reconciler.render import Block
    from reconciler.resolution import QuotaView
    from reconciler.workflows import Sources

_STATES: Final = "current (the cluster, or the snapshot of --current), manifests or planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveArguments:
    """The command line of ``resolve``."""

    paths: tuple[str, ...] = option_groups.connection_paths(", and the planned quotas")
    state: str = option(
        "--state",
        default="current",
        metavar="STATE",
        choices=("current", "manifests", "planned"),
        help=f"ask {_STATES} [default: current]",
    )
    explain: bool = option("--explain", help="show also the precedence levels, and the quotas that a limit overrides")
    entity: entity_options.EntityOptions = group(entity_options.EntityOptions)
    all: bool = option("--all", section="Clients", help="resolve every entity that the state names")
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    current: str | None = option_groups.CURRENT
    format: str = option_groups.format_option()


def run(args: ResolveArguments) -> Result:
    """Read the state and answer; exit 1 when nothing of the answer is known."""
    from reconciler.workflows import Sources, Where, require_client

    single = entity_options.entity_of(args.entity, may_be_empty=("client-id",))
    access = args.connection.access(args.current)
    _check(args, single)
    for warning in entity_options.literal_default_warnings(args.entity):
        output.tell(f"warning: {warning}")
    if single is not None:
        require_client(single)
    sources = Sources(Where(paths=args.paths, cluster=args.connection.cluster, access=access, trusted_ref=args.trusted_ref))
    view = sources.view(args.state)
    return _all(view, sources, explain=args.explain) if single is None else _one(view, single, sources, explain=args.explain)


def _check(args: ResolveArguments, single: Entity | None) -> None:
    if single is not None and args.all:
        raise UsageError("an entity and --all exclude each other")
    if single is None and not args.all:
        raise UsageError("name a client: --name user=NAME --name client-id=NAME (or ip=ADDRESS), or --all")


def _one(view: QuotaView, entity: Entity, sources: Sources, *, explain: bool) -> Result:
    """The answer for one entity."""
    from reconciler.features.resolving.documents import RESOLVE, ResolveAnswer
    from reconciler.workflows import is_unknown, notes_about

    answers = view.answers()
    resolution = answers.answer(entity, explain=explain)
    answer = ResolveAnswer(view=view, resolution=resolution, more_notes=tuple(notes_about(resolution, answers)))

    def lines() -> Iterator[Block]:
        from reconciler.features.resolving.view import ladders_of, note_lines, resolution_lines, view_title
        from reconciler.render import line

        yield line(f"In {view_title(view)}:")
        yield line()
        yield from resolution_lines(resolution, every_key=True)
        yield line()
        yield from ladders_of((resolution,))
        yield from note_lines(answer.notes)

    return Result(
        exit=exit_codes.NOT_DONE if is_unknown(resolution) else exit_codes.DONE,
        beside=sources.findings,
        view=lines,
        document=lambda: RESOLVE.write(answer),
    )


def _all(view: QuotaView, sources: Sources, *, explain: bool) -> Result:
    """The answers for every entity that the state names."""
    from reconciler.features.resolving.documents import RESOLVE_LIST, ResolveList
    from reconciler.workflows import is_unknown

    answers = view.answers()
    resolutions = tuple(answers.answer(entity, explain=explain) for entity, _ in answers.known_clients())

    def lines() -> Iterator[Block]:
        from reconciler.features.resolving.view import note_lines, resolution_lines, view_title
        from reconciler.render import line

        yield line(f"In {view_title(view)}:")
        for resolution in resolutions:
            yield line()
            yield from resolution_lines(resolution, every_key=False)
        if notes := tuple(note_lines(view.notes)):
            yield line()
            yield from notes

    return Result(
        exit=exit_codes.NOT_DONE if resolutions and all(map(is_unknown, resolutions)) else exit_codes.DONE,
        beside=sources.findings,
        view=lines,
        document=lambda: RESOLVE_LIST.write(ResolveList(view=view, notes=view.notes, resolutions=resolutions)),
    )
