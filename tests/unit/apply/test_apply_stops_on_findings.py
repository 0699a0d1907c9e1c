"""Findings that only the live state brings stop an apply from the severity on that the user chose."""

from pathlib import Path

import pytest

from reconciler.errors import ManifestError
from reconciler.model.finding import Severity
from reconciler.model.plan import ApplyResult
from reconciler.ports import NO_PROGRESS
from reconciler.workflows.apply import UNASKED, Approval, apply_manifests
from reconciler.workflows.intent import load_intent
from tests.builders import user
from tests.fakes import FakeClock, FakeCluster

MANIFEST = """apiVersion: kafka-quotas/v1
kind: ClientQuotas
spec:
  quotas:
    - match: {client-id: etl}
      quotas: {producer_byte_rate: 1MiB}
"""


@pytest.mark.parametrize(("fail_on", "stops"), [(Severity.WARNING, True), (Severity.ERROR, False)])
def test_a_quota_that_a_live_default_hides(tmp_path: Path, fail_on: Severity, stops: bool) -> None:
    (tmp_path / "a.yaml").write_text(MANIFEST, encoding="utf-8")
    cluster = FakeCluster({user(): {"producer_byte_rate": 1024.0}})
    intent = load_intent([str(tmp_path)], cluster=None, fail_on=fail_on)

    def run():
        return apply_manifests(intent, cluster, Approval(), dialogue=UNASKED, clock=FakeClock(), progress=NO_PROGRESS)

    if stops:
        with pytest.raises(ManifestError, match="client-id-never-wins"):
            run()
        assert (cluster.writes, cluster.validations) == (0, 0)
    else:
        assert run().result is ApplyResult.DONE
