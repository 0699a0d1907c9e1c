"""A value that expires on a real broker: ``apply`` takes it back without an acceptance, ``run`` by itself at its moment."""

from __future__ import annotations

import datetime
import signal
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until
from tests.support.service_process import running

pytestmark = pytest.mark.kafka

MIB = 2.0**20
ALICE = frozenset({("user", "alice")})
FAR, PAST = (datetime.datetime(year, 12, 1, tzinfo=datetime.UTC) for year in (2999, 2020))


def write(folder: Path, until: datetime.datetime) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "cluster.yaml").write_text(cluster(prune="never"))
    entry = {"producer_byte_rate": {"value": "20MiB", "until": until.isoformat(), "then": "1MiB"}}
    (folder / "quotas.yaml").write_text(quotas(({"user": "alice"}, entry)))


def test_apply_and_run_take_back_a_value_that_expired(clean_kafka: Sandbox, tmp_path: Path) -> None:
    folder, servers = tmp_path / "quotas", clean_kafka.bootstrap_servers

    def rate() -> float | None:
        return raw_quotas.describe(servers).get(ALICE, {}).get("producer_byte_rate")

    def apply() -> int:
        return invoke("apply", str(folder), "--bootstrap-server", servers, "--auto-approve", cwd=tmp_path).code

    write(folder, FAR)
    assert (apply(), rate()) == (0, 20 * MIB)
    write(folder, PAST)
    assert (apply(), rate()) == (0, MIB)

    write(folder, FAR)
    options = ("--bootstrap-server", servers, "--apply", "--interval", "3600")
    with running(folder, tmp_path / "run.jsonl", *options) as service:
        service.until(lambda: "applied" in service.results())
        assert rate() == 20 * MIB
        write(folder, datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=6))
        service.until(lambda: service.results().count("applied") == 2)
        wait_until(lambda: rate() == MIB)
        assert service.end(signal.SIGTERM) == 0
