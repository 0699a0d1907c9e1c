"""Kafka's rules told a second time, slowly and without the product's tables: tags first, then the limit of the tags."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reconciler.model.entity import DEFAULT, EntityName

Names = tuple[EntityName | None, EntityName | None]
"""User and client id of a quota; ``None`` where it does not speak of one."""

CLIENT, USER, PAIR = 1, 2, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The quota that holds."""

    entity: Names
    value: float


def tags_of(
    rules: Mapping[Names, float], user: str, client_id: str, *, remembered: Collection[int] = frozenset()
) -> tuple[str, str]:
    """The metric tags of a request; ``remembered`` kinds were in use once, which brokers before 4.2 do not forget."""
    kinds = set(remembered) | {_kind(*names) for names in rules}
    if kinds <= {CLIENT}:
        return "", client_id
    if kinds == {USER}:
        return user, ""
    if kinds == {PAIR}:
        return user, client_id
    return _walked(rules, user, client_id)


def _kind(user: EntityName | None, client_id: EntityName | None) -> int:
    if user is None:
        return CLIENT
    return USER if client_id is None else PAIR


def _walked(rules: Mapping[Names, float], user: str, client_id: str) -> tuple[str, str]:
    for rule_user in (user, DEFAULT):
        if (rule_user, client_id) in rules or (rule_user, DEFAULT) in rules:
            return user, client_id
        if (rule_user, None) in rules:
            return user, ""
    return "", client_id


def limit_of(rules: Mapping[Names, float], user: str, client_id: str) -> Hit | None:
    """The limit of the request's tags."""
    tag_user, tag_client = tags_of(rules, user, client_id)
    order: list[Names] = []
    if tag_user and tag_client:
        order = [(tag_user, tag_client), (tag_user, DEFAULT), (DEFAULT, tag_client), (DEFAULT, DEFAULT)]
    elif tag_user:
        order = [(tag_user, None), (DEFAULT, None)]
    elif tag_client:
        order = [(None, tag_client), (None, DEFAULT)]
    return next((Hit(entity=names, value=rules[names]) for names in order if names in rules), None)
