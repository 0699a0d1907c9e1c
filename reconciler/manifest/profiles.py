"""Profiles: named values that entries use, from the Repository and Cluster manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from reconciler.manifest.collector import Collector, finding
from reconciler.manifest.expiry import in_profile, override_value
from reconciler.manifest.quota_entries import parse_quotas, profile_choice
from reconciler.model import (
    Entity,
    EntityType,
    Finding,
    Message,
    ProfileChoice,
    QuotaKey,
    QuotaProfile,
    Related,
    Span,
    WrittenQuota,
    compose,
    key_part,
    legal_keys,
)
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping

ProfileValues: TypeAlias = Mapping[QuotaKey, WrittenQuota]

_IP: Final = (EntityType.IP.value,)
_LEGAL: Final = {is_ip: frozenset(legal_keys(_IP if is_ip else (EntityType.USER.value,))) for is_ip in (False, True)}


def parse_profiles(node: YamlMapping | None, out: Collector) -> dict[str, QuotaProfile]:
    """``spec.profiles`` of a Repository or Cluster manifest, by name. What the schema refused is left out."""
    profiles = {}
    for name, value in node.items.items() if node else ():
        if node is not None and isinstance(value, YamlMapping):
            line, column = node.keys[name]
            profiles[name] = QuotaProfile(
                name=name,
                quotas=dict(parse_quotas(value.items.get("quotas"), None, out)),
                base=profile_choice(value, out),
                source=Span(file=out.file, line=line, column=column),
            )
    return profiles


class ProfileTable:
    """The profiles of one cluster, with the findings about those that are used."""

    def __init__(self, layers: Sequence[Mapping[str, QuotaProfile]]) -> None:
        """``layers``: of the repository, then of the cluster. A later one changes the values of an earlier one of its name."""
        self._layers = layers
        self._known: dict[str, ProfileValues] = {}
        self._reported: set[Span] = set()
        self.findings: list[Finding] = []

    def values(self, choice: ProfileChoice, entity: Entity) -> ProfileValues:
        """The values of a profile for an entity that uses it. Without those that the entity cannot have, which are findings."""
        values = self._values(choice)
        legal = _LEGAL[entity.types == _IP]
        if values.keys() <= legal:
            return values
        for key in sorted(values.keys() - legal):
            message = compose(
                "profile {profile} sets {key}, which cannot be set for {entity}",
                profile=shown_part(choice.name),
                key=key_part(key.value),
                entity=entity,
            )
            related = Related(span=values[key].source, message="the value of the profile")
            self._add(finding("key-not-for-entity", message, choice.source, related=[related], entity=entity, key=key.value))
        return {key: quota for key, quota in values.items() if key in legal}

    def _values(self, choice: ProfileChoice) -> ProfileValues:
        values: ProfileValues = {}
        for name, definitions in reversed(self._chain(choice)):
            merged = dict(self._known.get(name, values))
            for profile in definitions:
                for key, quota in profile.quotas.items():
                    if quota is None:
                        merged.pop(key, None)
                    else:
                        merged[key] = override_value(merged.get(key), in_profile(quota, name))
            values = self._known[name] = merged
        return self._known.get(choice.name, values)

    def _chain(self, choice: ProfileChoice) -> list[tuple[str, list[QuotaProfile]]]:
        """The profile, that on which it is based, and so on, as far as their values are not known yet."""
        chain: dict[str, list[QuotaProfile]] = {}
        step: ProfileChoice | None = choice
        while step is not None and step.name not in self._known:
            if step.name in chain:
                circle = [*list(chain)[list(chain).index(step.name) :], step.name]
                message = compose(
                    "profile {name} is based on itself: {circle}",
                    name=shown_part(step.name),
                    circle=shown_part(" -> ".join(circle)),
                )
                self._add(finding("circular-profile", message, step.source))
                break
            definitions = [layer[step.name] for layer in self._layers if step.name in layer]
            if not definitions:
                self._add(finding("unknown-profile", self._unknown(step.name), step.source))
                break
            chain[step.name] = definitions
            step = next((profile.base for profile in reversed(definitions) if profile.base is not None), None)
        return list(chain.items()) if step is None or step.name not in self._known else [*chain.items(), (step.name, [])]

    def _unknown(self, name: str) -> Message:
        known = sorted({known for layer in self._layers for known in layer})
        hint = did_you_mean(name, known) if known else ". Neither the Repository nor the Cluster manifest has profiles"
        return compose("the profile {name} does not exist{hint}", name=shown_part(name), hint=hint)

    def _add(self, problem: Finding) -> None:
        """Once for each place: one entry can have a thousand names."""
        if problem.span is not None and problem.span not in self._reported:
            self._reported.add(problem.span)
            self.findings.append(problem)
