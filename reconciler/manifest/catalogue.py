"""Every finding that reading manifests can give: its id, its severity, and why it matters. Ids never change their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Rule, Severity


def _error(rule_id: str, explanation: str) -> Rule:
    return Rule(id=rule_id, severity=Severity.ERROR, explanation=explanation)


def _lint(rule_id: str, explanation: str, severity: Severity = Severity.WARNING) -> Rule:
    return Rule(id=rule_id, severity=severity, explanation=explanation, adjustable=True)


_FILES: Final = (
    _error(
        "file-not-found",
        "A path that was given does not exist. Nothing is guessed: check the spelling and the working directory.",
    ),
    _error(
        "file-not-readable",
        "A file or folder cannot be read: the permissions, a dangling link, or a fault of the disk. What is not read cannot be "
        "checked, and a plan without it could remove what it declares.",
    ),
    _error(
        "not-a-file",
        "Something named like a YAML file is a folder, a pipe, a socket or a device. It is never opened, since reading it could "
        "wait for ever.",
    ),
    _error("file-too-large", "A file is larger than the limit. Split it: the identity of a quota is its entity, not its file."),
    _error(
        "too-many-findings",
        "A file has more findings than are reported, so the rest of it is not checked. Most often one mistake is repeated, or "
        "the file is not a manifest.",
    ),
    _error(
        "no-manifests",
        "The given paths have no manifest. That is an error and not an empty success: most often the path is wrong. "
        "With pruning, a repository that declares nothing would remove everything.",
    ),
    Rule(
        id="file-not-read",
        severity=Severity.INFO,
        explanation="A file that was named is in a hidden folder or excluded by the Repository document, so it was not read.",
    ),
    _error(
        "link-out-of-tree",
        "A symbolic link leads out of the folder that is read. It is not followed: a pull request could otherwise let a run read "
        "any folder of the machine. Move the manifests into the folder, pass the other folder as another PATH, or list the "
        "link under spec.exclude of the Repository manifest.",
    ),
    Rule(
        id="symlink-loop",
        severity=Severity.WARNING,
        explanation="A symbolic link points to a folder above it. It is not followed: all that it leads to is being read anyway.",
    ),
)

_YAML: Final = (
    _error("invalid-utf8", "Manifests are UTF-8, with or without a byte order mark. Save the file again in that encoding."),
    _error(
        "control-character", "YAML allows no control characters (NUL among them) in its text. In double quotes write an escape."
    ),
    _error(
        "yaml-syntax", "The file is not YAML. Everything after the fault is unread, so fix it before trusting other findings."
    ),
    _error(
        "yaml-too-deep", "Lists and mappings are nested far deeper than any manifest needs. Reading on could exhaust the stack."
    ),
    _error(
        "yaml-alias-limit", "Aliases repeat what they stand for. Too many of them, or one inside itself, would fill the memory."
    ),
    _error("yaml-tag", "Explicit tags such as !!binary are not supported: every value is taken as it is written."),
    _error("yaml-merge-key", "The merge key << obscures where a value comes from. Use overrides, or anchors on whole values."),
    _error(
        "duplicate-key", "A mapping has one key twice. Most YAML readers silently keep the last, so one of two limits is lost."
    ),
    _error("non-string-key", "The keys of mappings are text. Lists, mappings and null cannot be keys."),
)

_STRUCTURE: Final = (
    _error(
        "unknown-document",
        "A YAML document under the root is not one of ours: apiVersion or kind is missing or mistyped. It is never skipped in "
        "silence, since pruning would then remove the entities that it means to declare. Correct it, or list the file under "
        "spec.exclude of the Repository document (kafka-quotas.yaml at the root).",
    ),
    _error(
        "unknown-field", "A field that the document kind does not have. An ignored typing error would be a limit that is not set."
    ),
    _error("missing-field", "A field that the document kind must have is missing. Nothing is guessed in its place."),
    _error("wrong-type", "A field has another type of value than it must, e.g. a list where a mapping belongs."),
    _error("wrong-value", "A field has a value that is not one of its choices, is empty, or has another form."),
    _error(
        "unknown-quota-key",
        "Kafka has five client quota keys: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate "
        "and connection_creation_rate.",
    ),
    _error(
        "unknown-entity-type",
        "Kafka has three entity types: user, client-id and ip. Others on a cluster are shown and never written.",
    ),
    _error(
        "invalid-selector",
        "A regular expression of a selector cannot be used, so the names that it selects are not known. Expressions have RE2's "
        "syntax and need the extra 'regex' (google-re2). RE2 has no back-references and no look-around, and bounds the size of "
        "an expression. A prefix or a glob needs no extra.",
    ),
    _error("unknown-guard", "An acceptance names a guard that does not exist, so it would accept nothing."),
    _error(
        "invalid-policy",
        "A policy cannot be used: its expression is not CEL, names a variable or function that does not exist, or does not give "
        "true or false. Policies need the extra 'policies' (cel-expr-python). No plan is made without the repository's policies.",
    ),
    _error("invalid-date", "A date must be a real day, written YYYY-MM-DD. An acceptance needs an end."),
    _error(
        "invalid-freeze-window",
        "A freeze window cannot be understood. It is an error, never skipped: the cluster would be open when it must not be.",
    ),
    _error(
        "conflicting-connection", "A connection names brokers or ZooKeeper, not both: it must be clear where quotas are written."
    ),
    _error(
        "repository-misplaced",
        "The Repository document rules a whole repository, so it is in the file kafka-quotas.yaml at the root.",
    ),
    _error("unknown-lint-rule", "The lint settings name a rule that does not exist, or whose severity cannot be changed."),
    _error("invalid-limit", "A limit whose smallest value is above its largest allows no value at all."),
    _error(
        "cluster-misplaced",
        "A Cluster manifest decides where credentials are sent and which limits a write has. So it must not lie in a folder that "
        "a team reviews for itself. clusterPaths in kafka-quotas.yaml lists where Cluster manifests may lie. Without "
        "clusterPaths, they lie outside the paths of all owners. While an owner has no paths, they lie in the root folder only.",
    ),
    _error(
        "cluster-without-id",
        "Two Cluster manifests name one server, and one of them has no clusterId. Each may lift the limits of the other, so both "
        "must name their cluster. The command kafka-quotas export prints the id of a cluster.",
    ),
    _error("duplicate-cluster", "Two Cluster manifests have one name, so the limits of the cluster are ambiguous."),
)

_VALUES: Final = (
    _error(
        "value-syntax",
        "A value is not a plain decimal number with an optional unit. Signs, separators and leading zeros are refused.",
    ),
    _error("unknown-unit", "Units are case-sensitive: MB is a million bytes, MiB is 1048576 bytes, and Mb would be bits."),
    _error(
        "value-not-positive",
        "Kafka refuses limits of 0 and below (since 3.5), and older versions read 0 in several ways: no limit, or a ban. "
        "Without the key, the next weaker precedence level decides, e.g. a default. To exempt from that, write a value that no "
        "client reaches, e.g. 1TB.",
    ),
    _error(
        "value-not-finite",
        "A broker accepts NaN and infinity for some keys and then never throttles. Kafka has no value for no limit. Without the "
        "key, the next weaker precedence level decides, e.g. a default. To exempt from that, write a value that no client "
        "reaches: 1TB for byte rates, 1000000 for the other keys.",
    ),
    _error(
        "value-missing",
        "A key has no value. null drops a key in overrides and profiles only. Without the key, the next weaker precedence level "
        "decides, e.g. a default. To exempt from that, write a value that no client reaches, e.g. 1TB.",
    ),
    _error(
        "value-fractional",
        "Byte rates and the connection rate are whole numbers. Brokers refuse most fractions and bend the others.",
    ),
    _error(
        "value-too-large",
        "The value is above the range of the key's type. For no limit, write 1TB or 1000000, which no client reaches.",
    ),
    _error(
        "value-not-exact", "Kafka carries values as 64-bit floats. This number would be stored as another one than was reviewed."
    ),
)

_ENTITIES: Final = (
    _error("empty-name", "A name is empty or null. Quote it, if null is the name. For the default entity write {default: true}."),
    _error("name-too-long", "Kafka's protocol allows names of at most 32767 bytes of UTF-8."),
    _error(
        "illegal-entity",
        "An entity is a user, a client-id, both together, or an ip alone. Kafka refuses every other combination.",
    ),
    _error(
        "key-not-for-entity",
        "connection_creation_rate is for ip entities only, and they take no other key. Kafka refuses the rest.",
    ),
    _error("ip-invalid", "An ip entity is one IPv4 or IPv6 address. Kafka knows neither networks nor patterns."),
    _lint(
        "ip-host-name",
        "Each broker resolves a host name as ip once, and never again. A broker that cannot resolve it drops other quota "
        "changes of the same batch, even after a restart. Write the address. A repository may lower this rule to adopt a "
        "cluster that has such entities.",
        Severity.ERROR,
    ),
    _lint(
        "ip-not-canonical",
        "An address has many spellings, and to Kafka each is another entity, although they share one slot in the brokers: the "
        "last one applied wins. Use the canonical spelling.",
    ),
    _lint(
        "user-prefix",
        "Quotas are looked up by the principal's name without its type. A quota for User:alice matches only a principal that is "
        "literally called User:alice, so it limits no client, silently.",
    ),
    _lint(
        "literal-default-name",
        "The name <default> is an ordinary name in the API. The default entity is written {default: true}. "
        "Clusters migrated from ZooKeeper before Kafka 3.6.2 or 3.7.1 have this name where the default was meant.",
    ),
    _lint(
        "percent-encoded-name",
        "Percent encoding exists only in ZooKeeper's node names and in metric tags. A name with %40 matches a client that is "
        "literally called so. Clusters migrated from ZooKeeper before Kafka 3.6.2 or 3.7.1 have such names by mistake.",
    ),
    _lint("unusual-name", "Blanks, control characters or invisible characters in a name are legal, and most often an accident."),
    _lint(
        "mixed-scripts",
        "One word of a name has letters of two scripts that look alike, e.g. a Cyrillic a among Latin letters. A reviewer reads "
        "another name than Kafka does, so the limit applies to no client, or to another one. Type the name again.",
    ),
    _lint(
        "unrendered-template",
        "A placeholder of a template language stands in a name, so the step that fills it in did not run. Kafka takes names as "
        "they are written, so the limit would apply to no client.",
    ),
    _lint(
        "wildcard-name",
        "Names are literal: an asterisk matches only a client that has one in its name. Kafka has no patterns here.",
    ),
    _error("duplicate-entity", "Two entries claim one entity for one cluster, so the order of files would decide the limit."),
    _error(
        "too-many-entities",
        "A list of users and a list of client-ids name an entity for each pair. One entry may name 10,000 entities.",
    ),
    _error(
        "unknown-profile",
        "An entry, an override or a profile names a profile that the Repository and Cluster manifests lack. Correct the name, or "
        "add the profile.",
    ),
    _error(
        "circular-profile",
        "A profile is based on itself, directly or through others, so it has no values to begin with. Remove one of the bases.",
    ),
    _error(
        "invalid-unit",
        "A value is a mapping, and not one of {clusterTotal: 60MiB}, {shares: 2, of: 200MiB} and {budget: 25%}, or its "
        "number is not above 0.",
    ),
    _error(
        "invalid-expiry",
        "A value that expires has value and until, and may have then. until is a date, which is the start of that day in UTC, or "
        "a time with its offset from UTC. A time without an offset would mean another moment on each machine.",
    ),
    _error(
        "unit-not-for-key",
        "The total of this key is not a sum over brokers: a percentage is of one thread of a broker, and only the active "
        "controller counts mutations. Write the number.",
    ),
    _error(
        "part-too-small",
        "A total divided by the brokers, or a share of a capacity, is less than the smallest limit that Kafka takes. Raise the "
        "total, or declare the limit of each broker.",
    ),
    _error(
        "unknown-capacity",
        "A value is a number of shares, and their capacity is not declared. Write of beside shares, or the key in spec.capacity "
        "of the Cluster manifest.",
    ),
    _error(
        "unknown-budget",
        "A value is a part of a budget, and its owner has no budget of that key on the cluster. Write one in spec.budgets of the "
        "Repository manifest.",
    ),
    _lint(
        "above-budget",
        "The limits that an owner declares for a cluster add up to more than its budget. Lower some of them, or change "
        "spec.budgets of the Repository manifest. Each entity counts once, also a default entity.",
        Severity.ERROR,
    ),
    _error(
        "unknown-brokers",
        "A value is a total of the cluster, and the brokers are not known: the snapshot has none. Record it again with "
        "kafka-quotas export --snapshot.",
    ),
    _error(
        "duplicate-group",
        "Two groups of one cluster have the same name, so it is not clear who shares which limit. Rename one of them.",
    ),
    _error(
        "member-of-two-groups",
        "A user or client-id is in two groups. Kafka gives each request one limit, so the order of groups would decide.",
    ),
    _error(
        "group-needs-plugin",
        "Prefixes of names are matched by the plugin of groups on the brokers. Without it each member needs a quota of its own, "
        "and the names are not known. List the names.",
    ),
    _error(
        "group-prefix-too-long",
        "A prefix of a group has more than 255 characters. The plugin of groups ignores it: brokers look up each prefix of "
        "a name with every request. Shorten it.",
    ),
    Rule(
        id="member-with-own-quota",
        severity=Severity.INFO,
        explanation="A quota that names a member decides before the quota of its group, as in Kafka's precedence. The member "
        "does not share the limit of the group.",
    ),
    _error(
        "unknown-leaders",
        "A value is in proportion to the leaders of partitions, and none is known: the topics do not exist, the principal may "
        "not describe them, or a snapshot was read, which has no topics. Read the live cluster, or declare a total.",
    ),
    _error("outside-scope", "An entity is declared that the cluster's scope does not own. It could never be written."),
    _error("unknown-cluster", "A document or an override names a cluster that no Cluster manifest has."),
    _error("overlapping-overrides", "Two overrides of one entry match one cluster, so their order would decide the limit."),
    _lint("no-cluster-matches", "Labels that no cluster has: the entry or override is used nowhere."),
)

_OWNERS: Final = (
    _error(
        "missing-owner",
        "The repository has owners, and a document names none. Write metadata.owner: it must be known who declares what.",
    ),
    _error(
        "unknown-owner",
        "A document or a limit names an owner that the Repository document does not have, so its entities are not known.",
    ),
    _error(
        "outside-owner-paths",
        "A document names an owner and is not in one of its paths. Else an author could declare anything in another owner's "
        "name, past the people who review that owner's folder.",
    ),
    _error(
        "outside-owner-entities",
        "An owner declares an entity outside its own list. The identity of a quota is its entity, wherever the file is.",
    ),
    _error(
        "foreign-entity",
        "An owner declares an entity of another one. A pair of user and client-id belongs to the owner of the user, because "
        "brokers authenticate users and do not check client-ids.",
    ),
    _error("outside-owner-clusters", "An owner declares something for a cluster that the Repository document does not give it."),
    _error(
        "above-limit", "A value is above the largest that the Repository document allows, on a cluster and with its overrides."
    ),
    _error(
        "withheld-in-stage",
        "An earlier stage of apply --all-clusters withheld the changes of an owner, so later stages withhold them too: they were "
        "never tried. Resolve the reason at the cluster that is named.",
    ),
    _error(
        "below-limit", "A value is below the smallest that the Repository document allows, on a cluster and with its overrides."
    ),
)

_EXPORT: Final = (
    Rule(
        id="value-not-declarable",
        severity=Severity.WARNING,
        explanation="An entity on the cluster has a value that no manifest can give: zero, negative, not finite, or a fraction. "
        "Older versions and migrations leave such values behind, and brokers refuse to set them again. Export leaves the whole "
        "entity out, as a comment. Set or remove the value by hand, then export again.",
    ),
    Rule(
        id="entity-not-declarable",
        severity=Severity.WARNING,
        explanation="An entity on the cluster is of a type, shape or name that this tool does not write. It is shown and kept.",
    ),
)

UNREAD: Final = frozenset({"unknown-document", *(rule.id for rule in (*_FILES, *_YAML))})
"""Findings after which the rest of a file is unknown."""

RULES: Final[Mapping[str, Rule]] = {
    rule.id: rule for rule in (*_FILES, *_YAML, *_STRUCTURE, *_VALUES, *_ENTITIES, *_OWNERS, *_EXPORT)
}
"""All rules by id."""
