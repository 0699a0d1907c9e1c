"""What there is to say about an id: the reason, and an example of what is wrong and what is right. The tests run every one."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from reconciler.model.finding import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """``bad`` produces what it is an example of, ``good`` does not.

    Both are manifests (a YAML stream), or with ``commands`` shell commands that make such files in an empty folder and
    check them.
    ``live``: what the cluster has, one entity a line, as ``describe`` prints it.
    """

    bad: str
    good: str
    live: tuple[str, ...] = ()
    commands: bool = False


class Topic(enum.StrEnum):
    """What an id stands for."""

    FINDING = "finding"
    GUARD = "guard"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What there is to say about one id. ``severity`` is for findings only; ``adjustable``: ``spec.lint`` may change it."""

    id: str
    topic: Topic
    text: str
    severity: Severity | None = None
    adjustable: bool = False
    example: Example | None = None


_QUOTAS: Final = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"
_CLUSTER: Final = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n"
_REPOSITORY: Final = "apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n"


def quotas_manifest(*pairs: tuple[str, str]) -> str:
    """A ClientQuotas document of entries, each the texts of its ``match`` and its ``quotas``."""
    return _QUOTAS + "".join(f"    - match: {match}\n      quotas: {quotas}\n" for match, quotas in pairs)


def quota_manifest(quotas: str, match: str = "{user: orders}") -> str:
    """A ClientQuotas document of one entry."""
    return quotas_manifest((match, quotas))


def cluster_manifest(*lines: str, prune: str = "never") -> str:
    """A Cluster document called ``prod``."""
    return _CLUSTER + "".join(f"  {line}\n" for line in (f"prune: {prune}", *lines))


def repository_manifest(*lines: str) -> str:
    """A Repository document."""
    return _REPOSITORY + "".join(f"  {line}\n" for line in lines)


def join_manifests(*documents: str) -> str:
    """Several documents in one file."""
    return "---\n".join(documents)
