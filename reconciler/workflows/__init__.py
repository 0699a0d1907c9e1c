"""One module for each task of a user; the only package that combines the layers below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.workflows.alter import (
        AlterRequest,
        alter_entities,
        alter_plan,
        make_alter_request,
        name_warnings,
        plan_of_changes,
        stated_by,
    )
    from reconciler.workflows.apply import (
        UNASKED,
        Approval,
        AuditFile,
        Dialogue,
        apply_manifests,
        in_steps,
        predictions_in,
        refused,
        write,
    )
    from reconciler.workflows.as_before import EarlierFindings, FindingFacts, facts_of, known_entries
    from reconciler.workflows.backtest import (
        BacktestOptions,
        Proposal,
        apply_rules,
        backtest_request,
        callback_notes,
        fetch_samples,
        make_proposal,
        open_recorded,
        proposal_of,
        proposal_of_settings,
        run_backtest,
        set_quotas,
    )
    from reconciler.workflows.connect import (
        Access,
        ClusterTarget,
        check_cluster_id,
        known_principal,
        load_target,
        open_cluster,
        quota_reader,
        read_for,
        read_state,
        snapshot_reader,
        transport_security,
    )
    from reconciler.workflows.describe import EVERYTHING, describe_cluster, stored_rule_notes
    from reconciler.workflows.drift import (
        GivenBaseline,
        check_recordable,
        drift_from,
        find_drift,
        given_baseline,
        is_clean,
        write_baseline,
    )
    from reconciler.workflows.every_cluster import failure_of, find_changed_clusters, for_every, load_every_intent
    from reconciler.workflows.explain import explain_id, explanations, page_names
    from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
    from reconciler.workflows.git_repository import Git, nearest_repository, repository_around, source_of
    from reconciler.workflows.intent import (
        Intent,
        Validation,
        claimed_elsewhere,
        load_intent,
        validate_loaded,
        validate_manifests,
        with_lint,
    )
    from reconciler.workflows.leftovers import find_leftovers
    from reconciler.workflows.load import (
        LoadedManifests,
        References,
        adjusted,
        chosen_cluster,
        desired_for,
        find_repository_root,
        load_manifests,
        stop_on,
    )
    from reconciler.workflows.plan import make_plan, plan_from
    from reconciler.workflows.resolve import (
        Sources,
        Where,
        current_view,
        has_group_plugin,
        is_unknown,
        notes_about,
        require_client,
    )
    from reconciler.workflows.traffic_inputs import (
        FetchedSamples,
        PrometheusRequest,
        configured_server,
        configured_since,
        configured_traffic,
        fetch_from_server,
        is_prometheus,
        prometheus_address,
        read_trusted_mapping,
    )
    from reconciler.workflows.trusted import TrustedTree, read_trusted_files
    from reconciler.workflows.units import divide_totals, uses_leaders, with_leaders

__getattr__ = lazy_face(__name__)
