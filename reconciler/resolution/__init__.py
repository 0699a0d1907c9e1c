"""Kafka's own rules about quotas, without a broker: which quota applies, who shares it, what a broker refuses and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.resolution.addresses import ADDRESS_KEY, AddressLimits, AddressTable, canonical_address
    from reconciler.resolution.broker_rules import (
        BROKER_SETTINGS,
        CONTROLLER_WINDOW_NUM,
        CONTROLLER_WINDOW_SECONDS,
        INVALID_REQUEST,
        LONGEST_STRING,
        WINDOW_NUM,
        WINDOW_SECONDS,
        entity_refusal,
        is_alterable,
        needs_broker,
        refusal,
        unsendable,
        value_refusal,
    )
    from reconciler.resolution.clients import client_of
    from reconciler.resolution.describe_filter import UNSUPPORTED_VERSION, answer, filter_refusal, is_exact, nearest_filter
    from reconciler.resolution.effective_quotas import (
        Caveats,
        EffectiveQuotas,
        KeyAnswer,
        Resolution,
        ResolveOptions,
        Rung,
        RungStatus,
    )
    from reconciler.resolution.effects import effects_between, unclear_effects
    from reconciler.resolution.group_callback import GROUP_CALLBACK, GroupQuotaCallback, callback_notes, metadata_of
    from reconciler.resolution.group_view import GroupedQuotas
    from reconciler.resolution.kafka_names import (
        IpVerdict,
        address_of,
        host_address,
        ip_verdict,
        mangle,
        quote_client_id,
        sanitize_name,
        unsanitize_name,
    )
    from reconciler.resolution.overriding import DeclaredLimits, OverriddenLimit
    from reconciler.resolution.precedence import (
        ADDRESS_PRECEDENCE,
        CLIENT_LEVELS,
        CLIENT_PRECEDENCE,
        USER_LEVELS,
        GroupedBy,
        NameMatch,
        level_of,
        named_or_other,
        overlap,
        strength,
        weaker_levels,
    )
    from reconciler.resolution.quota_callback import METHODS, BrokerLimits, MakeCallback, QuotaCallback, callback_limits
    from reconciler.resolution.reserved_users import (
        LONGEST_PREFIX,
        GroupLimit,
        GroupMember,
        MemberKind,
        ProportionalTotal,
        is_reserved,
        reserved_entity,
        stored_rule,
    )
    from reconciler.resolution.resolver import (
        EXPOSING_ENTITY,
        EXPOSING_VALUES,
        Candidate,
        Exposure,
        QuotaTable,
        Resolved,
        Resolver,
        exposure,
        overridden_by_default_pair,
    )
    from reconciler.resolution.sharing import SharedWith, Tags, tags_of, tags_of_address
    from reconciler.resolution.tag_groups import TagGroups
    from reconciler.resolution.views import (
        ClientDifference,
        QuotaView,
        ViewComparison,
        ViewKind,
        compare,
        compare_known,
    )

__getattr__ = lazy_face(__name__)
