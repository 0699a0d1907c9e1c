"""Connection limits by address: explicit, else the default address, else off. Users and client ids play no part.

A broker keeps the limits by address and not by text: of two spellings of one address the one that was applied last is in
effect, and a host name is whatever address each broker found for it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import DEFAULT, BucketName, Entity, EntityType, QuotaKey, same_value
from reconciler.resolution.kafka_names import address_of
from reconciler.resolution.precedence import ADDRESS_PRECEDENCE, NameMatch
from reconciler.resolution.resolver import Candidate, QuotaTable, Resolved

ADDRESS_KEY: Final = QuotaKey.CONNECTION_CREATION_RATE.value


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressAnswer:
    """The quotas about an address, the winner first; ``unclear``: spellings of it that disagree, of which one is in effect."""

    candidates: tuple[Candidate, ...] = ()
    unclear: tuple[Candidate, ...] = ()


class AddressTable:
    """All connection limits of a state, by the addresses that they are about."""

    def __init__(self, quotas: QuotaTable) -> None:
        self._by_name: dict[object, Candidate] = {}
        self._by_address: dict[bytes, list[Candidate]] = {}
        for entity, values in quotas.items():
            (entity_type, name), *others = entity.parts
            value = values.get(ADDRESS_KEY)
            if entity_type != EntityType.IP or others or value is None:
                continue
            level = 1 + ADDRESS_PRECEDENCE.index(NameMatch.DEFAULT if name is DEFAULT else NameMatch.NAME)
            candidate = self._by_name[name] = Candidate(entity=entity, value=value, level=level)
            address = address_of(name) if isinstance(name, str) else None
            if address is not None:
                self._by_address.setdefault(address, []).append(candidate)

    @property
    def host_names(self) -> tuple[Entity, ...]:
        """Limits of host names: which address they are about only the brokers know."""
        explicit = (c.entity for name, c in self._by_name.items() if isinstance(name, str) and address_of(name) is None)
        return tuple(sorted(explicit, key=lambda entity: entity.sort_key))

    def winner(self, name: object) -> Candidate | None:
        """What applies to an address or host name (anything else: for any that no quota names); ``None``: off, or unclear."""
        answer = self.resolve(name)
        return answer.candidates[0] if answer.candidates and not answer.unclear else None

    def resolve(self, name: object) -> AddressAnswer:
        """The quotas about an address in any spelling, or about a host name in just this one."""
        explicit = self._explicit(name)
        default = self._by_name.get(DEFAULT)
        unclear = tuple(explicit) if _disagree(explicit) else ()
        by_match = {NameMatch.NAME: explicit[0] if explicit else None, NameMatch.DEFAULT: default}
        candidates = (by_match[match] for match in ADDRESS_PRECEDENCE)
        return AddressAnswer(candidates=tuple(c for c in candidates if c is not None), unclear=unclear)

    def _explicit(self, name: object) -> Sequence[Candidate]:
        """The entity as it was asked for comes first, the other spellings of its address in canonical order."""
        if not isinstance(name, str):
            return ()
        asked = self._by_name.get(name)
        address = address_of(name)
        same = self._by_address.get(address, []) if address is not None else []
        others = sorted((other for other in same if other is not asked), key=lambda other: other.entity.sort_key)
        return [c for c in (asked, *others) if c is not None]


def _disagree(candidates: Sequence[Candidate]) -> bool:
    return any(not same_value(candidate.value, candidates[0].value) for candidate in candidates)


def canonical_address(name: str) -> str:
    """One spelling for each address; a name that is not a literal address stays as it is."""
    packed = address_of(name)
    return name if packed is None else ipaddress.ip_address(packed).compressed


def unclear_addresses(tables: Sequence[AddressTable], names: Iterable[str]) -> Mapping[str, str]:
    """By canonical address, why its limit is not known in one of the tables: its spellings have different limits."""
    reasons = {}
    for name in sorted({canonical_address(name) for name in names}):
        spellings = next((unclear for table in tables if (unclear := table.resolve(name).unclear)), ())
        if spellings:
            entities = ", ".join(sorted(str(candidate.entity) for candidate in spellings))
            reasons[name] = f"{entities} are one address with different limits. In each broker the one applied last decides"
    return reasons


class AddressLimits:
    """The connection limits of addresses, resolved like those of clients: a quota group, and its limit.

    A broker counts connections by address: its own limit, else that of the default address, one bucket for each address.

    Where two spellings of an address have different limits, the last one applied is in effect. That is not known, so the lower
    one is taken. What is set for a host name is about no address that is known here.
    """

    def __init__(self, quotas: QuotaTable) -> None:
        self._table = AddressTable(quotas)

    def resolve(self, address: str, /) -> Resolved:
        """The bucket and limit of an address, in any spelling."""
        answer = self._table.resolve(address)
        bucket = BucketName(user="", client_id="", other=((EntityType.IP.value, canonical_address(address)),))
        if answer.unclear:
            lower, *others = sorted(answer.unclear, key=lambda match: match.value)
            return Resolved(bucket=bucket, winner=lower, overridden=tuple(others))
        return Resolved(
            bucket=bucket, winner=answer.candidates[0] if answer.candidates else None, overridden=answer.candidates[1:]
        )
