"""From desired and current state to an ordered plan with a digest; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.planning.broker_changes import (
        BrokerChange,
        moved_leaders,
        same_brokers,
        with_broker_count,
        with_leaders,
        without_brokers,
    )
    from reconciler.planning.diff import (
        Difference,
        change_of_one,
        difference,
        nothing_to_do_notes,
        quotas_after,
        sort_for_writing,
    )
    from reconciler.planning.drift import compare
    from reconciler.planning.leader_files import parse_leaders
    from reconciler.planning.proposed_values import propose_values
    from reconciler.planning.rebalance import Rebalance, brokers_of_part, keep_leader_parts, keep_parts, rebalances
    from reconciler.planning.saved_plan import is_applied, read_saved_plan, require_current
    from reconciler.planning.undeclared import (
        OverriddenLimit,
        forgotten_entities,
        forgotten_note,
        needs_decision,
        overriding_entities,
        possible_overrides,
        unalterable_entities,
        unalterable_notes,
        undeclared_in_scope,
    )
    from reconciler.planning.way_back import plan_way_back

__getattr__ = lazy_face(__name__)
