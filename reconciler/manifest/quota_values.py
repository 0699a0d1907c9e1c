"""Values of manifests: a number with its unit, a value that is computed for each cluster, a value that expires."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.formats import TEXT, FreeShape, ListShape, Shape, ValueRefusedError, no_limit_advice, parse_value
from reconciler.manifest.reading import Collector
from reconciler.model import (
    CLIENT_KEYS,
    IP_KEYS,
    ClusterTotal,
    DesiredQuota,
    EntityType,
    ExpiringQuota,
    Proportional,
    QuotaKey,
    UnitQuota,
    WrittenQuota,
    flag_part,
    key_part,
)
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

_SIDE: Final = {"$of": {"$ref": "#/$defs/unit"}, "type": ("string", "number", "object")}
_NUMBER: Final = ("string", "number")
_UNIT: Final = FreeShape(
    "A value that expires, or that is computed for each cluster: a total of all brokers.",
    {
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            "value": {
                **_SIDE,
                "description": "The value before until: a number as without until, or a computed value. It needs until.",
                "examples": ["20MiB"],
            },
            "until": {
                "type": "string",
                "description": "When the value expires: a date, which is the start of that day in UTC, or a time with its offset "
                "from UTC.",
                "examples": ["2026-12-01", "2026-12-01T18:00:00+01:00"],
            },
            "then": {
                **_SIDE,
                "description": "The value from until on. Left out: as if this value was not written, so the profile, the entry "
                "below an override, or the next precedence level decides.",
                "examples": ["10MiB"],
            },
            "clusterTotal": {
                "type": _NUMBER,
                "description": "What all brokers together allow, written as the limit itself is. Each broker gets its even part, "
                "rounded down.",
                "examples": ["60MiB"],
            },
            "perBroker": {
                "type": _NUMBER,
                "description": "Beside clusterTotal: the most that each broker allows. The smaller of this and its even part "
                "applies.",
                "examples": ["25MiB"],
            },
            "proportional": {
                "type": _NUMBER,
                "description": "A total that brokers share by the partitions they lead. Brokers without the plugin of groups all "
                "get the largest part.",
                "examples": ["60MiB"],
            },
            "to": {"const": "leaders", "description": "In proportion to the leaders of all topics but Kafka's own."},
            "topics": ListShape(TEXT, "In proportion to the leaders of these topics.", min_items=1, examples=[["orders"]]),
        },
    },
    name="unit",
)
_DIGITS: Final = r"^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_BYTES: Final = r"( ?(B|[KMGT]B|[KMGT]iB)(/s)?)?$"
_SIZES: Final = "on each broker. Units: B KB MB GB TB (1000), KiB MiB GiB TiB (1024). To set no limit, leave the key out."
_VALUES: Final[dict[QuotaKey, tuple[str, str, list[Any]]]] = {
    QuotaKey.PRODUCER_BYTE_RATE: (
        f"Bytes per second that clients may produce, {_SIZES}",
        _BYTES,
        ["10MiB", "500KB", {"clusterTotal": "60MiB"}],
    ),
    QuotaKey.CONSUMER_BYTE_RATE: (
        f"Bytes per second that clients may fetch, {_SIZES}",
        _BYTES,
        ["20MiB", "1GB/s", {"clusterTotal": "60MiB"}],
    ),
    QuotaKey.REQUEST_PERCENTAGE: (
        "Percent of one network or I/O thread, on each broker. 200 is two threads' time, so it may exceed 100.",
        "( ?%)?$",
        [200, "12.5%"],
    ),
    QuotaKey.CONTROLLER_MUTATION_RATE: (
        "Partitions per second created, added or deleted, on the active controller.",
        "$",
        [5, 0.5],
    ),
    QuotaKey.CONNECTION_CREATION_RATE: (
        "New connections per second from this address, on each broker. Only for ip entities. A whole number.",
        "$",
        [50],
    ),
}
"""Of each key: what a value is, the form of its unit, and examples."""


@dataclass(frozen=True)
class QuotasShape(Shape):
    """``quotas``: values by key. Null, where it is allowed, drops a key."""

    nodes: tuple[type[YamlNode], ...] = field(default=(YamlMapping,), kw_only=True)
    about: str
    nullable: bool = False

    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""
        kinds = ("string", "number", "object", *(("null",) if self.nullable else ()))
        values = {
            key.value: {
                "$of": _UNIT,
                "description": about,
                "type": kinds,
                "pattern": _DIGITS + end,
                "exclusiveMinimum": 0,
                "examples": examples,
            }
            for key, (about, end, examples) in _VALUES.items()
        }
        return {"type": "object", "description": self.about, "properties": values, "additionalProperties": False}

    def read(self, node: Any, out: Collector, /) -> dict[QuotaKey, WrittenQuota | None]:
        """The values, and ``None`` for a null."""
        entity = out.entity
        legal = LEGAL[entity is not None and entity.parts[0][0] == _IP]
        quotas: dict[QuotaKey, WrittenQuota | None] = {}
        for name, value in node.items.items():
            key = _KEYS.get(name)
            if key is None or isinstance(value, YamlSequence):
                continue
            if entity is not None and key not in legal:
                words = f"{{quota}} cannot be set for {{entity}}. It takes {', '.join(sorted(legal))}"
                out.add("key-not-for-entity", words, out.key_span(node, name), key=name, quota=key_part(name))
            elif value.data is None:
                if not self.nullable:
                    missing = f"{key} has no value, and null drops a key only in overrides and profiles. {no_limit_advice(key)}"
                    out.add("value-missing", missing, value, key=name)
                quotas[key] = None
            else:
                quota = _quota_value(key, value, out) if isinstance(value, YamlScalar) else _computed_quota(key, value, out)
                if quota is not None:
                    quotas[key] = quota
        return quotas


@dataclass(frozen=True)
class QuotaShape(Shape):
    """One value of a key: a number with its unit."""

    key: QuotaKey
    about: str

    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""
        return {"type": _NUMBER, "description": self.about}

    def read(self, node: Any, out: Collector, /) -> DesiredQuota | None:
        """Return the value, ``None`` when it is null or refused."""
        return None if node.data is None else _quota_value(self.key, node, out)


_new: Final = tuple.__new__  # in half the time, and a cluster has many values
_IP: Final = EntityType.IP.value
_KEYS: Final = {key.value: key for key in QuotaKey}
LEGAL: Final = {False: frozenset(CLIENT_KEYS), True: frozenset(IP_KEYS)}
"""The keys of an entity, by whether it is an ip."""


def _computed_quota(key: QuotaKey, node: YamlMapping, out: Collector) -> UnitQuota | ExpiringQuota | None:
    return _unit_quota(key, node, out) if _EXPIRY.isdisjoint(node.items) else _expiring_quota(key, node, out)


def _quota_value(key: QuotaKey, node: YamlScalar, out: Collector) -> DesiredQuota | None:
    try:
        written = parse_value(key, node.text)
    except ValueRefusedError as refused:
        out.add(refused.id, str(refused), node, key=key.value)
        return None
    return _new(DesiredQuota, (written.number, out.span(node), written.text, None, None))


_EXPIRY: Final = frozenset({"value", "until", "then"})
_EXPIRY_EXAMPLE: Final = "{value: 20MiB, until: 2026-12-01, then: 10MiB}"


def _expiring_quota(key: QuotaKey, node: YamlMapping, out: Collector) -> ExpiringQuota | None:
    written = node.items.keys()
    if not written <= _EXPIRY or not written >= {"value", "until"}:
        words = "write a value that expires as {example}, where {then} may be left out"
        out.add("invalid-expiry", words, node, key=key.value, example=flag_part(_EXPIRY_EXAMPLE), then=flag_part("then"))
        return None
    until = _until(key, node.items["until"], out)
    value, then = (_side(key, node.items.get(field), out) for field in ("value", "then"))
    if until is None or value is None or (then is None and "then" in written):
        return None
    return ExpiringQuota(value=value, until=until, then=then, source=out.span(node))


def _side(key: QuotaKey, node: YamlNode | None, out: Collector) -> DesiredQuota | UnitQuota | None:
    """``value`` or ``then``: a number or a computed value, not another value that expires."""
    if node is None:
        return None
    nested = isinstance(node, YamlMapping) and not _EXPIRY.isdisjoint(node.items)
    if nested or node.data is None:
        words = (
            "{value} and {then} of an expiring value are written as without {until}. To fall back to no value, leave out {then}"
        )
        out.add(
            "invalid-expiry",
            words,
            node,
            key=key.value,
            value=flag_part("value"),
            then=flag_part("then"),
            until=flag_part("until"),
        )
        return None
    if isinstance(node, YamlScalar):
        return _quota_value(key, node, out)
    return _unit_quota(key, node, out) if isinstance(node, YamlMapping) else None


def _until(key: QuotaKey, node: YamlNode, out: Collector) -> datetime.datetime | None:
    """A date is the start of that day in UTC."""
    if not isinstance(node, YamlScalar) or node.data is None:
        return None
    written = node.text
    moment = parse_moment(f"{written}T00:00:00+00:00" if _DATE.fullmatch(written) else written)
    if moment is None:
        words = (
            "{written} is not a date or a time with its offset from UTC. Write {date}, which is the start of that day in UTC, "
            "or {time}"
        )
        date, time = flag_part("2026-12-01"), flag_part("2026-12-01T18:00+01:00")
        out.add("invalid-expiry", words, node, key=key.value, written=written, date=date, time=time)
    return moment


_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_moment(written: str) -> datetime.datetime | None:
    """A time with its offset, in UTC. ``None`` for anything else, and without an offset."""
    try:
        moment = datetime.datetime.fromisoformat(written)
        return moment.astimezone(datetime.UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


_UNIT_FIELDS: Final = {"clusterTotal": {"clusterTotal", "perBroker"}, "proportional": {"proportional", "to", "topics"}}
_UNIT_EXAMPLES: Final = {
    "total": "{clusterTotal: 60MiB}",
    "both": "{clusterTotal: 60MiB, perBroker: 25MiB}",
    "proportional": "{proportional: 60MiB, to: leaders}",
    "topics": "{proportional: 60MiB, topics: [orders]}",
}
_NO_TOTAL: Final = {
    QuotaKey.REQUEST_PERCENTAGE: "a percentage is of one thread of a broker. Write the percentage for each broker",
    QuotaKey.CONTROLLER_MUTATION_RATE: "only the active controller counts mutations, so its value is the total. Write the number",
}


def _unit_quota(key: QuotaKey, node: YamlMapping, out: Collector) -> UnitQuota | None:
    """A total, in even parts or in proportion to the leaders of all topics (``to: leaders``) or of some (``topics: [...]``)."""
    fields = node.items.keys()
    name = next((name for name, allowed in _UNIT_FIELDS.items() if name in fields and fields <= allowed), "")
    if not name:
        words = "write {total} or {proportional}"
        if fields == {"perBroker"}:
            words = "write {both}. To limit each broker without a total, write the number alone"
        if fields and fields <= set().union(*_UNIT_FIELDS.values()):
            _refuse_unit(words, node, key, out)
        return None
    total = node.items[name]
    if not isinstance(total, YamlScalar) or total.data is None:
        return None
    if key in _NO_TOTAL:
        words = f"{{quota}} takes no {{total}}: {_NO_TOTAL[key]}"
        out.add("unit-not-for-key", words, node, key=key.value, quota=key_part(key.value), total=flag_part("clusterTotal"))
        return None
    unit = _proportional(key, node, total, out) if name == "proportional" else _even_total(key, node, total, out)
    written = ", ".join(f"{name}: {value.text}" for name, value in node.items.items() if isinstance(value, YamlScalar))
    return None if unit is None else UnitQuota(unit=unit, source=out.span(node), text=written)


def _refuse_unit(words: str, node: YamlMapping, key: QuotaKey, out: Collector) -> None:
    out.add("invalid-unit", words, node, key=key.value, **{name: flag_part(text) for name, text in _UNIT_EXAMPLES.items()})


def _proportional(key: QuotaKey, node: YamlMapping, total: YamlScalar, out: Collector) -> Proportional | None:
    listed = node.items.get("topics")
    names = [item.text for item in listed.items if isinstance(item, YamlScalar)] if isinstance(listed, YamlSequence) else []
    if (listed is None) == ("to" not in node.items) or (listed is not None and not names):
        _refuse_unit("write {proportional} or {topics}", node, key, out)
        return None
    value = _quota_value(key, total, out)
    return None if value is None else Proportional(value=value.value, topics=tuple(dict.fromkeys(names)) or None)


def _even_total(key: QuotaKey, node: YamlMapping, written: YamlScalar, out: Collector) -> ClusterTotal | None:
    total, most = _quota_value(key, written, out), node.items.get("perBroker")
    if total is None or most is None:
        return None if total is None else ClusterTotal(value=total.value)
    each = _quota_value(key, most, out) if isinstance(most, YamlScalar) and most.data is not None else None
    if each is None:
        return None
    if each.value >= total.value:
        words = "{each} on each broker is not below {total} in total, so it would never apply. Write less, or leave out {field}"
        out.add("invalid-unit", words, most, key=key.value, each=each.text, total=total.text, field=flag_part("perBroker"))
        return None
    return ClusterTotal(value=total.value, per_broker=each.value)
