"""Pasted command lines of the quota tools of KIP-546 and its draft, which name the operation by an option: what to write here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

_LIST: Final = ("--list", "list")
_OPERATIONS: Final = (*_LIST, "--describe", "--alter")
_WRITES: Final = ("--add", "--delete")
_ONLY_OF_RESOLVE: Final = "--include-overrides"
_CLIENTS: Final = frozenset({"--name", "--names", "--default", "--defaults"})
_OF_KAFKA_CONFIGS: Final = frozenset({"--entity-type", "--entity-name", "--entity-default", "--add-config", "--delete-config"})
_OTHER_NAMES: Final = (
    "Options of kafka-configs have other names here. For --entity-type and --entity-name write --name user=NAME, for "
    "--entity-default write --defaults user, for --add-config write --add, and for --delete-config write --delete"
)


def right_command(words: Sequence[str]) -> str:
    """What to write in place of such a line, which has an operation and no command of this program."""
    operation = next(word for word in words if word in _OPERATIONS)
    rest = [word for word in words if word not in _OPERATIONS]
    options = {word.partition("=")[0] for word in rest}
    if options & _OF_KAFKA_CONFIGS:
        command = "alter" if operation == "--alter" else "describe"
        return f"{operation} is an operation of kafka-configs. Write kafka-quotas {command}. {_OTHER_NAMES}"
    if operation == "--alter" or options & {*_WRITES}:
        return f"{_this(operation)}. To change quotas, write: {_line('alter', rest)}"
    if _ONLY_OF_RESOLVE in options:
        return f"{_this(operation)}. To show the limits of a client, write: {_line('resolve', rest)}"
    listing = f"{_this(operation)}. To print quotas as the cluster has them, write: {_line('describe', rest)}"
    if operation in _LIST or not options & _CLIENTS:
        return listing
    return f"{listing}. To show the limits that apply to a client, write: {_line('resolve', rest)}"


def _this(operation: str) -> str:
    return f"{operation} is an operation of other quota tools (KIP-546)"


def _line(command: str, rest: Sequence[str]) -> str:
    return shlex.join(("kafka-quotas", command, *rest))
