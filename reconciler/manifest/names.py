"""Entity names as people write them: what Kafka refuses, and what is most likely a mistake. A name itself is never changed."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from reconciler.model import EntityType, compose
from reconciler.text import shown_part

MAX_NAME_BYTES: Final = 32767
"""The protocol's limit for one string, in UTF-8."""

_ORDINARY: Final = re.compile(r"[A-Za-z0-9._-]{1,1000}")
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_TEMPLATE: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\{\{.*?\}\}|\{%.*?%\}|%\([^)]*\)[sd]|<[A-Za-z][A-Za-z0-9_ .-]*>")
_WORD: Final = re.compile(r"[^\W\d_]+")
_LOOK_ALIKE_SCRIPTS: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})


def name_problems(entity_type: str, name: str) -> Iterator[tuple[str, str]]:
    """Pairs of rule id and message for one literal name."""
    if entity_type == EntityType.IP:
        yield from _address_problems(name)
        return
    if _ORDINARY.fullmatch(name):
        return
    if len(name) * 4 > MAX_NAME_BYTES and (size := len(name.encode("utf-8", "surrogatepass"))) > MAX_NAME_BYTES:
        yield "name-too-long", f"this {entity_type} has {size} bytes. Kafka's protocol allows {MAX_NAME_BYTES}"
    if name == "<default>":
        yield (
            "literal-default-name",
            f"this is the literal name '<default>'. For the default {entity_type} write {{default: true}}",
        )
    elif entity_type == EntityType.USER and name.startswith("User:"):
        yield (
            "user-prefix",
            compose(
                "{name}: quotas take the name without its type. Did you mean {bare}?",
                name=shown_part(name),
                bare=shown_part(name[5:]),
            ),
        )
    yield from _oddities(name)


def _oddities(name: str) -> Iterator[tuple[str, str]]:
    """Pairs of rule id and message for what Kafka takes in any name, and is most likely a mistake."""
    if _ENCODED.search(name):
        yield (
            "percent-encoded-name",
            compose("{name} looks percent-encoded. Write the name as the client sends it", name=shown_part(name)),
        )
    if name != name.strip() or not name.isprintable():
        yield (
            "unusual-name",
            compose("{name} has blanks at its ends, control characters or invisible characters", name=shown_part(name)),
        )
    if name != "<default>" and (template := _TEMPLATE.search(name)):
        yield (
            "unrendered-template",
            compose(
                "{template} in {name} is a template that was not filled in. Write the name itself",
                template=shown_part(template[0]),
                name=shown_part(name),
            ),
        )
    if not name.isascii() and (word := _mixed_word(name)):
        yield (
            "mixed-scripts",
            compose(
                "{name} mixes letters of two scripts that look alike: {word}. Type the name again",
                name=shown_part(name),
                word=f"{word!a}",
            ),
        )
    if name.endswith("*"):
        yield "wildcard-name", compose("{name}: names are literal, an asterisk matches nothing but itself", name=shown_part(name))


def _mixed_word(name: str) -> str | None:
    """The first word whose letters are of two scripts with the same shapes."""
    for word_match in _WORD.finditer(name):
        word = word_match[0]
        scripts = {unicodedata.name(char, "").split(" ", 1)[0] for char in word} if not word.isascii() else set()
        if len(scripts & _LOOK_ALIKE_SCRIPTS) > 1:
            return word[:40]
    return None


def _address_problems(name: str) -> Iterator[tuple[str, str]]:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        yield _not_an_address(name)
        return
    canonical = str(getattr(address, "ipv4_mapped", None) or address)
    if canonical != name:
        yield (
            "ip-not-canonical",
            compose(
                "{name} is another spelling of {canonical}, which brokers treat as the same address",
                name=shown_part(name),
                canonical=canonical,
            ),
        )


def _not_an_address(name: str) -> tuple[str, str]:
    if "/" in name:
        return "ip-invalid", compose("{name} is a network. Kafka limits single addresses", name=shown_part(name))
    if _HOST_NAME.fullmatch(name) and len(name) <= 253 and not _all_numeric(name):
        message = compose(
            "{name} is a host name. Each broker resolves it once, for itself. Write the address", name=shown_part(name)
        )
        return "ip-host-name", message
    return "ip-invalid", compose("{name} is not an IPv4 or IPv6 address", name=shown_part(name))


def _all_numeric(name: str) -> bool:
    return not name.strip("0123456789.")
