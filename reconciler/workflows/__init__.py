"""One module for each task of a user; the only package that combines the layers below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.workflows.alter import (
        AlterRequest,
        AlterTarget,
        alter_entity,
        alter_plan,
        load_target,
        make_alter_request,
        name_warnings,
    )
    from reconciler.workflows.apply import UNASKED, Approval, AuditFile, Dialogue, apply_manifests
    from reconciler.workflows.backtest import (
        BacktestOptions,
        Proposal,
        backtest_request,
        fetch_samples,
        make_proposal,
        open_recorded,
        proposal_of,
        proposal_of_settings,
        run_backtest,
        set_quotas,
    )
    from reconciler.workflows.baselines import GivenBaseline, check_recordable, given_baseline, is_clean, write_baseline
    from reconciler.workflows.callback_leaders import uses_leaders
    from reconciler.workflows.changed_clusters import PLACEHOLDER, find_changed_clusters
    from reconciler.workflows.compact import CompactOptions, CompactResult, compact_traffic
    from reconciler.workflows.compact_document import COMPACT
    from reconciler.workflows.connect import (
        Access,
        check_cluster_id,
        cluster_to_read,
        local_certificates,
        open_cluster,
        principal,
        quota_reader,
        read_state,
        snapshot_reader,
        transport_security,
    )
    from reconciler.workflows.describe import EVERYTHING, describe_cluster
    from reconciler.workflows.drift import find_drift
    from reconciler.workflows.entity_lines import AskedClient, parse_clients, read_clients
    from reconciler.workflows.every_cluster import for_every, load_every_intent, only_changed
    from reconciler.workflows.excerpts import source_lines
    from reconciler.workflows.expiries import expiry_notes, live_expiries
    from reconciler.workflows.explain import explain_id, explanations
    from reconciler.workflows.export import (
        ExportResult,
        Split,
        SplitBy,
        cluster_to_export,
        connection_to_write,
        export_cluster,
        owners_to_split,
        require_free,
        write_files,
    )
    from reconciler.workflows.expose import EXPOSED_KEYS, exposing_request, exposure_notes, require_exposable
    from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
    from reconciler.workflows.git_repository import Git, repository_around, source_of
    from reconciler.workflows.intent import Intent, load_intent, with_lint
    from reconciler.workflows.load import (
        LoadedManifests,
        chosen_cluster,
        desired_for,
        find_repository_root,
        load_manifests,
        stop_on,
    )
    from reconciler.workflows.metrics_server import (
        FetchedSamples,
        PrometheusRequest,
        configured_server,
        is_prometheus,
        prometheus_address,
    )
    from reconciler.workflows.notify import (
        notification_of_drift,
        notification_of_error,
        notification_of_report,
        send_notification,
    )
    from reconciler.workflows.owners import unread_owners
    from reconciler.workflows.plan import Checker, Extras, make_plan
    from reconciler.workflows.propose import ManifestFiles, write_revisions
    from reconciler.workflows.reconcile import Observation, observe, write_observed
    from reconciler.workflows.references import References
    from reconciler.workflows.resolve import (
        MANIFESTS,
        PLANNED,
        Sources,
        Where,
        check_names,
        current_view,
        difference_between,
        has_group_plugin,
        is_unknown,
        notes_about,
        require_client,
        resolve_known,
    )
    from reconciler.workflows.revert import Undoing, load_undoing, revert_report
    from reconciler.workflows.rollout import (
        NOT_BEGUN,
        Rollout,
        RolloutResult,
        Withheld,
        is_failure,
        plan_rollout,
    )
    from reconciler.workflows.server_check import Seeded
    from reconciler.workflows.session_backtest import SessionRequest, backtest_in_session
    from reconciler.workflows.situations import Situation, run_situation
    from reconciler.workflows.stored_rules import stored_rule_notes
    from reconciler.workflows.system_clock import SystemClock
    from reconciler.workflows.temporary import TemporaryValues, parse_length, require_unchanged, temporary_values
    from reconciler.workflows.traffic_check import TrafficCheckRequest, check_traffic
    from reconciler.workflows.traffic_inputs import (
        SparkPlace,
        metric_rules,
        names_of,
        read_client_names,
        read_trusted_mapping,
        traffic_by_kind,
    )
    from reconciler.workflows.trusted import TrustedFiles, TrustedTree, read_trusted_files
    from reconciler.workflows.units import divide_totals, read_for, with_leaders
    from reconciler.workflows.validate import Validation, validate_every, validate_loaded, validate_manifests

__getattr__ = lazy_face(__name__)
