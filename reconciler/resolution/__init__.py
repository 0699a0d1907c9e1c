"""Which quota wins for a client, and which bucket it shares: the eight levels of Kafka's default quota callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.resolution.address_limits import AddressLimits
    from reconciler.resolution.addresses import ADDRESS_KEY, AddressTable, canonical_address
    from reconciler.resolution.answers import Answers, Doubts, KeyAnswer, Resolution, Wanted
    from reconciler.resolution.asked import asked_client
    from reconciler.resolution.callback_limits import BrokerLimits, MakeCallback
    from reconciler.resolution.compared import Compared, compare, compare_known
    from reconciler.resolution.describe_filter import UNSUPPORTED_VERSION, answer, filter_refusal, is_exact, nearest_filter
    from reconciler.resolution.ladder import Rung, RungStatus
    from reconciler.resolution.levels import CLIENT_LEVELS, USER_LEVELS, Bucket, Candidate, QuotaTable, Resolved, Resolver
    from reconciler.resolution.overriding import DeclaredLimits
    from reconciler.resolution.plan_effects import effects_between, unclear_effects
    from reconciler.resolution.quota_callback import METHODS, QuotaCallback
    from reconciler.resolution.sharing import SharedWith, Tags, tags_of, tags_of_address
    from reconciler.resolution.views import QuotaView, ViewComparison, ViewKind

__all__ = [
    "ADDRESS_KEY",
    "CLIENT_LEVELS",
    "METHODS",
    "UNSUPPORTED_VERSION",
    "USER_LEVELS",
    "AddressLimits",
    "AddressTable",
    "Answers",
    "BrokerLimits",
    "Bucket",
    "Candidate",
    "Compared",
    "DeclaredLimits",
    "Doubts",
    "KeyAnswer",
    "MakeCallback",
    "QuotaCallback",
    "QuotaTable",
    "QuotaView",
    "Resolution",
    "Resolved",
    "Resolver",
    "Rung",
    "RungStatus",
    "SharedWith",
    "Tags",
    "ViewComparison",
    "ViewKind",
    "Wanted",
    "answer",
    "asked_client",
    "canonical_address",
    "compare",
    "compare_known",
    "effects_between",
    "filter_refusal",
    "is_exact",
    "nearest_filter",
    "tags_of",
    "tags_of_address",
    "unclear_effects",
]

__getattr__ = lazy_face(__name__)
