"""docs/apply.md names every status, every way a run can end, and the numbers that the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import errors
from reconciler.apply.executor import ApplySettings
from reconciler.apply.outcomes import Backoff
from reconciler.apply.writing import ChunkLimits
from reconciler.model.plan import ApplyResult, ChangeStatus

PAGE = (Path(__file__).parents[3] / "docs" / "apply.md").read_text("utf-8")
NOT_OF_A_RUN = {
    "usage", "output", "sandbox", "traffic", "baseline", "not-applied", "failed", "refused", "forge", "vanished",
    "quota-callback",
}  # fmt: skip
"""Wrong usage, other commands and services, the Python interface, and the roots of the error tree."""

REASONS = {
    kind.failure_reason for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ReconcilerError)
}


@pytest.mark.parametrize("reason", sorted(REASONS - NOT_OF_A_RUN | {"deadline", "interrupted", "internal", "not-verified"}))
def test_every_reason_for_an_end_is_explained(reason: str) -> None:
    assert f"`{reason}`" in PAGE


@pytest.mark.parametrize("word", [*ChangeStatus, *ApplyResult])
def test_every_status_and_result_is_explained(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_the_numbers_are_those_of_the_code() -> None:
    settings, backoff = ApplySettings(), Backoff()
    assert (ChunkLimits().keys, ChunkLimits().size) == (10_000, 1024 * 1024)
    assert "at most 10,000 changed keys and about 1 MiB (2,000 keys for brokers with ZooKeeper)" in PAGE
    assert f"{settings.run_seconds / 60:g} minutes have passed" in PAGE
    assert f"{settings.verify_seconds:g} seconds without progress" in PAGE
    assert f"tried at most {backoff.attempts} times. Waits double from {backoff.first:g} to {backoff.longest:g} seconds" in PAGE
    assert 10 < sum(backoff.waits(lambda: 0.0)) < sum(backoff.waits(lambda: 1.0)) < 22
