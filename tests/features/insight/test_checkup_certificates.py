"""When ``doctor`` warns of a certificate, and when a connection cannot work any more."""

from __future__ import annotations

import datetime

import pytest

from reconciler.features.insight.checkup import CheckStatus, check_certificates
from reconciler.model import Certificate, CertificateOwner

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
SECOND = datetime.timedelta(seconds=1)


def client(left: datetime.timedelta) -> Certificate:
    return Certificate(owner=CertificateOwner.CLIENT, name="CN=quotas", ends=NOW + left)


def server(left: datetime.timedelta, name: str = "b1:9093") -> Certificate:
    return Certificate(owner=CertificateOwner.SERVER, name=name, ends=NOW + left)


def authority(left: datetime.timedelta, name: str = "CN=ca") -> Certificate:
    return Certificate(owner=CertificateOwner.AUTHORITY, name=name, ends=NOW + left)


@pytest.mark.parametrize(
    ("left", "status"),
    [
        (400 * DAY, CheckStatus.PASSED),
        (30 * DAY + SECOND, CheckStatus.PASSED),
        (30 * DAY, CheckStatus.WARN),
        (SECOND, CheckStatus.WARN),
        (0 * DAY, CheckStatus.FAIL),
        (-1 * DAY, CheckStatus.FAIL),
    ],
)
@pytest.mark.parametrize("certificate", [client, server, authority])
def test_the_last_thirty_days_warn_and_the_end_fails(certificate, left, status):
    check = check_certificates([certificate(left), server(500 * DAY, "b2:9093")], NOW)

    assert check.status is status
    assert (check.remedy is None) == (status is CheckStatus.PASSED)


def test_of_several_authorities_one_that_is_valid_is_enough():
    old, new = authority(-5 * DAY, "CN=old"), authority(500 * DAY, "CN=new")

    assert check_certificates([old, new], NOW).status is CheckStatus.WARN
    assert check_certificates([old, old], NOW).status is CheckStatus.FAIL
    assert "CN=old on 2026-02-24" in check_certificates([old, new], NOW).message


def test_what_expired_and_what_will_are_both_named_with_their_remedies():
    check = check_certificates([server(3 * DAY), client(-1 * DAY), authority(300 * DAY)], NOW)

    assert check.status is CheckStatus.FAIL
    expected = "Expired: client CN=quotas on 2026-02-28. Within 30 days expires: server b1:9093 on 2026-03-04."
    assert check.message == expected
    assert check.remedy is not None
    assert "ssl.keystore.location" in check.remedy
    assert "ssl.truststore.location" not in check.remedy
    assert "operators of the cluster" in check.remedy


def test_many_servers_are_counted_and_names_of_strangers_are_escaped():
    servers = [server(2 * DAY, f"b{number}:9093") for number in range(100)]
    check = check_certificates([*servers, authority(DAY, "CN=\x1b[31mred\n")], NOW)

    assert "and 98 more" in check.message
    assert "\x1b" not in check.message
    assert "\n" not in check.message


def test_nothing_seen_is_skipped():
    assert check_certificates([], NOW).status is CheckStatus.SKIP
