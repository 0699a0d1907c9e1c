"""Kafka's own ConfigCommand, as a witness of what a broker holds, independent of this tool and of its client library."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from reconciler.features.sandbox.configuration import config_command_class
from reconciler.features.sandbox.java import runtime_for
from reconciler.features.sandbox.spec import Sandbox

RawEntity = frozenset[tuple[str, str | None]]
"""Pairs of entity type and name; ``None`` is the default entity."""

_PLURALS: Final = {"user": "users", "client-id": "clients", "ip": "ips"}
_TYPES: Final = {"user-principal": "user", "client-id": "client-id", "ip": "ip"}
_LINE: Final = re.compile(r"Quota configs for (?P<entity>.*) are (?P<values>.*)", re.DOTALL)
_PART: Final = re.compile(r"(?:the )?(?P<default>default )?(?P<type>user-principal|client-id|ip)(?: '(?P<name>.*?)')?(?:, |$)")
_KINDS: Final = (("users",), ("clients",), ("users", "clients"), ("ips",))


def describe(sandbox: Sandbox, *entity_types: str) -> list[str]:
    """The lines that ``--describe`` prints for all entities of these types (``users``, ``clients``, ``ips``)."""
    options = [part for entity_type in entity_types for part in ("--entity-type", entity_type)]
    return [line for line in _run(sandbox, ["--describe", *options]).splitlines() if line.strip()]


def described(sandbox: Sandbox) -> dict[RawEntity, dict[str, float]]:
    """Everything that it prints, understood; names without quotes and commas only."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        lines = [line for found in pool.map(lambda kinds: describe(sandbox, *kinds), _KINDS) for line in found]
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    return {_entity(match["entity"]): _values(match["values"]) for match in matches}


def alter(sandbox: Sandbox, changes: Mapping[RawEntity, Mapping[str, float]]) -> None:
    """``--alter --add-config``, one process an entity."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda change: _run(sandbox, ["--alter", *_options(*change)]), changes.items()))


def run(sandbox: Sandbox, *options: str) -> str:
    """What it prints with these options, as typed."""
    return _run(sandbox, options)


def _options(entity: RawEntity, values: Mapping[str, float]) -> list[str]:
    options = ["--add-config", ",".join(f"{key}={value:.17g}" for key, value in values.items())]
    for entity_type, name in sorted(entity):
        options += ["--entity-type", _PLURALS[entity_type]]
        options += ["--entity-default"] if name is None else ["--entity-name", name]
    return options


def _entity(text: str) -> RawEntity:
    return frozenset((_TYPES[part["type"]], None if part["default"] else part["name"]) for part in _PART.finditer(text))


def _values(text: str) -> dict[str, float]:
    return {key: float(value) for key, _, value in (pair.partition("=") for pair in text.split(", "))}


def _run(sandbox: Sandbox, options: Sequence[str]) -> str:
    runtime = runtime_for(sandbox.kafka_version)
    command = [str(runtime.java), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *runtime.class_options()]
    command += ["-cp", runtime.class_path, config_command_class(sandbox.kafka_version)]
    command += ["--bootstrap-server", sandbox.bootstrap_servers, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
