"""An example for every rule about files, documents, names and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Example, cluster_manifest, join_manifests, quota_manifest, quotas_manifest, repository_manifest

_GOOD: Final = quota_manifest("{producer_byte_rate: 1MiB}")
_OWNED: Final = _GOOD.replace("spec:\n", "metadata: {name: orders, owner: team-orders}\nspec:\n")
_WITH_BUDGET: Final = repository_manifest("budgets: [{owner: team-orders, producer_byte_rate: 10MiB}]")
_CHECK: Final = "kafka-quotas validate ."


def _value(bad: str, good: str, key: str = "producer_byte_rate") -> Example:
    match = "{ip: 10.0.0.7}" if key == "connection_creation_rate" else "{user: orders}"
    return Example(bad=quota_manifest(f"{{{key}: {bad}}}", match), good=quota_manifest(f"{{{key}: {good}}}", match))


def _match(bad: str, good: str, key: str = "producer_byte_rate", good_key: str = "") -> Example:
    return Example(bad=quota_manifest(f"{{{key}: 1000}}", bad), good=quota_manifest(f"{{{good_key or key}: 1000}}", good))


def _cluster(bad: str, good: str) -> Example:
    return Example(bad=cluster_manifest(bad), good=cluster_manifest(good))


def _shell(*bad: str, good: str) -> Example:
    return Example(bad="\n".join(bad), good=good, commands=True)


def _manifest(path: str) -> str:
    return f"printf '%s\\n' 'apiVersion: kafka-quotas/v1' 'kind: ClientQuotas' 'spec: {{quotas: []}}' > {path}"


_FILES: Final = {
    "file-not-found": _shell("kafka-quotas validate teems", good="mkdir teams\nkafka-quotas validate teams"),
    "file-not-readable": _shell("ln -s nowhere a.yaml", _CHECK, good=f"{_manifest('b.yaml')}\nln -s b.yaml a.yaml\n{_CHECK}"),
    "not-a-file": _shell("mkfifo a.yaml", _CHECK, good=f"{_manifest('a.yaml')}\n{_CHECK}"),
    "file-too-large": _shell("truncate -s 40M a.yaml", _CHECK, good=f"{_manifest('a.yaml')}\n{_CHECK}"),
    "too-many-findings": _shell(
        "{ printf '%s\\n' 'apiVersion: kafka-quotas/v1' 'kind: ClientQuotas' 'spec:' '  quotas:'",
        "  yes '  -' | head -n 100001; } > a.yaml",
        _CHECK,
        good=f"{_manifest('a.yaml')}\n{_CHECK}",
    ),
    "no-manifests": _shell("mkdir teams", "kafka-quotas validate teams", good=f"{_manifest('a.yaml')}\n{_CHECK}"),
    "file-not-read": _shell(
        "printf '%s\\n' 'apiVersion: kafka-quotas/v1' 'kind: Repository' 'spec: {exclude: [charts/**]}' > kafka-quotas.yaml",
        "mkdir charts",
        _manifest("charts/a.yaml"),
        "kafka-quotas validate charts/a.yaml",
        good=f"{_manifest('a.yaml')}\nkafka-quotas validate a.yaml",
    ),
    "link-out-of-tree": _shell("ln -s /usr/share teams", _CHECK, good=f"mkdir teams\n{_manifest('teams/a.yaml')}\n{_CHECK}"),
    "symlink-loop": _shell(
        "mkdir teams", "ln -s .. teams/all", _CHECK, good=f"mkdir teams\n{_manifest('teams/a.yaml')}\n{_CHECK}"
    ),
    "invalid-utf8": _shell("printf 'user: \\351' > a.yaml", _CHECK, good=f"{_manifest('a.yaml')}\n{_CHECK}"),
    "control-character": _shell("printf 'user: \\001' > a.yaml", _CHECK, good=f"{_manifest('a.yaml')}\n{_CHECK}"),
    "yaml-too-deep": _shell(
        "printf '%0500d' 0 | tr 0 '[' > a.yaml",
        _CHECK,
        good=f"{_manifest('a.yaml')}\n{_CHECK}",
    ),
}

_YAML: Final = {
    "yaml-syntax": Example(bad=_GOOD.replace("{user: orders}", "{user: orders"), good=_GOOD),
    "yaml-alias-limit": Example(
        bad="a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{this}: &{this} [{', '.join([f'*{last}'] * 10)}]\n" for last, this in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        good=join_manifests(
            quotas_manifest(("{user: orders}", "&usual {producer_byte_rate: 1MiB}"), ("{user: payments}", "*usual")),
        ),
    ),
    "yaml-tag": _value("!!int 1000000", "1000000"),
    "yaml-merge-key": Example(
        bad=quotas_manifest(("{user: orders}", "&usual {producer_byte_rate: 1MiB}"), ("{user: payments}", "{<<: *usual}")),
        good=quotas_manifest(("{user: orders}", "&usual {producer_byte_rate: 1MiB}"), ("{user: payments}", "*usual")),
    ),
    "duplicate-key": Example(bad=quota_manifest("{producer_byte_rate: 1MiB, producer_byte_rate: 2MiB}"), good=_GOOD),
    "non-string-key": Example(bad=quota_manifest("{[producer_byte_rate]: 1MiB}"), good=_GOOD),
}

_ONE_SERVER: Final = 'connection: {bootstrapServers: ["b1:9092"]}'

_STRUCTURE: Final = {
    "cluster-misplaced": Example(
        bad=join_manifests(repository_manifest("clusterPaths: [clusters/**]"), cluster_manifest()),
        good=join_manifests(repository_manifest("clusterPaths: ['*']"), cluster_manifest()),
    ),
    "cluster-without-id": Example(
        bad=join_manifests(
            cluster_manifest(_ONE_SERVER), cluster_manifest(_ONE_SERVER).replace("{name: prod}", "{name: prod-mirror}")
        ),
        good=join_manifests(
            cluster_manifest(_ONE_SERVER, "clusterId: 4L6g3nShT-eMCtK--X86sw"),
            cluster_manifest(_ONE_SERVER, "clusterId: 4L6g3nShT-eMCtK--X86sw").replace("{name: prod}", "{name: prod-mirror}"),
        ),
    ),
    "unknown-document": Example(bad=_GOOD.replace("ClientQuotas", "ClientQuota"), good=_GOOD),
    "unknown-field": Example(bad=_GOOD + "      nots: settlement run\n", good=_GOOD + "      note: settlement run\n"),
    "missing-field": Example(bad=cluster_manifest().replace("  prune: never\n", "  protected: []\n"), good=cluster_manifest()),
    "wrong-type": Example(bad=_GOOD.replace("{producer_byte_rate: 1MiB}", "[producer_byte_rate]"), good=_GOOD),
    "wrong-value": Example(bad=cluster_manifest(prune="sometimes"), good=cluster_manifest(prune="confirm")),
    "unknown-quota-key": Example(bad=quota_manifest("{producer_byterate: 1MiB}"), good=_GOOD),
    "unknown-entity-type": _match("{principal: orders}", "{user: orders}"),
    "invalid-selector": _cluster('protected: [{user: {regex: "("}}]', 'protected: [{user: {regex: "svc-.*"}}]'),
    "unknown-guard": _cluster(
        "accept: [{guard: purge, until: 2099-01-31, reason: clean-up}]",
        "accept: [{guard: prune, until: 2099-01-31, reason: clean-up}]",
    ),
    "invalid-policy": Example(
        bad=repository_manifest("policies: [{name: few-changes, require: size(plan.chnges) <= 5 &&}]"),
        good=repository_manifest("policies: [{name: few-changes, require: size(plan.changes) <= 5}]"),
    ),
    "invalid-date": _cluster(
        "accept: [{guard: prune, until: 2099-02-30, reason: clean-up}]",
        "accept: [{guard: prune, until: 2099-02-28, reason: clean-up}]",
    ),
    "invalid-freeze-window": _cluster(
        "freeze: [{days: [fri], hours: 25:00-26:00}]",
        "freeze: [{days: [fri], hours: 18:00-24:00}]",
    ),
    "conflicting-connection": _cluster(
        'connection: {bootstrapServers: ["b1:9092"], zookeeper: "zk1:2181"}', 'connection: {bootstrapServers: ["b1:9092"]}'
    ),
    "repository-misplaced": _shell(
        "mkdir teams",
        "printf '%s\\n' 'apiVersion: kafka-quotas/v1' 'kind: Repository' 'spec: {}' > teams/settings.yaml",
        _CHECK,
        good=f"printf '%s\\n' 'apiVersion: kafka-quotas/v1' 'kind: Repository' 'spec: {{}}' > kafka-quotas.yaml\n{_CHECK}",
    ),
    "unknown-lint-rule": Example(
        bad=repository_manifest("lint: {percent-encodedname: error}"),
        good=repository_manifest("lint: {percent-encoded-name: error}"),
    ),
    "invalid-limit": Example(
        bad=repository_manifest("limits: [{producer_byte_rate: {min: 2MiB, max: 1MiB}}]"),
        good=repository_manifest("limits: [{producer_byte_rate: {min: 1MiB, max: 2MiB}}]"),
    ),
    "duplicate-cluster": Example(bad=join_manifests(cluster_manifest(), cluster_manifest()), good=cluster_manifest()),
}

_VALUES: Final = {
    "value-syntax": _value("1_000_000", "1000000"),
    "unknown-unit": _value("10Mb", "10MB"),
    "value-not-positive": Example(bad=quota_manifest("{producer_byte_rate: 0}"), good=quota_manifest("{}")),
    "value-not-finite": Example(bad=quota_manifest("{request_percentage: .inf}"), good=quota_manifest("{}")),
    "value-missing": Example(bad=quota_manifest("{producer_byte_rate: null}"), good=quota_manifest("{}")),
    "value-fractional": _value("0.5B", "1B"),
    "value-too-large": _value("3000000000", "100", "connection_creation_rate"),
    "value-not-exact": _value("9007199254740993", "9007199254740992"),
}

_ENTITIES: Final = {
    "empty-name": _match("{user: null}", "{user: {default: true}}"),
    "name-too-long": _shell(
        "{ printf '%s\\n' 'apiVersion: kafka-quotas/v1' 'kind: ClientQuotas' 'spec:' '  quotas:'",
        "  printf '    - {match: {user: %033000d}, quotas: {producer_byte_rate: 1MiB}}\\n' 7; } > a.yaml",
        _CHECK,
        good=f"{_manifest('a.yaml')}\n{_CHECK}",
    ),
    "illegal-entity": _match("{user: orders, ip: 10.0.0.7}", "{user: orders}"),
    "key-not-for-entity": _match("{user: orders}", "{ip: 10.0.0.7}", "connection_creation_rate"),
    "ip-invalid": _match("{ip: 10.0.1.0/24}", "{ip: 10.0.1.7}", "connection_creation_rate"),
    "ip-host-name": _match("{ip: gateway.example}", "{ip: 10.0.0.7}", "connection_creation_rate"),
    "ip-not-canonical": _match('{ip: "2001:DB8::0:1"}', '{ip: "2001:db8::1"}', "connection_creation_rate"),
    "user-prefix": _match("{user: User:orders}", "{user: orders}"),
    "literal-default-name": _match("{user: <default>}", "{user: {default: true}}"),
    "percent-encoded-name": _match("{user: orders%40example}", "{user: orders@example}"),
    "unusual-name": _match('{user: "orders "}', "{user: orders}"),
    "mixed-scripts": _match('{user: "p\\u0430yments"}', "{user: payments}"),
    "unrendered-template": _match('{user: "${TEAM}-orders"}', "{user: team-a-orders}"),
    "wildcard-name": _match("{client-id: my-*}", "{client-id: my-app}"),
    "duplicate-entity": Example(
        bad=quotas_manifest(("{user: orders}", "{producer_byte_rate: 1MiB}"), ("{user: orders}", "{consumer_byte_rate: 1MiB}")),
        good=quota_manifest("{producer_byte_rate: 1MiB, consumer_byte_rate: 1MiB}"),
    ),
    "too-many-entities": Example(
        bad=quota_manifest(
            "{producer_byte_rate: 1MiB}",
            f"{{user: [{', '.join(f'u{n}' for n in range(101))}], client-id: [{', '.join(f'c{n}' for n in range(100))}]}}",
        ),
        good=quota_manifest("{producer_byte_rate: 1MiB}", "{user: [orders, payments], client-id: [web, app]}"),
    ),
    "unknown-profile": Example(
        bad=_GOOD.replace("quotas: {producer", "profile: gold\n      quotas: {producer"),
        good=join_manifests(
            cluster_manifest("profiles: {gold: {quotas: {consumer_byte_rate: 2MiB}}}"),
            _GOOD.replace("quotas: {producer", "profile: gold\n      quotas: {producer"),
        ),
    ),
    "circular-profile": Example(
        bad=join_manifests(
            cluster_manifest("profiles: {gold: {profile: iron}, iron: {profile: gold}}"),
            _GOOD.replace("quotas: {producer", "profile: gold\n      quotas: {producer"),
        ),
        good=join_manifests(
            cluster_manifest("profiles: {gold: {profile: iron}, iron: {quotas: {consumer_byte_rate: 2MiB}}}"),
            _GOOD.replace("quotas: {producer", "profile: gold\n      quotas: {producer"),
        ),
    ),
    "invalid-unit": Example(
        bad=_GOOD.replace("1MiB", "{shares: 0, of: 10MiB}"), good=_GOOD.replace("1MiB", "{shares: 2, of: 10MiB}")
    ),
    "invalid-expiry": Example(
        bad=_GOOD.replace("1MiB", "{value: 2MiB, until: 2999-12-01T18:00}"),
        good=_GOOD.replace("1MiB", '{value: 2MiB, until: "2999-12-01T18:00+01:00"}'),
    ),
    "unit-not-for-key": Example(
        bad=_GOOD.replace("producer_byte_rate: 1MiB", "request_percentage: {clusterTotal: 200}"),
        good=_GOOD.replace("1MiB", "{clusterTotal: 10MiB}"),
    ),
    "part-too-small": Example(
        bad=_GOOD.replace("{user: orders}", "{user: [orders, refunds]}").replace("1MiB", "{shares: 1, of: 1B}"),
        good=_GOOD.replace("{user: orders}", "{user: [orders, refunds]}").replace("1MiB", "{shares: 1, of: 1MiB}"),
    ),
    "unknown-capacity": Example(
        bad=_GOOD.replace("1MiB", "{shares: 1}"),
        good=join_manifests(cluster_manifest("capacity: {producer_byte_rate: 100MiB}"), _GOOD.replace("1MiB", "{shares: 1}")),
    ),
    "unknown-budget": Example(
        bad=join_manifests(_WITH_BUDGET.replace("producer", "consumer"), _OWNED.replace("1MiB", '{budget: "25%"}')),
        good=join_manifests(_WITH_BUDGET, _OWNED.replace("1MiB", '{budget: "25%"}')),
    ),
    "above-budget": Example(
        bad=join_manifests(_WITH_BUDGET, _OWNED.replace("{user: orders}", "{user: [orders, refunds]}").replace("1MiB", "6MiB")),
        good=join_manifests(_WITH_BUDGET, _OWNED.replace("{user: orders}", "{user: [orders, refunds]}").replace("1MiB", "5MiB")),
    ),
    "outside-scope": Example(
        bad=join_manifests(cluster_manifest("scope: {include: [{user: {prefix: payments-}}]}"), _GOOD),
        good=join_manifests(cluster_manifest("scope: {include: [{user: {prefix: ord}}]}"), _GOOD),
    ),
    "unknown-cluster": Example(
        bad=join_manifests(cluster_manifest(), _GOOD.replace("spec:\n", "spec:\n  clusters: [prd]\n")),
        good=join_manifests(cluster_manifest(), _GOOD.replace("spec:\n", "spec:\n  clusters: [prod]\n")),
    ),
    "overlapping-overrides": Example(
        bad=join_manifests(
            cluster_manifest(),
            _GOOD + "      overrides:\n"
            "        - {clusters: [prod], quotas: {producer_byte_rate: 2MiB}}\n"
            "        - {clusters: [prod], quotas: {producer_byte_rate: 3MiB}}\n",
        ),
        good=join_manifests(
            cluster_manifest(), _GOOD + "      overrides:\n        - {clusters: [prod], quotas: {producer_byte_rate: 2MiB}}\n"
        ),
    ),
    "no-cluster-matches": Example(
        bad=join_manifests(cluster_manifest(), _GOOD.replace("spec:\n", "spec:\n  clusters: {labels: {tier: gold}}\n")),
        good=join_manifests(
            cluster_manifest().replace("{name: prod}", "{name: prod, labels: {tier: gold}}"),
            _GOOD.replace("spec:\n", "spec:\n  clusters: {labels: {tier: gold}}\n"),
        ),
    ),
}


def _owned(owners: str, bad: str, good: str, entity: str = "{user: orders}") -> Example:
    """Two values of ``metadata.owner`` (or none) for one entity."""
    bad, good = (
        _GOOD.replace("{user: orders}", entity).replace("spec:\n", f"{owner_line}spec:\n", 1) for owner_line in (bad, good)
    )
    settings = repository_manifest(f"owners: {owners}")
    return Example(bad=join_manifests(settings, bad), good=join_manifests(settings, good))


def _limited(limit: str, bad: str, good: str) -> Example:
    settings = repository_manifest(f"limits: [{{producer_byte_rate: {limit}}}]")
    return Example(
        bad=join_manifests(settings, quota_manifest(f"{{producer_byte_rate: {bad}}}")),
        good=join_manifests(settings, quota_manifest(f"{{producer_byte_rate: {good}}}")),
    )


_A: Final = "metadata: {owner: team-a}\n"
_B: Final = "metadata: {owner: team-b}\n"
_BY_USER: Final = "{team-a: {entities: [{user: {prefix: ord}}]}, team-b: {entities: [{user: {prefix: pay}}]}}"

_OWNERS: Final = {
    "missing-owner": _owned("{team-a: {}}", "", _A),
    "unknown-owner": _owned("{team-a: {}}", _B, _A),
    "outside-owner-paths": _owned("{team-a: {}, team-b: {paths: [teams/b]}}", _B, _A),
    "outside-owner-entities": _owned("{team-a: {}, team-b: {entities: [{user: {prefix: pay}}]}}", _B, _A),
    "foreign-entity": _owned(_BY_USER, _B, _A),
    "outside-owner-clusters": Example(
        bad=join_manifests(
            repository_manifest("owners: {team-a: {clusters: [dev]}}"),
            cluster_manifest(),
            _GOOD.replace("spec:\n", f"{_A}spec:\n", 1),
        ),
        good=join_manifests(
            repository_manifest("owners: {team-a: {clusters: [prod]}}"),
            cluster_manifest(),
            _GOOD.replace("spec:\n", f"{_A}spec:\n", 1),
        ),
    ),
    "above-limit": _limited("{max: 200MiB}", "300MiB", "200MiB"),
    "below-limit": _limited("{min: 1MiB}", "1KiB", "1MiB"),
}

MANIFEST_EXAMPLES: Final[Mapping[str, Example]] = {**_FILES, **_YAML, **_STRUCTURE, **_VALUES, **_ENTITIES, **_OWNERS}
"""By rule id."""
