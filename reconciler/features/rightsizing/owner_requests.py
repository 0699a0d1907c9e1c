"""Proposed limits as pull requests: one branch and request for each owner of a cluster, kept true by each run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.pull_requests.forge import Forge
from reconciler.features.pull_requests.proposal_branch import (
    ProposalBase,
    ProposalText,
    close_request,
    keep_request,
    proposals_from,
)
from reconciler.features.rightsizing.edits import ValueEdits, left_sentences, revise_values
from reconciler.features.rightsizing.measuring import SizedClusters, SizingReport
from reconciler.features.rightsizing.proposals import owner_of_change
from reconciler.features.rightsizing.report import history_words, quota_table
from reconciler.features.rightsizing.sizing import SizedQuota
from reconciler.model import Span, display_name, escaped, slug_of
from reconciler.render import Block, blocks_markdown, code, heading, prose, shorten
from reconciler.text import count_of

_NAME: Final = 100
_TABLE: Final = 50_000
_ALL: Final = "+all"
"""Stands for all clusters in the name of a branch, as no cluster's part of one can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerProposal:
    """The changes for one owner. ``owner`` ``None``: manifests without an owner, or values that several owners share."""

    sized: SizedClusters
    owner: str | None
    edits: ValueEdits

    def text(self) -> ProposalText:
        """Return the request, in which a reviewer sees each change with its use and its backtest."""
        reports, quotas = self.reports, self.edits.written
        is_one = len(reports) == 1
        rows = sorted(
            [*([] if is_one else [quota.cluster]), str(quota.entity), quota.key.value, quota.limit, quota.value or 0.0]
            for quota in quotas
        )
        cluster = reports[0].cluster or "kafka"
        name = shorten(escaped(display_name(cluster)), _NAME) if is_one else f"{len(reports)} clusters"
        whose = "" if self.owner is None else f" of {shorten(escaped(display_name(self.owner)), _NAME)}"
        return ProposalText(
            title=f"Rightsize {name}: {count_of(len(quotas), 'limit')}{whose}",
            body=self._body(),
            message=f"Change {count_of(len(quotas), 'limit')} of {slug_of(cluster) if is_one else name} to what clients use",
            content=f"rightsize sha256:{hashlib.sha256(json.dumps(rows).encode()).hexdigest()}",
            purpose=f"{count_of(len(quotas), 'change')}{whose}",
            subject="proposal",
        )

    @property
    def reports(self) -> tuple[SizingReport, ...]:
        """The reports of the clusters on which a limit changes."""
        clusters = {quota.cluster for quota in self.edits.written}
        return tuple(report for report in self.sized.reports if report.cluster in clusters)

    def _tables(self) -> Iterator[Block]:
        for report in self.reports:
            if len(self.reports) > 1:
                name = display_name(report.cluster or "")
                yield heading(name, f"{name}:")
            yield quota_table([quota for quota in self.edits.written if quota.cluster == report.cluster])

    def _histories(self) -> str:
        if len(self.reports) == 1:
            return history_words(self.reports[0])
        return "; ".join(f"{display_name(report.cluster or '')}: {history_words(report)}" for report in self.reports)

    def _body(self) -> str:
        section = blocks_markdown(tuple(self._tables()), room=_TABLE)
        lines = [
            f"**Merge to change these limits.** Each was compared with {prose(self._histories())}.",
            "The backtest replays the same traffic under all proposed limits. The usual checks of a pull request apply.",
            "",
            *section.lines,
            *(("", f"{count_of(section.left_out, 'change')} more did not fit here: see the diff.") if section.left_out else ()),
            "",
            f"To keep a limit, add {code('rightsize: never')} and a {code('note')} with the reason to its entry.",
        ]
        lines += [
            "",
            *(f"- {code(str(quota.entity), limit=_NAME)}: {prose(reason)}" for quota, reason in self.edits.left),
        ]
        return "\n".join(lines).rstrip() + "\n"


def keep_requests(sized: SizedClusters, *, every: bool = False) -> Iterator[str]:
    """Open, update or close the request of each owner. Sentences state what was done.

    ``every``: the requests are about all clusters of the manifests, however many there are.
    Raises ``ForgeError``, ``GitError``, ``UsageError`` without a token, ``FileAccessError`` and ``ManifestError``.
    """
    clusters = _ALL if every else slug_of("+".join(sorted(name or "kafka" for name in sized.intents)))
    with proposals_from(sized.paths[0]) as (forge, base):
        yield from _keep(sized, clusters, forge, base)


def _keep(sized: SizedClusters, clusters: str, forge: Forge, base: ProposalBase) -> Iterator[str]:
    if (refusal := base.refusal()) is not None:
        yield refusal
        return
    folder = f"kafka-quotas/rightsize/{clusters}"
    of_owners = {f"{folder}/{_leaf(owner)}": (owner, quotas) for owner, quotas in by_owner(sized.proposed)}
    # A cluster that could not be judged may still need what an open request proposes.
    for name in () if sized.failed else base.branches_below(folder):
        if name not in of_owners:
            yield from close_request(forge, base.branch(name), because="No limit of its owner needs a change now")
    for name, (owner, quotas) in of_owners.items():
        proposal = OwnerProposal(sized=sized, owner=owner, edits=revise_values(sized, quotas))
        yield from left_sentences(proposal.edits)
        if proposal.edits.written:
            revisions = proposal.edits.revisions
            yield from keep_request(forge, base.branch(name), proposal.text(), revisions, target=base.target)
        else:
            yield from close_request(forge, base.branch(name), because="No limit of its owner can be changed in place")


def by_owner(quotas: Sequence[SizedQuota]) -> Iterator[tuple[str | None, list[SizedQuota]]]:
    """The changes of each owner, in their order. What shares a value stays together."""
    places: dict[Span, list[SizedQuota]] = {}
    for quota in quotas:
        places.setdefault(quota.source, []).append(quota)
    owners: dict[str | None, list[SizedQuota]] = {}
    for some in places.values():
        owners.setdefault(owner_of_change(some), []).extend(some)
    yield from owners.items()


def _leaf(owner: str | None) -> str:
    return "no-owner" if owner is None else f"of-{slug_of(owner)}"
