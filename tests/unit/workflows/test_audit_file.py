"""Every run leaves one line that says who did what where, and how it ended."""

from __future__ import annotations

import datetime
import json
import os
import pwd
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reconciler.errors import FileAccessError, ManifestError, UnreachableError, WrongClusterError
from reconciler.model.plan import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    GuardResult,
    GuardStatus,
    KeyChange,
    ManifestCommit,
    Reason,
)
from reconciler.model.state import ClusterIdentity
from reconciler.workflows.apply import AuditFile, os_user
from reconciler.workflows.connect import Access, known_principal
from tests.builders import NOON, cluster_spec, user

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "audit.v1.schema.json").read_text())


class Ticking:
    """A second passes with every look."""

    def __init__(self) -> None:
        self._now = NOON

    def now(self) -> datetime.datetime:
        self._now += datetime.timedelta(seconds=1)
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def lines(file: Path) -> list[Any]:
    found = [json.loads(line) for line in file.read_text().splitlines()]
    for one in found:
        jsonschema.validate(one, SCHEMA, format_checker=jsonschema.FormatChecker())
    return found


def audit(file: Path) -> AuditFile:
    made = AuditFile(file, command="apply", validate_only=False, clock=Ticking())
    made.about(cluster_spec(cluster_id="c1"), source=ManifestCommit(commit="abc", dirty=False), principal='al"ice\n')
    return made


def test_a_run_with_a_report(tmp_path: Path) -> None:
    change = Change(
        entity=user("alice"),
        action=Action.CREATE,
        keys=(KeyChange(key="producer_byte_rate", before=None, after=12345.0, reason=Reason.NOT_IN_CURRENT),),
    )
    guard = GuardResult(id="prune", status=GuardStatus.ACCEPTED, measured="", limit="", set_in="", message="")
    report = ApplyReport(
        cluster=ClusterIdentity(name="prod", id="c1", kafka_version="4.3"),
        digest="sha256:" + "0" * 64,
        result=ApplyResult.PARTIAL,
        outcomes=(ChangeOutcome(change=change, status=ChangeStatus.UNKNOWN),),
        failure_reason="interrupted",
        guards=(guard,),
    )
    file = tmp_path / "audit.jsonl"
    audit(file).ended(report)
    (line,) = lines(file)
    assert line == {
        "format_version": "1.0",
        "started": "2026-01-02T12:00:01Z",
        "ended": "2026-01-02T12:00:02Z",
        "command": "apply",
        "principal": 'al"ice\n',
        "os_user": os_user(),
        "source": {"commit": "abc", "dirty": False},
        "validate_only": False,
        "cluster": {"name": "prod", "id": "c1", "kafka_version": "4.3"},
        "digest": "sha256:" + "0" * 64,
        "accepted": ["prune"],
        "summary": {"applied": 0, "failed": 0, "unknown": 1, "not_attempted": 0},
        "verified": False,
        "result": "partial",
        "failure_reason": "interrupted",
        "entities": [{"user": "alice"}],
    }


@pytest.mark.parametrize(
    ("error", "result", "reason"),
    [
        (UnreachableError("no"), "failed", "unreachable"),
        (ManifestError("no"), "failed", "invalid-manifests"),
        (WrongClusterError("no"), "refused", "wrong-cluster"),
        (KeyboardInterrupt(), "failed", "interrupted"),
        (ZeroDivisionError("no"), "failed", "internal"),
    ],
)
def test_a_run_that_an_error_ended(tmp_path: Path, error: BaseException, result: str, reason: str) -> None:
    file = tmp_path / "audit.jsonl"
    audit(file).broke_off(error)
    (line,) = lines(file)
    assert (line["result"], line["failure_reason"], line["digest"]) == (result, reason, None)
    assert line["cluster"] == {"name": "prod", "id": "c1", "kafka_version": None}


def test_an_audit_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError):
        AuditFile(tmp_path, command="apply", validate_only=False, clock=Ticking())


def test_the_account_is_the_systems_word_and_not_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert os_user() == pwd.getpwuid(os.geteuid()).pw_name


def test_the_principal_is_the_name_in_the_settings_of_the_connection(tmp_path: Path) -> None:
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="deploy" password="hunter2";'
    settings = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n"
    (tmp_path / "client.properties").write_text(settings)
    config = str(tmp_path / "client.properties")
    assert known_principal(cluster_spec(), Access(bootstrap_server="b:9092", command_config=config)) == "deploy"
    assert known_principal(cluster_spec(), Access(bootstrap_server="b:9092")) is None
    file = tmp_path / "audit.jsonl"
    made = AuditFile(file, command="revert", validate_only=True, clock=Ticking())
    made.about(
        cluster_spec(),
        source=ManifestCommit(),
        principal=known_principal(cluster_spec(), Access(bootstrap_server="b:1", command_config=config)),
    )
    made.broke_off(UnreachableError("no"))
    assert (lines(file)[0]["principal"], lines(file)[0]["command"]) == ("deploy", "revert")
    assert "hunter2" not in file.read_text()
