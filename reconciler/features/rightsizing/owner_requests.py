"""Proposed limits as pull requests: one branch and request for each owner of a cluster, kept true by each run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.features.pull_requests.proposal_branch import ProposalText, proposals_from
from reconciler.features.rightsizing.edits import ValueEdits, left_sentences, revise_values
from reconciler.features.rightsizing.measuring import SizingReport
from reconciler.features.rightsizing.proposals import owner_of_change
from reconciler.features.rightsizing.report import history_words, quota_table
from reconciler.features.rightsizing.sizing import SizedQuota
from reconciler.model import Span, display_name, escaped, slug_of
from reconciler.render import blocks_markdown, code, prose, shorten
from reconciler.text import count_of
from reconciler.workflows import Intent

_NAME: Final = 100
_TABLE: Final = 50_000


def keep_requests(intent: Intent, report: SizingReport) -> Iterator[str]:
    """Open, update or close the request of each owner of the cluster. Sentences state what was done.

    Raises ``ForgeError``, ``GitError``, ``UsageError`` without a token, ``FileAccessError`` and ``ManifestError``.
    """
    with proposals_from(intent.paths[0]) as proposals:
        if (refusal := proposals.refusal()) is not None:
            yield refusal
            return
        folder = f"kafka-quotas/rightsize/{slug_of(report.cluster or 'kafka')}"
        of_owners = {f"{folder}/{_leaf(owner)}": (owner, quotas) for owner, quotas in _by_owner(report.proposed)}
        for name in proposals.below(folder):
            if name not in of_owners:
                yield from proposals.close(name, because="No limit of its owner needs a change now")
        for name, (owner, quotas) in of_owners.items():
            edits = revise_values(intent, quotas)
            yield from left_sentences(edits)
            if edits.written:
                yield from proposals.keep(name, _text(report, owner, edits), edits.revisions)
            else:
                yield from proposals.close(name, because="No limit of its owner can be changed in place")


def _text(report: SizingReport, owner: str | None, edits: ValueEdits) -> ProposalText:
    """Return the request for an owner, in which a reviewer sees each change with its use and its backtest."""
    quotas, cluster = edits.written, report.cluster or "kafka"
    limits = count_of(len(quotas), "limit")
    rows = sorted([str(quota.entity), quota.key.value, quota.limit, quota.value or 0.0] for quota in quotas)
    whose = "" if owner is None else f" of {shorten(escaped(display_name(owner)), _NAME)}"
    section = blocks_markdown((quota_table(quotas),), room=_TABLE)
    lines = [
        f"**Merge to change these limits.** Each was compared with {prose(history_words(report))}.",
        "The backtest replays the same traffic under all proposed limits. The usual checks of a pull request apply.",
        "",
        *section.lines,
        *(("", f"{count_of(section.left_out, 'change')} more did not fit here: see the diff.") if section.left_out else ()),
        "",
        f"To keep a limit, add {code('rightsize: never')} and a {code('note')} with the reason to its entry.",
        "",
        *(f"- {code(str(quota.entity), limit=_NAME)}: {prose(reason)}" for quota, reason in edits.left),
    ]
    return ProposalText(
        title=f"Rightsize {shorten(escaped(display_name(cluster)), _NAME)}: {limits}{whose}",
        body="\n".join(lines).rstrip() + "\n",
        message=f"Change {limits} of {slug_of(cluster)} to what clients use",
        content=f"rightsize sha256:{hashlib.sha256(json.dumps(rows).encode()).hexdigest()}",
        purpose=f"{count_of(len(quotas), 'change')}{whose}",
        subject="proposal",
    )


def _by_owner(quotas: Sequence[SizedQuota]) -> Iterator[tuple[str | None, list[SizedQuota]]]:
    """The changes of each owner, in their order; ``None``: of no owner, or values that several owners share."""
    places: dict[Span, list[SizedQuota]] = {}
    for quota in quotas:
        places.setdefault(quota.source, []).append(quota)
    owners: dict[str | None, list[SizedQuota]] = {}
    for some in places.values():
        owners.setdefault(owner_of_change(some), []).extend(some)
    yield from owners.items()


def _leaf(owner: str | None) -> str:
    return "no-owner" if owner is None else f"of-{slug_of(owner)}"
