r"""Reads what describe prints, by its documented rule alone and without the product's code.

A word is plain, or a JSON string but for ``\UXXXXXXXX``; ``<default>`` outside quotes is the default entity.
"""

from __future__ import annotations

import re

from reconciler.model.entity import DEFAULT, Entity, EntityName

_WORD = re.compile(r'(?P<plain>[A-Za-z0-9_./:%~][A-Za-z0-9_./:%~@+-]*)|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<default><default>)')
_ESCAPE = re.compile(r'\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|(["\\]))')


def read_word(text: str, at: int = 0) -> tuple[EntityName, int]:
    """The word that starts here, and where it ends."""
    match = _WORD.match(text, at)
    assert match, text[at:]
    if match["default"]:
        return DEFAULT, match.end()
    if match["plain"] is not None:
        return match["plain"], match.end()
    return _ESCAPE.sub(lambda found: found[3] or chr(int(found[1] or found[2], 16)), match["quoted"]), match.end()


def read_entity(line: str) -> Entity:
    """The entity of a whole line."""
    assert line.startswith("{"), line
    names: dict[str, EntityName] = {}
    at = 1
    while True:
        entity_type, at = read_word(line, at)
        assert isinstance(entity_type, str), line
        assert line[at] == "=", line
        names[entity_type], at = read_word(line, at + 1)
        if line[at:] == "}":
            return Entity.of(names)
        assert line[at : at + 2] == ", ", line
        at += 2


def read_description(text: str) -> dict[Entity, dict[str, float]]:
    """The entities and quotas of a whole output."""
    found: dict[Entity, dict[str, float]] = {}
    quotas: dict[str, float] = {}
    for line in text.split("\n"):
        if line.startswith("{"):
            entity = read_entity(line)
            assert entity not in found, line
            quotas = found[entity] = {}
        elif line:
            assert line.startswith("  "), line
            key, at = read_word(line, 2)
            assert isinstance(key, str), line
            assert line[at] == "=", line
            quotas[key] = float(line[at + 1 :])
    return found
