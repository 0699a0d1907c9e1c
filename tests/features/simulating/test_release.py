"""``backtest --deploy``: a release under each quota, by the plain token bucket and as a user reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.simulating.release import Release, ReleaseUnderQuota, created_after, release_report
from reconciler.model import ClusterSpec
from reconciler.model.entity import Entity
from reconciler.traffic.kernels.token_bucket import TokenBucket
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.schemas import valid

CI = Entity.of({"user": "ci"})


@given(topics=st.integers(1, 30), each=st.integers(1, 20), limit=st.sampled_from([0.5, 1.0, 2.0, 7.0, 40.0]))
def test_a_topic_is_created_when_the_token_bucket_takes_it(topics: int, each: int, limit: float) -> None:
    release = Release(topics=topics, partitions_each=each)
    bucket, now_ms = TokenBucket(limit), 0
    for number in range(topics):
        due_ms = created_after(number, release, limit, 11.0) * 1000
        while not bucket.take(each, now_ms, strict=True):
            # Sums of doubles may need one more millisecond.
            assert now_ms <= due_ms
            now_ms += max(1, int(due_ms) - now_ms)
        assert now_ms == pytest.approx(due_ms, abs=1.5)


def test_the_smallest_limit_for_all_at_once_refuses_nothing_and_one_less_does() -> None:
    release = Release(topics=40, partitions_each=10)
    (least,) = {each.limit_for_all_at_once for each in report_of(release, 2.0)}
    assert least == 36
    assert [each.at_once for each in report_of(release, least)] == [40]
    assert [each.at_once < 40 for each in report_of(release, least - 1)] == [True]


def report_of(release: Release, limit: float) -> tuple[ReleaseUnderQuota, ...]:
    return release_report(release, {CI: {"controller_mutation_rate": limit}}, ClusterSpec()).quotas


def test_a_release_is_shown_under_each_quota_the_slowest_first(tmp_path: Path) -> None:
    entries = (({"user": "ci"}, {"controller_mutation_rate": 2}), ({"user": "ops"}, {"controller_mutation_rate": 50}))
    (tmp_path / "quotas.yaml").write_text(quotas(*entries), "utf-8")
    text = invoke("backtest", "quotas.yaml", "--deploy", "40x10", cwd=tmp_path)
    assert text.code == 0, text.err
    answer = "The release takes 3 min 4 s at 2 partitions/s of user=ci, with a burst of 22 at once. Clients give up 25 topics."
    assert answer in text.out
    done = invoke("backtest", "quotas.yaml", "--deploy", "40x10", "--format", "json", cwd=tmp_path)
    document = done.json()
    valid(document, "release")
    rows = [(row["entity"]["user"], row["seconds"], row["at_once"], row["refused"]) for row in document["quotas"]]
    assert rows == [("ci", 184, 3, 25), ("ops", 0, 40, 0)]


def test_the_controllers_window_of_the_cluster_manifest_is_the_size_of_the_burst(tmp_path: Path) -> None:
    window = {"controller.quota.window.num": 2}
    text = quotas(({"user": "ci"}, {"controller_mutation_rate": 2})) + "---\n" + cluster(prune="never", brokerSettings=window)
    (tmp_path / "quotas.yaml").write_text(text, "utf-8")
    done = invoke("backtest", "quotas.yaml", "--deploy", "40x10", "--format", "json", cwd=tmp_path)
    assert [(row["burst"], row["seconds"]) for row in done.json()["quotas"]] == [(4, 193)], done.err


def test_a_release_without_any_limit_and_bad_ones(tmp_path: Path) -> None:
    setting = ("--set", "user=ci:producer_byte_rate=1MB")
    assert "No controller_mutation_rate limits this release." in invoke("backtest", *setting, "--deploy", "1x1", cwd=tmp_path).out
    for wrong in ("40", "0x10", "40x", "x", "40x-1", "4 x 4", "99999999x1"):
        done = invoke("backtest", *setting, "--deploy", wrong, cwd=tmp_path)
        assert (done.code, f"'{wrong}' is not TOPICSxPARTITIONS" in done.err) == (64, True)
    done = invoke("backtest", *setting, "--deploy", "4x4", "--factor", "2", cwd=tmp_path)
    assert (done.code, "leave --without-broker and --factor out" in done.err) == (64, True)
    done = invoke("backtest", *setting, "--deploy", "4x4", "--traffic", "history", cwd=tmp_path)
    assert (done.code, "leave --traffic out" in done.err) == (64, True)
