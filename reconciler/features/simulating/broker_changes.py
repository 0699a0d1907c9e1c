"""The brokers that are left when some are lost, and the share of a lost broker's traffic that each of them then gets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.errors import UsageError
from reconciler.text import list_some

_SHOWN: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChange:
    """``shares``: by lost broker, who gets which share of its traffic. ``title``: words such as ``without broker 3``."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    shares: Mapping[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    title: str = ""
    assumptions: tuple[str, ...] = ()


def without_brokers(brokers: Collection[int], lost: Collection[int]) -> BrokerChange:
    """Move the traffic of lost brokers to the others in equal parts. Raises ``UsageError``."""
    before = tuple(sorted(brokers))
    if not lost:
        return BrokerChange(before=before, after=before)
    unknown = sorted(set(lost) - set(before))
    if unknown:
        names = ", ".join(map(str, before[:_SHOWN]))
        raise UsageError(f"--without-broker {unknown[0]}: the history has no such broker. Its brokers are {names}")
    after = tuple(broker for broker in before if broker not in lost)
    if not after:
        raise UsageError("--without-broker names every broker of the history. Leave one")
    gone, rest = sorted(lost), f"{_named(after)}"
    part = f"{100 / len(after):.3g} % each" if len(after) > 1 else "all of it"
    return BrokerChange(
        before=before,
        after=after,
        shares={broker: tuple((target, 1 / len(after)) for target in after) for broker in gone},
        title=f"without {_named(gone)}",
        assumptions=(
            f"each client's traffic of {_named(gone)} moves to {rest} in equal parts, {part}, second by second",
            "the history has no topics, so it is not known which leaders move where. A broker that gets more leaders gets more",
            "clients send what they sent, at the same times. What they send anew after the loss is not simulated",
        ),
    )


def _named(brokers: Sequence[int]) -> str:
    names = [str(broker) for broker in brokers]
    if len(names) == 1:
        return f"broker {names[0]}"
    if len(names) > _SHOWN:
        return f"brokers {list_some(names, _SHOWN)}"
    return f"brokers {', '.join(names[:-1])} and {names[-1]}"
