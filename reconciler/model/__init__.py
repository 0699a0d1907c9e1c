"""The domain as values: frozen, standard library only, no input or output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.model.backtest import (
        HISTORY_INCOMPLETE,
        NOT_RECORDED,
        BacktestReport,
        CapacityUse,
        Coverage,
        DeclaredQuotas,
        ExpectedBrokers,
        FailedBucket,
        FileRevision,
        Fit,
        GroupCounts,
        NotJudged,
        ProposedValue,
        Provenance,
        QuotaFit,
        RuleOutcome,
        UnjudgedChange,
        UnreadableLines,
        UnusedQuota,
        UnusedReason,
        UnwrittenValue,
        ValueProposals,
    )
    from reconciler.model.bounds import AtLeast, Count, Digest, Spelled
    from reconciler.model.catalogue import catalogue_tables, example_of, manifest_rules, rules
    from reconciler.model.certificate import Certificate, CertificateOwner
    from reconciler.model.cluster import (
        DEFAULT_DAYS,
        WEEKDAYS,
        Acceptance,
        BacktestPolicy,
        CallbackClass,
        ClusterSpec,
        Connection,
        CountLimit,
        DeclaredBrokers,
        FailRule,
        FreezeWindow,
        GuardLimits,
        HistoryNeeds,
        Isolation,
        KnownOwner,
        LabelMatcher,
        MetricServer,
        Once,
        OwnerChoice,
        Prune,
        RebalancePolicy,
        Recurrence,
        ReductionLimit,
        SafetyRules,
        Scope,
        StrimziOperators,
        VolumeLimit,
        Webhook,
        Weekly,
        WindowKind,
    )
    from reconciler.model.cluster_outcome import ChangedCluster, ClusterChange, ClusterFailure, slug_of
    from reconciler.model.drift import Baseline, BaselineKind, BaselineOrigin, Drift, DriftClass, EntityDrift, KeyDrift
    from reconciler.model.effect import (
        OTHER,
        ClientName,
        Direction,
        Effect,
        EffectGroup,
        Known,
        KnownAddress,
        KnownClient,
        Limit,
        LimitRange,
        PlanEffects,
    )
    from reconciler.model.entity import (
        DEFAULT,
        Entity,
        EntityName,
        EntityType,
        ForeignText,
        display_name,
        escaped,
        in_canonical_order,
    )
    from reconciler.model.expiry import ValueExpiry
    from reconciler.model.finding import (
        Example,
        Explanation,
        Finding,
        Related,
        Rule,
        Severity,
        Span,
        Topic,
        in_order,
    )
    from reconciler.model.frame_schema import (
        RECOMMENDATIONS_SCHEMA,
        SECONDS_SCHEMA,
        TRAFFIC_SCHEMA,
        VERDICTS_SCHEMA,
        FrameColumn,
        FrameSchema,
    )
    from reconciler.model.message import (
        Filling,
        Message,
        MessagePart,
        PartKind,
        compose,
        flag_part,
        join_messages,
        key_part,
        name_part,
        parts_of,
    )
    from reconciler.model.metric_samples import JudgedQuotas, MetricSamples, MetricSemantics, Observations
    from reconciler.model.plan import (
        MAY_OVERRIDE_DECLARED,
        MOST_EXCEPTED,
        NO_LONGER_DECLARED,
        OVERRIDES_DECLARED,
        UNALTERABLE,
        Action,
        Alteration,
        AlterationResult,
        AppliedState,
        ApplyReport,
        ApplyResult,
        Change,
        ChangeOutcome,
        ChangeStatus,
        GuardResult,
        GuardStatus,
        KeptEntity,
        KeyChange,
        ManifestCommit,
        Plan,
        Reason,
        Summary,
        WithheldOwner,
        WithheldReason,
    )
    from reconciler.model.policy_rule import (
        POLICY_PREFIX,
        PlanPolicy,
        PolicyExpression,
        PolicySeverity,
        PolicySubject,
    )
    from reconciler.model.quota import CLIENT_KEYS, INT_MAX, KNOWN_KEYS, LONG_MAX, QuotaKey, ValueType, legal_keys
    from reconciler.model.selector import MAX_REGEXES, MatchKind, PatternError, Selector, TypeMatch, any_matches, compile_regex
    from reconciler.model.simulation import (
        BrokerLoad,
        BrokerShare,
        RecordedBrokers,
        SimulatedLimit,
        Simulation,
        Standings,
        StandingVerdict,
        TrafficSpread,
    )
    from reconciler.model.state import (
        NOT_ASKED,
        ClusterIdentity,
        CurrentState,
        DeclaredExpiry,
        DesiredEntity,
        DesiredQuota,
        DesiredState,
        ExpiringQuota,
        Observed,
        ObservedFrom,
        ProfileChoice,
        QuotaProfile,
        Quotas,
        UnreadableNode,
        WrittenQuota,
        same_value,
    )
    from reconciler.model.units import (
        BrokerFacts,
        BudgetShare,
        ClusterTotal,
        GroupPart,
        LeaderSpread,
        Proportional,
        QuotaUnit,
        Shares,
        UnitQuota,
        WrittenUnit,
    )
    from reconciler.model.verdict import (
        CONTROLLER,
        NO_ADVICE,
        Advice,
        BucketName,
        BucketVerdict,
        Form,
        GroupRows,
        Member,
        PeakBound,
        PeakRate,
        RateSeries,
        RecordedGroup,
        ReplayCounts,
        RowLimits,
        RowPlace,
        SecondsOver,
        Verdict,
        broker_words,
        bucket_words,
        group_verdicts,
        peak_of,
        worst_of_buckets,
    )

__getattr__ = lazy_face(__name__)
