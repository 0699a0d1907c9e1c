"""Drift as a pull request: one branch and request for each cluster, which adopts the drift or reverts it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.cli.traffic_options import configured_backtest
from reconciler.documents import AuditRecord
from reconciler.errors import GitError, ReconcilerError
from reconciler.features.drift_requests.adoption import PROPOSED, Adoption, adopt
from reconciler.features.drift_requests.request_text import folded, proposal_body, proposal_title
from reconciler.features.insight.value_history import runs_of
from reconciler.features.pull_requests.proposal_branch import Proposals, ProposalText, proposals_from
from reconciler.model import CurrentState, Drift, EntityDrift, slug_of
from reconciler.ports import QuotaReader, SystemClock
from reconciler.render import backtest_view, plan_view, prose
from reconciler.text import count_of
from reconciler.workflows import GivenBaseline, Intent, make_plan, proposal_of, read_for, repository_around, run_backtest

_REPLAY_TITLE: Final = "What recorded traffic shows: the values of the cluster before, the declared values after a revert"
_AUDIT: Final = "audit.jsonl"
"""The file of the reference that keeps the audit lines of all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftProposal:
    """What is proposed, and the reader of its cluster."""

    intent: Intent
    drift: Drift
    reader: QuotaReader
    given: GivenBaseline | None
    mode: str
    """``adopt`` or ``revert``."""

    @property
    def entities(self) -> tuple[EntityDrift, ...]:
        """Entities that another writer changed. Merged changes that wait for an apply are not among them."""
        return tuple(each for each in self.drift.entities if each.drift in PROPOSED)

    @property
    def branch(self) -> str:
        """The name of the branch."""
        return f"kafka-quotas/drift/{slug_of(self.drift.cluster.name or 'kafka')}"

    def content(self) -> str:
        """Identifies what is proposed: the same drift again changes no branch."""
        rows = [[str(each.entity), *([key.key, key.desired, key.live] for key in each.keys)] for each in self.entities]
        digest = hashlib.sha256(json.dumps([self.mode, rows]).encode()).hexdigest()
        return f"{self.mode} sha256:{digest}"


def propose_drift(intent: Intent, drift: Drift, reader: QuotaReader, given: GivenBaseline | None, *, mode: str) -> Iterator[str]:
    """Open, update or close the request. Sentences state what was done.

    Raises ``ForgeError``, ``GitError``, ``UsageError`` without a token, ``FileAccessError`` and ``ManifestError``.
    """
    proposal = DriftProposal(intent=intent, drift=drift, reader=reader, given=given, mode=mode)
    with proposals_from(intent.paths[0]) as proposals:
        yield from _kept(proposal, proposals)


def _kept(proposal: DriftProposal, proposals: Proposals) -> Iterator[str]:
    if (refusal := proposals.refusal()) is not None:
        yield refusal
        return
    if not proposal.entities:
        yield from proposals.close(proposal.branch, because="The drift is gone")
        return
    adoption = Adoption(revisions=(), adopted=proposal.entities, left=())
    if proposal.mode == "adopt":
        adoption = adopt(proposal.intent, proposal.entities)
    for each, reason in adoption.left:
        yield f"{each.entity} is not adopted: {reason}."
    if not adoption.adopted:
        yield "Nothing is proposed: every entity needs a change by hand."
        yield from proposals.close(proposal.branch, because="Nothing can be proposed")
        return
    text = ProposalText(
        title=proposal_title(proposal.drift, proposal.mode, len(adoption.adopted)),
        body=proposal_body(
            proposal.drift, _reverting(proposal), adoption, _runs(proposal), mode=proposal.mode, spec=proposal.intent.spec
        ),
        message=_message(proposal, adoption),
        content=proposal.content(),
        purpose=f"to {proposal.mode} the drift",
        subject="drift",
    )
    yield from proposals.keep(proposal.branch, text, adoption.revisions)


def _runs(proposal: DriftProposal) -> tuple[AuditRecord, ...]:
    """Read the runs that the audit reference of the cluster has, the latest first."""
    cluster, git = proposal.drift.cluster, repository_around(proposal.intent.paths[0])
    ref = f"refs/kafka-quotas/audit/{slug_of(cluster.name or 'kafka')}"
    try:
        kept = git.file(git.commit(ref), _AUDIT) or b""
    except GitError:
        return ()
    return tuple(run for run in reversed(runs_of(io.BytesIO(kept), ref)[0]) if run.is_of(cluster))


def _reverting(proposal: DriftProposal) -> tuple[str, ...]:
    """Return a plan of the manifests as they are, with its effects, its guards and its backtest, as Markdown."""
    intent, clock = proposal.intent, SystemClock()
    plan = make_plan(intent, proposal.reader, accepted=(), clock=clock, given=proposal.given, show_effects=True)
    title = "What the merge writes" if proposal.mode == "revert" else "What a revert would write"
    replayed = () if intent.spec.traffic is None else _replayed(intent, read_for(intent, proposal.reader))
    return (*folded(title, plan_view(plan)), *replayed)


def _replayed(intent: Intent, current: CurrentState) -> tuple[str, ...]:
    """Return the backtest of a revert by the traffic of the Cluster manifest, or why there is none."""
    try:
        report = run_backtest(proposal_of(intent, current), configured_backtest(intent.spec, intent.trusted))
    except ReconcilerError as error:
        return (f"**Not checked against traffic:** {prose(str(error), begins_line=False)}", "")
    return tuple(folded(_REPLAY_TITLE, backtest_view(report)))


def _message(proposal: DriftProposal, adoption: Adoption) -> str:
    slug, entities = slug_of(proposal.drift.cluster.name or "kafka"), count_of(len(adoption.adopted), "entity", "entities")
    if proposal.mode == "adopt":
        return f"Adopt quotas of {entities} that {slug} has"
    return f"Apply {slug} again: {entities} changed there\n\nThis commit changes no file. Its merge starts apply."
