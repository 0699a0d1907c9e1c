"""One declaration for each option: the field of a command's dataclass carries its name and its help, and states its type.

``add_options`` makes argparse's arguments of the fields, and ``read`` an instance of what argparse parsed. Options that commands
share are constants, or dataclasses of their own that a command has as one field.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from reconciler.hooks import added, load

if TYPE_CHECKING:
    from dataclasses import Field

T = TypeVar("T")

_TYPES: Final = {"int": int, "float": float}
COMMON: Final = "Options of every command"
"""The section of options that only the help of the program lists."""

SECTIONS: Final = (
    "Arguments",
    "Actions",
    "Options",
    "Entity",
    "Clients",
    "Changes",
    "Traffic",
    "Cluster",
    "Output",
    "Safety",
    "Steps",
    "Git",
    "Series",
    "Alerts",
    "Forge",
    "GitHub",
    "Service",
    "Broker model",
    "Spark",
    COMMON,
)
"""The titles of a help's sections, in their order: the command's own options first, those of experts last."""


_REMARKS: Final = {"Entity": "TYPE is one of user, client-id, ip", "Clients": "instead of one entity"}
"""What stands below the title of a section."""


class Option(NamedTuple):
    """The declaration of one option, or of an argument where it has no names."""

    names: tuple[str, ...]
    section: str
    keywords: Mapping[str, Any]
    """For argparse, where the type of the field is not enough."""
    exclusive: bool
    """Whether it excludes the other exclusive options of its section."""


class OptionGroup(NamedTuple):
    """Options that several commands share, as one field."""

    kind: type
    help: Mapping[str, str]
    """Another help text of a field."""


class AddedGroups(NamedTuple):
    """Options that features add to a command, as one field."""

    name: str
    """Of the list in the ``__init__.py`` of a feature."""

    @property
    def kinds(self) -> Iterator[type]:
        """The dataclass of each feature."""
        return map(load, added(self.name))


def option(*names: str, help: str, section: str = "Options", exclusive: bool = False, **keywords: Any) -> Any:
    """The declaration of an option, as the default of a field of its type: a ``bool`` is a flag, a tuple can be repeated."""
    return Option(names, section, {"help": help, **keywords}, exclusive)


def argument(metavar: str, *, help: str, **keywords: Any) -> Any:
    """The declaration of an argument without a name."""
    return Option((), "Arguments", {"help": help, "metavar": metavar, **keywords}, exclusive=False)


def group(kind: type, **help: str) -> Any:
    """The declarations of another dataclass, with other help texts by field where the command means something more special."""
    return OptionGroup(kind, help)


def added_groups(kind: str) -> Any:
    """The declarations that features list as ``kind``: a tuple of those that have another value than a default.

    An option among them that is a flag needs ``default=False``.
    """
    return AddedGroups(kind)


def add_options(parser: argparse.ArgumentParser, kind: type) -> None:
    """Let a parser take the options of a dataclass."""
    exclusive: dict[str, Any] = {}
    for field, declared in _options(kind, {}):
        section = section_of(parser, declared.section)
        place = exclusive.setdefault(declared.section, section.add_mutually_exclusive_group()) if declared.exclusive else section
        keywords = _keywords(field, declared)
        if declared.names:
            place.add_argument(*declared.names, dest=field.name, **keywords)
        else:
            parser.add_argument(field.name, **keywords)


def add_common_options(parser: argparse.ArgumentParser, *, before_command: bool = False) -> None:
    """Let a parser take what every command takes. They count before the command, too."""
    section = section_of(parser, COMMON)
    colour, quiet, form = ("auto", False, "text") if before_command else (argparse.SUPPRESS,) * 3
    words: Any = {"choices": ("auto", "always", "never"), "metavar": "WHEN", "default": colour}
    forms: Any = {"choices": ("text", "json"), "metavar": "FORM", "default": form}
    section.add_argument("--color", **words, help="use colour: auto, always or never [default: auto]")
    section.add_argument("-q", "--quiet", action="store_true", default=quiet, help="print no progress and no notes on stderr")
    section.add_argument("--log-format", **forms, help="log as text, or as json: one object a line [default: text]")
    section.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        dest="verbose_before" if before_command else "verbose",
        help="log each step on stderr, and with -vv also libraries and tracebacks",
    )
    section.add_argument("-h", action=_ShortHelp, nargs=0, dest=argparse.SUPPRESS, help="print the first screen of the help")
    section.add_argument("--help", action="help", help="print all of the help")


class _ShortHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        getattr(parser, "print_short_help", parser.print_help)()
        parser.exit()


def read(kind: type[T], parsed: argparse.Namespace) -> T:
    """An instance of the dataclass from what argparse parsed; lists become tuples."""
    values: dict[str, Any] = {}
    for field in kind.__dataclass_fields__.values():  # type: ignore[attr-defined]  # every caller passes a dataclass
        if isinstance(field.default, OptionGroup):
            values[field.name] = read(field.default.kind, parsed)
        elif isinstance(field.default, AddedGroups):
            values[field.name] = tuple(
                read(each, parsed)
                for each in field.default.kinds
                if any(getattr(parsed, own.name) not in (made.keywords.get("default"), []) for own, made in _options(each, {}))
            )
        else:
            value = getattr(parsed, field.name)
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def section_of(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """The section of a command's help with this title, one of ``SECTIONS``; made when it is not there yet."""
    for known in parser._action_groups:
        if known.title == title:
            return known
    return parser.add_argument_group(title, _REMARKS.get(title))


def _options(kind: type, texts: Mapping[str, str]) -> Iterator[tuple[Field[Any], Option]]:
    for field in kind.__dataclass_fields__.values():  # type: ignore[attr-defined]  # every caller passes a dataclass
        declared = field.default
        if isinstance(declared, OptionGroup):
            yield from _options(declared.kind, declared.help)
        elif isinstance(declared, AddedGroups):
            for each in declared.kinds:
                yield from _options(each, {})
        elif isinstance(declared, Option):
            text = texts.get(field.name)
            yield field, declared if text is None else declared._replace(keywords={**declared.keywords, "help": text})


def _keywords(field: Field[Any], declared: Option) -> dict[str, Any]:
    """Argparse's keywords: those of the declaration, and those that follow from the type of the field."""
    keywords = dict(declared.keywords)
    kind = str(field.type).removesuffix(" | None")
    if kind.startswith("tuple["):
        kind = kind.removeprefix("tuple[").partition(",")[0]
        if declared.names and "nargs" not in keywords:
            keywords |= {"action": "append", "default": []}
    if kind == "bool":
        return keywords | {"action": "store_true"}
    if kind == "Path":
        from pathlib import Path

        return {"type": Path, **keywords}
    return {"type": _TYPES[kind], **keywords} if kind in _TYPES else keywords
