"""The quotas that another tool's files declare, checked as a manifest's are, and what could not be converted; file by file.

Findings that only an import has carry an example each: commands that make a file, and convert it. Wrong names and values have the
ids that they have in manifests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.formats import ValueRefusedError, declarable, no_limit_advice, parse_value
from reconciler.model import (
    KNOWN_KEYS,
    Entity,
    Example,
    Finding,
    QuotaKey,
    Related,
    Rule,
    Severity,
    Span,
    compose,
    key_part,
    legal_keys,
)
from reconciler.text import did_you_mean, number_text, shown_part
from reconciler.yaml import YamlNode, YamlProblem

_NUMBER: Final = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST: Final = 400
_SPEC: Final = "spec: {type: CLIENT, entity: {clientId: orders}, configs: {producerByteRate: 1048576}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedQuota:
    """One entity with all its keys, where it is written, and the cluster when the file names one."""

    entity: Entity
    quotas: Mapping[str, float]
    span: Span
    cluster: str | None = None
    namespace: str | None = None
    """Of Kubernetes: clusters of one name in two namespaces are two clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """The quotas of some files in the order in which they are written, and the findings."""

    quotas: tuple[ImportedQuota, ...]
    findings: tuple[Finding, ...]


class Gatherer:
    """Collects what is found in one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.quotas: list[ImportedQuota] = []
        self.findings: list[Finding] = []

    def span(self, node: YamlNode) -> Span:
        """Return the place where a node of YAML begins."""
        return Span(file=self.file, line=node.line, column=node.column)

    def at(self, line: int, column: int = 1) -> Span:
        """A place in the file."""
        return Span(file=self.file, line=line, column=column)

    def refuse(
        self,
        rule_id: str,
        message: str,
        place: YamlNode | Span,
        *,
        entity: Entity | None = None,
        key: str | None = None,
        related: Sequence[Related] = (),
    ) -> None:
        """Note what is not converted, and why. ``rule_id`` is of the import's own catalogue, or of the manifests'."""
        span = place if isinstance(place, Span) else self.span(place)
        rule = IMPORT_RULES.get(rule_id)
        severity = rule.severity if rule else Severity.ERROR
        finding = Finding(
            id=rule_id, severity=severity, message=message, span=span, entity=entity, key=key, related=tuple(related)
        )
        self.findings.append(finding)

    def problems(self, problems: Sequence[YamlProblem]) -> bool:
        """Note what is wrong with a file as YAML; true when there is something."""
        for problem in problems:
            self.refuse(problem.id, problem.message, self.at(problem.line, problem.column))
        return bool(problems)

    def add(
        self,
        entity: Entity,
        quotas: Mapping[str, float],
        place: YamlNode | Span,
        *,
        cluster: str | None = None,
        namespace: str | None = None,
    ) -> None:
        """Note one converted entity; one without any key declares nothing, and is only mentioned."""
        span = place if isinstance(place, Span) else self.span(place)
        if not quotas:
            self.refuse(
                "import-left-out",
                compose("{entity} has no quota here, so there is nothing to declare", entity=entity),
                span,
                entity=entity,
            )
            return
        quota = ImportedQuota(entity=entity, quotas=dict(quotas), span=span, cluster=cluster, namespace=namespace)
        self.quotas.append(quota)

    def found(self) -> ImportResult:
        """Return the quotas and findings gathered so far."""
        return ImportResult(quotas=tuple(self.quotas), findings=tuple(self.findings))


def read_value(out: Gatherer, entity: Entity, key: str, text: str, place: Span) -> float | None:
    """The number that Kafka gets: the double nearest to the text, as every one of these tools sends it.

    ``None`` after a finding: an unknown key, one that is not for this entity, no plain number, or one that Kafka refuses.
    """
    legal = legal_keys(entity.types)
    if key not in KNOWN_KEYS:
        out.refuse(
            "unknown-quota-key",
            compose(
                "{key} is not a quota key{hint}",
                key=shown_part(key),
                hint=did_you_mean(key, KNOWN_KEYS),
            ),
            place,
            entity=entity,
        )
        return None
    if key not in legal:
        message = compose(
            "{key} cannot be set for {types}. Possible: {legal}",
            key=key_part(key),
            types=" and ".join(entity.types),
            legal=", ".join(legal),
        )
        out.refuse("key-not-for-entity", message, place, entity=entity, key=key)
        return None
    number = plain_number(text)
    if number is None:
        message = compose("{key} is {text}, which is not a plain number. Write its digits", key=key, text=shown_part(text))
        out.refuse("value-syntax", message, place, entity=entity, key=key)
        return None
    if not declarable(QuotaKey(key), number):
        rule_id, why = _why_not(QuotaKey(key), number)
        out.refuse(rule_id, why, place, entity=entity, key=key)
        return None
    return number


def plain_number(text: str) -> float | None:
    """The double of a decimal number (``1024``, ``2.0E7``); ``None`` for anything else, also for ``010`` (octal in YAML 1.1)."""
    return float(text) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None


def _why_not(key: QuotaKey, number: float) -> tuple[str, str]:
    if math.isinf(number):
        advice = no_limit_advice(key)
        return "value-not-finite", compose("{key} is beyond every number. {advice}", key=key_part(key), advice=advice)
    try:
        parse_value(key, number_text(number))
    except ValueRefusedError as refused:
        return refused.id, str(refused)
    msg = f"{number!r} can be declared for {key}"
    raise AssertionError(msg)


def _rule(rule_id: str, explanation: str, severity: Severity = Severity.ERROR) -> tuple[str, Rule]:
    return rule_id, Rule(id=rule_id, severity=severity, explanation=explanation)


IMPORT_RULES: Final[Mapping[str, Rule]] = dict(
    (
        _rule(
            "import-template",
            "A file, an entity or a value of another tool is a template: a variable, a function, a loop, a condition. Its result "
            "is known where that tool runs, not here, and it is never guessed. Let the tool itself print the result "
            "(terraform state pull, jikkou prepare, helm template), and import that. Or run kafka-quotas export, which reads "
            "the quotas that the cluster has.",
        ),
        _rule(
            "import-unsupported",
            "Something in another tool's file has no counterpart among Kafka's client quotas, is not known here, or is in a form "
            "that is not read. Nothing of the entry is converted, because half an entity would be another quota.",
        ),
        _rule(
            "import-ambiguous",
            "A file can be read in two ways that lead to different quotas. Or the tool itself would not do what the file "
            "seems to mean. Correct the other tool's file, or write the manifest by hand.",
        ),
        _rule(
            "import-syntax",
            "A file is not of the tool --from, or has a fault of syntax. What comes after the fault is unread, so nothing of the "
            "file is converted.",
        ),
        _rule(
            "import-nothing-found",
            "A file that was named has no quota. Most often it is the wrong file, or --from names the wrong tool.",
        ),
        _rule(
            "import-left-out",
            "Something was left out on purpose, because it declares no quota: a resource of another kind, one that is marked for "
            "deletion, an entity without a value. It does not count as unconverted.",
            Severity.INFO,
        ),
    )
)
"""All of them by id."""


def _file(name: str, *lines: str) -> str:
    texts = " ".join(f"'{line}'" for line in lines)
    return f"printf '%s\\n' {texts} > {name}"


def _import(tool: str, name: str) -> str:
    return f"kafka-quotas import --from {tool} {name} --folder quotas"


def _jikkou(bad: str, good: str) -> Example:
    head = ("apiVersion: kafka.jikkou.io/v1beta2", "kind: KafkaClientQuota")
    check = _import("jikkou", "quotas.yaml")
    return Example(
        bad=f"{_file('quotas.yaml', *head, bad)}\n{check}", good=f"{_file('quotas.yaml', *head, good)}\n{check}", commands=True
    )


_BARE: Final = '{"version": 4, "resources": []}'

EXAMPLES: Final[Mapping[str, Example]] = {
    "import-template": _jikkou(_SPEC.replace("orders", '"{{ values.app }}"'), _SPEC),
    "import-unsupported": _jikkou(_SPEC.replace("producerByteRate", "controllerMutationRate"), _SPEC),
    "import-ambiguous": _jikkou(_SPEC.replace("CLIENT", "USERS_DEFAULT").replace("clientId", "user"), _SPEC),
    "import-syntax": _jikkou(_SPEC.replace("spec: ", "spec: []  # "), _SPEC),
    "import-nothing-found": Example(
        bad=f"{_file('state.json', _BARE)}\n{_import('terraform', 'state.json')}",
        good=_jikkou(_SPEC, _SPEC).good,
        commands=True,
    ),
    "import-left-out": _jikkou(f"metadata: {{annotations: {{jikkou.io/delete: true}}}}\n{_SPEC}", _SPEC),
}
"""By rule id."""

EXPLAINED: Final = (IMPORT_RULES, EXAMPLES)
"""What ``explain`` knows of this feature."""
