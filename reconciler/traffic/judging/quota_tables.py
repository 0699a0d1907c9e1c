"""Two sets of quotas as brokers resolve them: by the eight levels, or by a quota callback in their place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.model import CLIENT_KEYS
from reconciler.resolution import ADDRESS_KEY, AddressLimits, BrokerLimits, MakeCallback, QuotaTable, Resolver, callback_limits
from reconciler.traffic.judging.grouping import Grouping, LimitLookup

KeyTables: TypeAlias = Mapping[str, LimitLookup | BrokerLimits]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRule:
    """How the brokers find a client's quota."""

    callback: MakeCallback | None = None
    """``None``: Kafka's own eight levels."""
    callback_name: str = ""
    remembers_kinds: bool | None = None
    """Whether brokers keep in mind which kinds of quota they ever had, as those before 4.2 do; ``None``: not known."""

    def assumptions(self, grouping: Grouping) -> Iterator[str]:
        """What has to be said of it."""
        if self.callback is not None:
            yield (
                f"who shares which limit is what the class {self.callback_name} says of these quotas; what the brokers' own "
                "client.quota.callback.class does was not asked, nor was the class told which broker leads which partition"
            )
            return
        yield "the quota callback is Kafka's own"
        if self.remembers_kinds is not False and any(one.after.value is None for one in grouping.targets):
            who = "the version of the brokers is not known; those before 4.2" if self.remembers_kinds is None else "these brokers"
            yield (
                f"{who} remember kinds of quotas that were removed since they started, which no snapshot shows: clients without "
                "a limit may be in other buckets than here; no limit depends on it"
            )


def quota_tables(
    current: QuotaTable | None, proposed: QuotaTable, rule: BrokerRule, brokers: Collection[int]
) -> tuple[KeyTables | None, KeyTables]:
    """Before (``None``: not known) and after, by quota key. Raises ``QuotaCallbackError`` as the callback does."""
    if rule.callback is not None:
        before = None if current is None else _by_callback(current, rule.callback, brokers)
        return before, _by_callback(proposed, rule.callback, brokers)
    after = Resolver.by_key(proposed, CLIENT_KEYS)
    if current is None:
        return None, {**after, ADDRESS_KEY: AddressLimits(proposed)}
    earlier = Resolver.by_key(current, CLIENT_KEYS)
    if rule.remembers_kinds:
        after = {key: table.remembering(earlier[key]) for key, table in after.items()}
    return {**earlier, ADDRESS_KEY: AddressLimits(current)}, {**after, ADDRESS_KEY: AddressLimits(proposed)}


def _by_callback(quotas: QuotaTable, make: MakeCallback, brokers: Collection[int]) -> KeyTables:
    return {**callback_limits(make, quotas, dict.fromkeys(brokers)), ADDRESS_KEY: AddressLimits(quotas)}
