"""Which values an entity refuses to be."""

from __future__ import annotations

import pytest

from reconciler.model.entity import DEFAULT, Entity, EntityName


@pytest.mark.parametrize(
    "parts",
    [
        (("client-id", "c"), ("user", "u")),
        (("user", "u"), ("user", "u")),
        (("ip", "10.0.0.1"), ("client-id", "c")),
        (("zone", "z"), ("user", "u")),
        (("zone", "z"), ("rack", "r")),
        (("user", "u"), ("client-id", "c"), ("client-id", DEFAULT)),
    ],
)
def test_an_entity_with_types_out_of_canonical_order_is_refused(parts: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(ValueError, match="canonical order"):
        Entity(parts=parts)


def test_an_entity_is_sorted_whatever_the_order_of_its_names() -> None:
    names: dict[str, EntityName] = {"zone": "z", "client-id": "c", "rack": "r", "user": DEFAULT}
    entity = Entity.of(names)
    assert entity.types == ("user", "client-id", "rack", "zone")
    assert entity == Entity.of(dict(reversed(names.items())))
