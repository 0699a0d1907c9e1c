"""Drift as a pull request: one branch and request for each cluster, which adopts the drift or reverts it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.cli.traffic_options import configured_backtest
from reconciler.documents import AuditRecord
from reconciler.errors import GitError, ReconcilerError
from reconciler.features.drift_requests.adoption import PROPOSED, Adoption, adopt
from reconciler.features.drift_requests.request_text import folded, proposal_body, proposal_title
from reconciler.features.insight.value_history import runs_of
from reconciler.features.pull_requests.proposal_branch import ProposalText, proposals_from
from reconciler.model import ClusterIdentity, CurrentState, Drift, EntityDrift, slug_of
from reconciler.ports import QuotaReader, SystemClock
from reconciler.render import backtest_view, plan_view, prose
from reconciler.text import count_of
from reconciler.workflows import GivenBaseline, Intent, make_plan, proposal_of, read_for, repository_around, run_backtest

_REPLAY_TITLE: Final = "What recorded traffic shows: the values of the cluster before, the declared values after a revert"
_AUDIT: Final = "audit.jsonl"
"""The file of the reference that keeps the audit lines of all runs."""


def propose_drift(intent: Intent, drift: Drift, reader: QuotaReader, given: GivenBaseline | None, *, mode: str) -> Iterator[str]:
    """Open, update or close the request. Sentences state what was done. ``mode``: ``adopt`` or ``revert``.

    Raises ``ForgeError``, ``GitError``, ``UsageError`` without a token, ``FileAccessError`` and ``ManifestError``.
    """
    # Merged changes that wait for an apply are not among them.
    entities = tuple(each for each in drift.entities if each.drift in PROPOSED)
    slug = slug_of(drift.cluster.name or "kafka")
    branch = f"kafka-quotas/drift/{slug}"
    with proposals_from(intent.paths[0]) as proposals:
        if (refusal := proposals.refusal()) is not None:
            yield refusal
            return
        if not entities:
            yield from proposals.close(branch, because="The drift is gone")
            return
        adoption = adopt(intent, entities) if mode == "adopt" else Adoption(revisions=(), adopted=entities, left=())
        for each, reason in adoption.left:
            yield f"{each.entity} is not adopted: {reason}."
        if not adoption.adopted:
            yield "Nothing is proposed: every entity needs a change by hand."
            yield from proposals.close(branch, because="Nothing can be proposed")
            return
        reverting = _reverting(intent, reader, given, mode)
        count = len(adoption.adopted)
        text = ProposalText(
            title=proposal_title(drift, mode, count),
            body=proposal_body(drift, reverting, adoption, _runs(intent, drift.cluster), mode=mode, spec=intent.spec),
            message=_message(slug, count_of(count, "entity", "entities"), mode),
            content=_content(entities, mode),
            purpose=f"to {mode} the drift",
            subject="drift",
        )
        yield from proposals.keep(branch, text, adoption.revisions)


def _content(entities: Sequence[EntityDrift], mode: str) -> str:
    """Identifies what is proposed: the same drift again changes no branch."""
    rows = [[str(each.entity), *([key.key, key.desired, key.live] for key in each.keys)] for each in entities]
    return f"{mode} sha256:{hashlib.sha256(json.dumps([mode, rows]).encode()).hexdigest()}"


def _runs(intent: Intent, cluster: ClusterIdentity) -> tuple[AuditRecord, ...]:
    """Read the runs that the audit reference of the cluster has, the latest first."""
    git = repository_around(intent.paths[0])
    ref = f"refs/kafka-quotas/audit/{slug_of(cluster.name or 'kafka')}"
    try:
        kept = git.file(git.commit(ref), _AUDIT) or b""
    except GitError:
        return ()
    return tuple(run for run in reversed(runs_of(io.BytesIO(kept), ref)[0]) if run.is_of(cluster))


def _reverting(intent: Intent, reader: QuotaReader, given: GivenBaseline | None, mode: str) -> tuple[str, ...]:
    """Return a plan of the manifests as they are, with its effects, its guards and its backtest, as Markdown."""
    plan = make_plan(intent, reader, accepted=(), clock=SystemClock(), given=given, show_effects=True)
    title = "What the merge writes" if mode == "revert" else "What a revert would write"
    replayed = () if intent.spec.traffic is None else _replayed(intent, read_for(intent, reader))
    return (*folded(title, plan_view(plan)), *replayed)


def _replayed(intent: Intent, current: CurrentState) -> tuple[str, ...]:
    """Return the backtest of a revert by the traffic of the Cluster manifest, or why there is none."""
    try:
        report = run_backtest(proposal_of(intent, current), configured_backtest(intent.spec, intent.trusted))
    except ReconcilerError as error:
        return (f"**Not checked against traffic:** {prose(str(error), begins_line=False)}", "")
    return tuple(folded(_REPLAY_TITLE, backtest_view(report)))


def _message(slug: str, entities: str, mode: str) -> str:
    if mode == "adopt":
        return f"Adopt quotas of {entities} that {slug} has"
    return f"Apply {slug} again: {entities} changed there\n\nThis commit changes no file. Its merge starts apply."
