"""Values with ``until``: which of two values applies at a moment, and what is wrong with a moment."""

from __future__ import annotations

import datetime

import pytest

from reconciler.manifest.desired import DesiredResult, desired_state
from reconciler.manifest.documents import ClientQuotasDocument, ClusterDocument, RepositoryDocument
from reconciler.manifest.reading import read_documents
from reconciler.manifest.units import compute_units
from reconciler.model import BrokerFacts
from reconciler.model.quota import QuotaKey
from reconciler.model.state import DesiredQuota
from tests.builders import user
from tests.support.desired_text import desired_of
from tests.support.manifests import cluster, quotas

ALICE, BOB = user("alice"), user("bob")
RATE = QuotaKey.PRODUCER_BYTE_RATE
MIB = 2.0**20
EXPIRY = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
BEFORE = EXPIRY - datetime.timedelta(microseconds=1)


def read(*documents: str, at: datetime.datetime | None) -> tuple[DesiredResult, tuple[str, ...]]:
    return desired_of(cluster(), *documents, at=at)


def alice(value: object, at: datetime.datetime | None = BEFORE) -> tuple[float | None, tuple[str, ...]]:
    result, findings = read(quotas(({"user": "alice"}, {RATE.value: value})), at=at)
    quota = result.state.entities[ALICE].quotas.get(RATE)
    return (None if quota is None else quota.value), findings


TEMPORARY = {"value": "20MiB", "until": "2026-12-01", "then": "10MiB"}


def test_a_date_is_the_start_of_that_day_in_utc() -> None:
    assert alice(TEMPORARY, BEFORE) == (20 * MIB, ())
    assert alice(TEMPORARY, EXPIRY) == (10 * MIB, ())
    assert alice(TEMPORARY, None) == (20 * MIB, ())


@pytest.mark.parametrize(
    ("until", "moment"),
    [
        ("2026-12-01T18:00+01:00", datetime.datetime(2026, 12, 1, 17, tzinfo=datetime.UTC)),
        ("2026-12-01 18:00:30Z", datetime.datetime(2026, 12, 1, 18, 0, 30, tzinfo=datetime.UTC)),
        ("2026-12-01T00:30-11:30", datetime.datetime(2026, 12, 1, 12, tzinfo=datetime.UTC)),
        ("2024-02-29", datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)),
    ],
)
def test_a_time_counts_with_its_offset(until: str, moment: datetime.datetime) -> None:
    value = {**TEMPORARY, "until": until}

    assert alice(value, moment - datetime.timedelta(seconds=1))[0] == 20 * MIB
    assert alice(value, moment)[0] == 10 * MIB


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({**TEMPORARY, "until": "2026-12-01T18:00"}, "is not a date or a time with its offset from UTC"),
        ({**TEMPORARY, "until": "2026-12-01T18:00 Europe/Berlin"}, "is not a date"),
        ({**TEMPORARY, "until": "2026-12-01T18:00+25:00"}, "is not a date"),
        ({**TEMPORARY, "until": "2026-02-29"}, "is not a date"),
        ({**TEMPORARY, "until": "2026-12-1"}, "is not a date"),
        ({**TEMPORARY, "until": "9999-12-31T23:59-01:00"}, "is not a date"),
        ({**TEMPORARY, "until": "tomorrow"}, "is not a date"),
        ({"value": "20MiB", "then": "10MiB"}, "write a value that expires as"),
        ({"until": "2026-12-01", "then": "10MiB"}, "write a value that expires as"),
        ({"clusterTotal": "60MiB", "until": "2026-12-01"}, "write a value that expires as"),
        ({**TEMPORARY, "then": TEMPORARY}, "leave out then"),
    ],
)
def test_a_value_that_cannot_be_decided_is_refused_with_a_sentence(value: object, words: str) -> None:
    content = read_documents(quotas(({"user": "alice"}, {RATE.value: value})).encode(), "all.yaml")
    findings = [finding for finding in content.findings if finding.id == "invalid-expiry"]

    assert len(findings) == 1, content.findings
    assert words in findings[0].message


def test_without_then_the_key_is_removed_and_its_expiry_stays_known() -> None:
    result, findings = read(quotas(({"user": "alice"}, {RATE.value: {"value": "20MiB", "until": "2026-12-01"}})), at=EXPIRY)
    declared = result.state.entities[ALICE]
    other = declared.expiries[RATE].other

    assert (dict(declared.quotas), findings) == ({}, ())
    assert declared.expiries[RATE].expired
    assert isinstance(other, DesiredQuota)
    assert other.value == 20 * MIB


def test_a_total_that_expires_is_divided_on_both_sides() -> None:
    value = {"value": {"clusterTotal": "60MiB"}, "until": "2026-12-01", "then": {"clusterTotal": "30MiB"}}
    facts = BrokerFacts(brokers=(1, 2, 3))
    for at, now, other in ((BEFORE, 20 * MIB, 10 * MIB), (EXPIRY, 10 * MIB, 20 * MIB)):
        result, findings = read(quotas(({"user": "alice"}, {RATE.value: value})), at=at)
        declared = compute_units(result.state, facts)[0].entities[ALICE]

        assert findings == ()
        assert declared.quotas[RATE].value == now
        assert declared.expiries[RATE].of_value.other == other


def test_what_follows_is_checked_before_it_applies() -> None:
    rules = "limits: [{match: {user: {any: true}}, producer_byte_rate: {max: 30MiB}}]"
    content = read_documents(f"apiVersion: kafka-quotas/v1\nkind: Repository\nspec: {{{rules}}}\n".encode(), "kafka-quotas.yaml")
    limits = [limit for each in content.documents if isinstance(each, RepositoryDocument) for limit in each.limits]
    entry = read_documents(quotas(({"user": "alice"}, {RATE.value: {**TEMPORARY, "then": "40MiB"}})).encode(), "all.yaml")
    documents = [each for each in entry.documents if isinstance(each, ClientQuotasDocument)]
    spec = read_documents(cluster().encode(), "c.yaml").documents[0]
    assert isinstance(spec, ClusterDocument)

    result = desired_state(documents, spec.spec, limits=limits, at=BEFORE)

    assert [finding.id for finding in result.findings] == ["above-limit"]


def test_an_error_on_both_sides_of_an_expiry_is_one_error() -> None:
    unknown = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas: [{match: {user: bob}, profile: gold}]\n"
    _, findings = read(quotas(({"user": "alice"}, {RATE.value: TEMPORARY})), unknown, at=BEFORE)
    assert findings == ("unknown-profile",)
