"""One catalogue of everything that has an id: findings, guards and classes of drift, each with its reason and an example."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final

from reconciler.errors import UsageError
from reconciler.hooks import added, load
from reconciler.manifest import MANIFEST_EXAMPLES, RULES
from reconciler.model import (
    LINT_RULES,
    MAY_OVERRIDE_DECLARED,
    NO_LONGER_DECLARED,
    OVERRIDES_DECLARED,
    POLICY_PREFIX,
    UNALTERABLE,
    Explanation,
    Rule,
    Severity,
    Topic,
)
from reconciler.policy import GUARD_EXAMPLES, GUARDS, LINT_EXAMPLES, POLICY_VIOLATED
from reconciler.text import near_miss, shown
from reconciler.workflows.connect import QUOTA_CALLBACK
from reconciler.workflows.trusted import COUNTS_AFTER_MERGE

_RUN_TIME: Final = (
    Rule(
        id=POLICY_VIOLATED,
        severity=Severity.WARNING,
        explanation="The plan violates a policy of the Repository manifest (spec.policies), or the policy could not be "
        "evaluated. With severity: warning this finding names it. With severity: refuse it is the guard policy:NAME, and nothing "
        "is applied. "
        "A policy with acceptable: true can be accepted by that id, as a guard. Correct the change, or the policy.",
    ),
    Rule(
        id="would-throttle",
        severity=Severity.WARNING,
        explanation="The backtest replays recorded traffic, and the proposed quotas would certainly have throttled clients. The "
        "message names them, the time, and a safe value.",
    ),
    Rule(
        id="over-current-limit",
        severity=Severity.INFO,
        explanation="Recorded traffic is above a limit that this change does not touch: the clients are throttled today, and the "
        "recording shows only what the limit let through, so their real demand may be higher.",
    ),
    Rule(
        id="may-throttle",
        severity=Severity.INFO,
        explanation="Sums of whole seconds cannot show whether the proposed quota would have throttled recorded clients: that "
        "depends on the requests within those seconds. Judge them with backtest --exact, or write the safe value of the message.",
    ),
    Rule(
        id="throttle-overflow",
        severity=Severity.WARNING,
        explanation="Kafka keeps a throttle time in 32 bits of milliseconds. Traffic some 179,000 times above the limit asks for "
        "more than that: the number overflows, and a negative or zero throttle delays no client. Write a limit that is at least "
        "the one in the message. To block a client, remove its ACLs.",
    ),
    Rule(
        id="consumer-stops",
        severity=Severity.WARNING,
        explanation="A broker asks its log for no more record bytes than ten seconds of the fetch limit, but the first batch "
        "comes whole. A larger batch violates the quota even in an empty window, so every answer is empty and the consumer never "
        "gets past that batch. Record sizes of single batches are not in the traffic. A fetch that large was. Write the limit in "
        "the message, or lower batch.size and max.message.bytes.",
    ),
    Rule(
        id="history-incomplete",
        severity=Severity.WARNING,
        explanation="The recorded traffic shows too little to call a changed quota group clear: the recording of a broker has "
        "holes, the whole history is shorter than 24 hours, or it does not name the clients. Record more, or change "
        "spec.backtest.history in the Cluster manifest.",
    ),
    Rule(
        id="limits-above-capacity",
        severity=Severity.INFO,
        explanation="The limits of all clients recorded on one broker add up to more than spec.capacity of the Cluster manifest. "
        "Quotas are often overcommitted on purpose. Then no quota protects the broker from all of its clients together.",
    ),
    Rule(
        id="backtest-policy",
        severity=Severity.ERROR,
        explanation="A rule of spec.backtest in the Cluster manifest does not allow what the backtest found for a bucket, so "
        "backtest ends with exit code 1. Change the quota, or the rule, which with --trusted-ref counts only after merge.",
    ),
    Rule(
        id="backtest-answer",
        severity=Severity.WARNING,
        explanation="The backtest's answer for the whole change, as its text, pages and comment print it: how many quota groups "
        "the proposed quotas would have throttled, and how many changed quotas the history shows nothing about.",
    ),
    Rule(
        id="traffic-not-recorded",
        severity=Severity.WARNING,
        explanation="A changed quota limits no recorded traffic: its clients are missing from the history, or stronger quotas "
        "override it for all of them. Or the history has no traffic of the kind that its key limits. The verdict on this change "
        "is inconclusive. Record a longer history, or watch throttle-time on the brokers after the change.",
    ),
    Rule(
        id=NO_LONGER_DECLARED,
        severity=Severity.WARNING,
        explanation="An entity was declared at the base (--base, --trusted-ref) or at the baseline and is not declared now, and "
        "prune: never keeps its quotas on the cluster: deleting an entry removes nothing. To remove the quotas, write an entry "
        "with quotas: {}, which declares that the entity has none. Delete that entry after the apply. To keep them on purpose, "
        "declare them, or leave it so: once the next apply has moved the baseline on, drift calls the entity unmanaged.",
    ),
    Rule(
        id=OVERRIDES_DECLARED,
        severity=Severity.WARNING,
        explanation="An entity in the scope that no manifest declares, and that prune: never keeps, overrides a declared limit: "
        "it has all clients of the declared entity, or it names the same user or client-id. An entity that is new since the "
        "baseline counts, too, if some client may be limited by both. drift calls it added. Declare it, remove it with an entry "
        "that has quotas: {}, or exclude it from the scope when another team owns it.",
    ),
    Rule(
        id=QUOTA_CALLBACK,
        severity=Severity.WARNING,
        explanation="The brokers resolve quotas with a class of their own (client.quota.callback.class), not by Kafka's rules. "
        "Which quotas have an effect, and for which clients, only that class knows. Ask its authors, or describe it with "
        "spec.quotaCallback of the Cluster manifest: a Python class that backtest and resolve then use. With it, plan has a note "
        "instead of this warning.",
    ),
    Rule(
        id=UNALTERABLE,
        severity=Severity.INFO,
        explanation="The cluster has an entity that brokers refuse in every request, also in a removal. Migrations from "
        "ZooKeeper left names that are empty. An ip may be a host name that the controller cannot resolve, no address at all, or "
        "stand beside a user. "
        "No plan changes such entities, whatever prune states, and all other changes are applied. An empty name limits no "
        "client, so there is nothing to repair. A host name that the controller resolves can be removed with kafka-quotas alter.",
    ),
    Rule(
        id=MAY_OVERRIDE_DECLARED,
        severity=Severity.INFO,
        explanation="Entities in the scope that no manifest declares, and that prune: never keeps, are stronger than a declared "
        "limit for clients that both apply to: user=alice overrides client-id=etl once alice sends that client-id, and each "
        "user's own quota overrides a default. Whether there are such clients, quotas do not show. One finding counts them all, "
        "and drift calls them unmanaged. To see one client's limit, run resolve.",
    ),
    COUNTS_AFTER_MERGE,
)
"""Findings that come from traffic, or from git, where no manifest alone can be an example."""

_DRIFT: Final = {
    "in-sync": "The cluster has the quotas of the last apply, and the manifests declare the same.",
    "unapplied": "The cluster has what was last applied, and the manifests have moved on since. Apply them, or look why the last "
    "run did not.",
    "changed": "A value on the cluster was changed since the last apply. Find out by which user and why. Then write the new "
    "value into the manifests, or apply to put the old one back.",
    "missing": "A quota that was applied is gone from the cluster, so its clients fall back to the next precedence level, or to "
    "no limit.",
    "differs": "The cluster has other quotas than the manifests. Without a baseline, two causes look alike: a change that was "
    "merged and not applied (unapplied), or a change or removal by hand (changed, missing).",
    "added": "The cluster has quotas in the scope that no manifest declares, and either the next apply removes them (prune: "
    "confirm or always), or they override a declared limit (prune: never): they have all clients of the declared entity, name "
    "the same user or client-id, or are new since the baseline. Declare them, or remove them: apply does so under prune: confirm "
    "or always, and under prune: never when an entry declares the entity with quotas: {}. Without a baseline this can also be an "
    "entity that left the manifests.",
    "unmanaged": "The cluster has an entity that no manifest declares, and that overrides no declared limit for certain. It is "
    "counted and left alone. export writes it as a manifest.",
}
"""The classes of drift."""


def explanations() -> Mapping[str, Explanation]:
    """Everything, by id: findings in the order of their catalogues, then guards, then classes of drift."""
    examples = {**MANIFEST_EXAMPLES, **LINT_EXAMPLES}
    of_features: dict[str, Rule] = {}
    for rules, bad_and_good in map(load, added("RULES")):
        of_features |= rules
        examples |= bad_and_good
    by_id: dict[str, Explanation] = {}
    for rule in (*RULES.values(), *LINT_RULES.values(), *of_features.values(), *_RUN_TIME):
        by_id[rule.id] = Explanation(
            id=rule.id,
            topic=Topic.FINDING,
            text=rule.explanation,
            severity=rule.severity,
            adjustable=rule.adjustable,
            example=examples.get(rule.id),
        )
    for guard_id, measure in GUARDS.items():
        text = inspect.cleandoc(measure.__doc__ or "").replace("\n", " ").replace("``", "")
        by_id[guard_id] = Explanation(id=guard_id, topic=Topic.GUARD, text=text, example=GUARD_EXAMPLES.get(guard_id))
    for name, text in _DRIFT.items():
        by_id[name] = Explanation(id=name, topic=Topic.DRIFT, text=text)
    return by_id


def explain_id(topic_id: str) -> Explanation:
    """The explanation of a finding, guard or class of drift. Raises ``UsageError`` for an unknown id."""
    by_id = explanations()
    topic_id = POLICY_VIOLATED if topic_id.startswith(POLICY_PREFIX) else topic_id
    if topic_id not in by_id:
        near = near_miss(topic_id, by_id) or ". Run kafka-quotas explain for a list"
        msg = f"unknown id {shown(topic_id)}{near}"
        raise UsageError(msg)
    return by_id[topic_id]
