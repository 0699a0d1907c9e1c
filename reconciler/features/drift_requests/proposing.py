"""Drift as a pull request: one branch and request for each cluster, which adopts the drift or reverts it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.drift_requests.adoption import PROPOSED, Adoption, adopt
from reconciler.features.drift_requests.proposal_branch import BranchState, ProposalBranch, require_clean
from reconciler.features.drift_requests.replay import replay_markdown
from reconciler.features.drift_requests.request_text import TRAFFIC_BYTES, proposal_body, proposal_title, revert_markdown
from reconciler.features.pull_requests.forge import Forge
from reconciler.features.pull_requests.posting import forge_here
from reconciler.model import Drift, EntityDrift, escaped, slug_of
from reconciler.ports import QuotaReader, SystemClock
from reconciler.workflows import GivenBaseline, Intent, make_plan, read_for, repository_around

_PATIENCE: Final = 120.0


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
    kind = forge_here(os.environ).forge
    forge = kind.connect(os.environ, None, clock=SystemClock(), patience=_PATIENCE)
    try:
        yield from _kept(proposal, forge)
    finally:
        forge.close()


def _kept(proposal: DriftProposal, forge: Forge) -> Iterator[str]:
    folder = proposal.intent.paths[0]
    git = repository_around(folder)
    require_clean(git, folder)
    base = git.commit("HEAD")
    branch = ProposalBranch(git, proposal.branch, base=base)
    target = forge.default_branch()
    if branch.newest_of(target) != base:
        yield f"Nothing is proposed: this commit is not the newest of {escaped(target)}. Check that out, and run again."
        return
    state = branch.state()
    if state.stranger is not None:
        yield f"The branch {branch.name} is left alone: {state.stranger} pushed to it. Merge or delete it to get new proposals."
        return
    if not proposal.entities:
        yield from _close(forge, branch, state, because="The drift is gone")
        return
    yield from _open(proposal, forge, branch, state, target=target)


def _close(forge: Forge, branch: ProposalBranch, state: BranchState, *, because: str) -> Iterator[str]:
    """Close the request, if there is one, and remove the branch."""
    if state.commit is None:
        return
    for request in forge.requests_from(branch.name):
        if request.is_open:
            forge.close_request(request.number)
            yield f"{because}, so {forge.name(request.number)} is closed."
    branch.delete(state.commit)


def _open(proposal: DriftProposal, forge: Forge, branch: ProposalBranch, state: BranchState, *, target: str) -> Iterator[str]:
    adoption = adopt(proposal.intent, proposal.entities) if proposal.mode == "adopt" else _reverted(proposal.entities)
    for each, reason in adoption.left:
        yield f"{each.entity} is not adopted: {reason}."
    if not adoption.adopted:
        yield "Nothing is proposed: every entity needs a change by hand."
        yield from _close(forge, branch, state, because="Nothing can be proposed")
        return
    content, commit = proposal.content(), state.commit
    title = proposal_title(proposal.drift, proposal.mode, len(adoption.adopted))
    body = proposal_body(proposal.drift, _reverting(proposal), adoption, mode=proposal.mode, spec=proposal.intent.spec)
    listed = forge.requests_from(branch.name)
    current = next((each for each in listed if each.is_open), None)
    if state.content == content:
        if current is None and any(each.commit == commit for each in listed):
            yield f"Nothing is proposed: {forge.name(listed[0].number)} with this drift was closed. A new drift opens a new one."
            return
    else:
        commit = branch.push(adoption.revisions, message=_message(proposal, adoption), content=content, old=state.commit)
    if current is None:
        number = forge.open_request(branch.name, target, title, body)
        yield f"{forge.name(number).capitalize()} proposes to {proposal.mode} the drift."
    elif (current.title, current.body) != (title, body):
        forge.change_request(current.number, title, body)
        yield f"{forge.name(current.number).capitalize()} is updated."
    else:
        yield f"{forge.name(current.number).capitalize()} proposes this already."


def _reverting(proposal: DriftProposal) -> tuple[str, ...]:
    """What an apply of the manifests as they are would write, with its effects, guards and backtest."""
    intent, clock = proposal.intent, SystemClock()
    plan = make_plan(intent, proposal.reader, accepted=(), clock=clock, given=proposal.given, show_effects=True)
    current = read_for(intent, proposal.reader) if intent.spec.traffic is not None else None
    replayed = replay_markdown(intent, current, budget=TRAFFIC_BYTES) if current is not None else ()
    return (*revert_markdown(plan, proposal.mode), *replayed)


def _reverted(entities: Sequence[EntityDrift]) -> Adoption:
    return Adoption(revisions=(), adopted=tuple(entities), left=())


def _message(proposal: DriftProposal, adoption: Adoption) -> str:
    """No name stands in it: forges read mentions and numbers of issues in messages."""
    slug, count = slug_of(proposal.drift.cluster.name or "kafka"), len(adoption.adopted)
    entities = "1 entity" if count == 1 else f"{count} entities"
    if proposal.mode == "adopt":
        return f"Adopt quotas of {entities} that {slug} has"
    return f"Apply {slug} again: {entities} changed there\n\nThis commit changes no file. Its merge starts apply."
