"""Rules about quotas that Strimzi's operators write: declared here, they are removed or overwritten at the next reconciliation.

Sources: Strimzi's ``KafkaUserOperator``, ``KafkaUserModel.decodeUsername`` and ``DefaultKafkaQuotasManager``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.model import DEFAULT, Finding, any_matches, compose, name_part
from reconciler.policy.lint.subject import DEFAULT_USER, USER, Subject, lint

_CERTIFICATE: Final = re.compile(r"CN=(?P<resource>[^,+=<>#;\"\\]+)")


def resource_of(user: str) -> str | None:
    """The KafkaUser by whose name the User Operator sets or removes this user's quotas; ``None``: it never writes them.

    It looks for ``CN=`` in a name, and then writes ``CN=RESOURCE`` and ``RESOURCE`` only: no other distinguished name.
    """
    if "CN=" not in user:
        return user
    certificate = _CERTIFICATE.fullmatch(user)
    return certificate["resource"] if certificate else None


def strimzi_owns(subject: Subject) -> Iterator[Finding]:
    """Declared quotas of a user alone, where the operators of Strimzi write those."""
    operators = subject.spec.brokers.strimzi
    if operators is None:
        return
    if DEFAULT_USER in subject.desired.entities:
        message = compose(
            "Strimzi's Cluster Operator sets or removes the quotas of the default user. "
            "Write spec.kafka.quotas of the Kafka instead."
        )
        yield lint("strimzi-owns-default", message, entity=DEFAULT_USER, span=subject.place(DEFAULT_USER))
    for entity in subject.desired.entities:
        ((kind, name), *others) = entity.parts
        if kind != USER or others or name is DEFAULT or not isinstance(name, str):
            continue
        resource = resource_of(name)
        if resource is None or any_matches(operators.ignored, entity):
            continue
        message = compose(
            "Strimzi's User Operator sets or removes the quotas of {entity}. Write spec.quotas of the KafkaUser {resource}, or "
            "let the operator ignore this user and list it in spec.strimzi.ignoredUsers.",
            entity=entity,
            resource=name_part(resource),
        )
        yield lint("strimzi-owns-user", message, entity=entity, span=subject.place(entity))
