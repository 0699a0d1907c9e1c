"""Kafka's own rules about quotas, without a broker: which quota applies, who shares it, what a broker refuses and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.resolution.broker_rules import (
        BROKER_SETTINGS,
        CONTROLLER_WINDOW_NUM,
        CONTROLLER_WINDOW_SECONDS,
        INVALID_REQUEST,
        UNSUPPORTED_VERSION,
        WINDOW_NUM,
        WINDOW_SECONDS,
        answer,
        entity_refusal,
        filter_refusal,
        is_alterable,
        is_exact,
        nearest_filter,
        needs_broker,
        refusal,
        unsendable,
    )
    from reconciler.resolution.effective_quotas import Caveats, EffectiveQuotas, KeyAnswer, Resolution, Rung, RungStatus
    from reconciler.resolution.effects import effects_between, unclear_effects
    from reconciler.resolution.kafka_names import (
        LONGEST_STRING,
        client_of,
        literal_address,
        quote_client_id,
        sanitize_name,
        unsanitize_name,
    )
    from reconciler.resolution.precedence import (
        ADDRESS_PRECEDENCE,
        CLIENT_LEVELS,
        CLIENT_PRECEDENCE,
        DEFAULT_ENTITIES,
        USER_LEVELS,
        GroupedBy,
        LevelName,
        NameMatch,
        PrecedenceLevel,
        level_of,
        level_of_names,
        named_or_other,
        overlap,
        strength,
        weaker_levels,
    )
    from reconciler.resolution.reserved_users import (
        GROUP_CALLBACK,
        LONGEST_PREFIX,
        GroupedQuotas,
        GroupLimit,
        GroupMember,
        MemberKind,
        ProportionalTotal,
        callback_notes,
        is_reserved,
        reserved_entity,
        stored_rule,
    )
    from reconciler.resolution.resolver import (
        ADDRESS_KEY,
        AddressLimits,
        AddressTable,
        BrokerLimits,
        Candidate,
        LimitLookup,
        QuotaTable,
        Resolved,
        Resolver,
        canonical_address,
    )
    from reconciler.resolution.sharing import TagGroups, Tags, tags_of
    from reconciler.resolution.views import QuotaView, ViewKind

__getattr__ = lazy_face(__name__)
