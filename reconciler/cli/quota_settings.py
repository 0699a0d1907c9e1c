"""``--set ENTITY:KEY=VALUE``: single quotas on the command line, in place of or on top of those of manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from reconciler.cli.declaration import option
from reconciler.cli.entity_options import entity_in_text
from reconciler.errors import UsageError
from reconciler.text import shown

if TYPE_CHECKING:
    from reconciler.model import Entity

SET: Final = "--set"
_FORM: Final = "ENTITY:KEY=VALUE, such as user=alice:producer_byte_rate=5MiB"


SETTINGS: Final = option(
    SET,
    section="Changes",
    metavar="ENTITY:KEY=VALUE",
    help="judge this quota, on top of those of PATH (repeatable). ENTITY is TYPE=NAME,... as in --names, and a TYPE alone is its "
    "default, such as user=alice,client-id:producer_byte_rate=5MiB. In a name, write \\, for a comma. Without PATH, it changes "
    "the quotas of --current or --bootstrap-server",
)


def parse_settings(texts: Sequence[str]) -> dict[Entity, Mapping[str, float]]:
    """The values by entity and key. Raises ``UsageError`` for another form, a bad entity, key or value, and one set twice."""
    from reconciler.workflows import make_alter_request

    values: dict[Entity, dict[str, str]] = {}
    for text in texts:
        entity, key, value = _setting(text)
        quotas = values.setdefault(entity, {})
        if key in quotas:
            raise UsageError(f"{SET} sets {shown(key)} of {entity} twice. Keep one of the two")
        quotas[key] = value
    settings = {}
    for entity, quotas in values.items():
        try:
            settings[entity] = make_alter_request(entity, add=quotas).add
        except UsageError as error:
            raise UsageError(f"{SET} of {entity}: {error}") from None
    return settings


def _setting(text: str) -> tuple[Entity, str, str]:
    # Neither a key nor a value has a colon, and a name may.
    place, colon, setting = text.rpartition(":")
    key, equals, value = setting.partition("=")
    if not colon or not equals:
        raise UsageError(f"{SET} takes {_FORM}, not {shown(text)}")
    return entity_in_text(SET, place), key, value
