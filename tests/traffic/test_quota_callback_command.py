"""``backtest`` with a quota callback and with other window settings, as a user runs it."""

from __future__ import annotations

import datetime
import shutil
import sys
from pathlib import Path

import jsonschema
import pytest

from reconciler.formats.shapes import load_schema
from tests.support.command import Command, Done, invoke, run
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas
from tests.traffic.log_lines import line, produce_request

EXAMPLE = Path(__file__).parents[2] / "examples" / "group-quotas"
START = datetime.datetime(2026, 11, 21, 13)
CLASS = "quota_groups:GroupQuotas"
SECONDS = 40


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two users of one group with 80 kB/s each, one of another group, and one of none, for forty seconds."""
    found = tmp_path_factory.mktemp("logs") / "kafka-request.log"
    users = {"payments_api": 8_000, "payments_batch": 8_000, "orders_api": 8_000, "alice": 20_000}
    lines = []
    for tick in range(SECONDS * 10):
        at = START + datetime.timedelta(milliseconds=100 * tick)
        for port, (user, size) in enumerate(users.items(), start=4000):
            lines.append(
                line(
                    principal=f"User:{user}",
                    request=produce_request(size),
                    at=f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}",
                    connection=f"10.0.0.5:9092-10.0.0.9:{port}-2-0",
                    correlation_id=tick,
                )
            )
    found.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


ANY_LENGTH = "  backtest: {history: {hours: 0}}\n"


@pytest.fixture
def merged(tmp_path: Path) -> GitRepository:
    """The example's manifests, merged; the class is installed elsewhere."""
    made = GitRepository(tmp_path / "repository")
    made.write("cluster.yaml", (EXAMPLE / "cluster.yaml").read_text(encoding="utf-8") + ANY_LENGTH)
    made.write("quotas.yaml", (EXAMPLE / "quotas.yaml").read_text(encoding="utf-8"))
    made.commit()
    (tmp_path / "site").mkdir()
    shutil.copy(EXAMPLE / "quota_groups.py", tmp_path / "site")
    return made


def backtest(repository: GitRepository, log: Path, *arguments: str, classes: str = "site", command: Command = run) -> Done:
    path = f"{repository.folder.parent / classes}:{Path(__file__).parents[2]}"
    return command(
        "backtest", "--master", "local[2]", "--traffic", f"1={log}", *arguments, cwd=repository.folder, env={"PYTHONPATH": path}
    )


@pytest.mark.spark
def test_a_group_is_over_its_limit_that_none_of_its_users_is_over(
    merged: GitRepository, log: Path, warm_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(merged.folder.parent / "site")
    monkeypatch.delitem(sys.modules, CLASS.partition(":")[0], raising=False)
    done = backtest(merged, log, "--trusted-ref", "main", "--format", "json", "--exact", command=warm_command)
    assert done.code == 0, done.err
    document = done.json()
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(document)
    found = {tuple(v["bucket"].items()): v for v in document["verdicts"]}
    payments = found[("group", "payments"),]
    assert (payments["verdict"], payments["limit_after"], payments["entity"]) == ("throttled", 102400, None)
    assert {m["user"] for m in payments["members"]} == {"payments_api", "payments_batch"}
    orders = found[("group", "orders"),]
    assert (orders["verdict"], orders["limit_after"]) == ("clear", 1048576)
    assert found[("user", "alice"),]["limit_after"] is None
    assert document["unused"] == []
    found_by_id = {f["id"]: f for f in document["findings"]}
    assert "group payments would have been throttled while producing" in found_by_id["would-throttle"]["message"]
    assert any(CLASS in text for text in document["provenance"]["assumptions"])


@pytest.mark.spark
def test_groups_of_the_broker_plugin_are_predicted_without_a_class_to_trust(
    merged: GitRepository, log: Path, warm_command: Command
) -> None:
    merged.write("cluster.yaml", CLUSTER_WITH_PLUGIN)
    merged.write("quotas.yaml", GROUPS_WITH_PLUGIN)
    done = backtest(merged, log, "--format", "json", "--exact", command=warm_command)
    assert done.code == 0, done.err
    verdicts = {tuple(v["bucket"].items()): v for v in done.json()["verdicts"]}
    payments = verdicts[("group", "payments"),]
    assert (payments["verdict"], payments["limit_after"]) == ("throttled", 102400)
    assert {m["user"] for m in payments["members"]} == {"payments_api", "payments_batch"}
    # A member with a quota of its own shares nothing.
    assert verdicts[("user", "orders_api"),]["limit_after"] == 1048576
    assert ("group", "orders") not in verdicts


GROUP = "kafka-quotas:group:"
CLUSTER_WITH_PLUGIN = cluster(
    "groups", prune="never", backtest={"history": {"hours": 0}},
    quotaCallback={"class": "kafkaquotas.callback.GroupQuotaCallback"},
)  # fmt: skip
GROUPS_WITH_PLUGIN = quotas(
    ({"user": f"{GROUP}payments"}, {"producer_byte_rate": "100KiB"}),
    ({"user": f"{GROUP}payments", "client-id": "user-prefix:payments_"}, {"request_percentage": 100}),
    ({"user": f"{GROUP}orders"}, {"producer_byte_rate": "10KiB"}),
    ({"user": f"{GROUP}orders", "client-id": "user:orders_api"}, {"request_percentage": 100}),
    ({"user": "orders_api"}, {"producer_byte_rate": "1MiB"}),
)


def test_a_class_of_the_work_tree_is_not_loaded_without_a_word(merged: GitRepository, log: Path) -> None:
    done = backtest(merged, log)
    assert (done.code, done.out) == (3, "")
    assert "is code: give --trusted-ref" in done.err


def test_a_pull_request_brings_neither_a_class_nor_its_file(merged: GitRepository, log: Path) -> None:
    marker = merged.folder.parent / "ran"
    evil = f"from pathlib import Path\nPath({str(marker)!r}).touch()\n"
    merged.branch()
    merged.write("quota_groups.py", evil + (EXAMPLE / "quota_groups.py").read_text(encoding="utf-8"))
    merged.write("mine/__init__.py", evil)
    merged.write("mine/callback.py", evil)
    text = (EXAMPLE / "cluster.yaml").read_text(encoding="utf-8")
    merged.write("cluster.yaml", text.replace(CLASS, "mine.callback:Mine"))
    merged.commit()
    # The class is what main names, and its file is the pull request's.
    done = backtest(merged, log, "--trusted-ref", "main", classes="repository")
    assert (done.code, done.out) == (3, "")
    assert "quota_groups.py" in done.err
    assert not marker.exists()
    done = backtest(merged, log)
    assert done.code == 3
    assert not marker.exists()


def test_a_package_of_the_work_tree_is_refused_before_its_first_line_runs(merged: GitRepository, log: Path) -> None:
    marker = merged.folder.parent / "ran"
    text = (EXAMPLE / "cluster.yaml").read_text(encoding="utf-8")
    merged.write("cluster.yaml", text.replace(CLASS, "mine.callback:Mine"))
    merged.write("mine/__init__.py", f"from pathlib import Path\nPath({str(marker)!r}).touch()\n")
    merged.write("mine/callback.py", "")
    merged.commit()
    done = backtest(merged, log, "--trusted-ref", "main", classes=merged.folder.name)
    assert done.code == 3
    assert "is in the work tree" in done.err
    assert not marker.exists()


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        (None, "nowhere.at_all:Groups", "there is no module 'nowhere'"),
        ("import nowhere_else\n", "mine:Groups", "there is no module 'nowhere_else' here. Install that, too"),
        ("1 / 0\n", "mine:Groups", "importing mine failed: ZeroDivisionError"),
        ("Groups = 7\n", "mine:Groups", "mine has no class Groups"),
        ("class Groups:\n    def quota_limit(self): ...\n", "mine:Groups", "the class lacks quota_metric_tags, update_quota"),
        ("", "mine", "write MODULE:CLASS"),
    ],
)
def test_a_class_that_cannot_be_used_is_one_sentence(
    merged: GitRepository, log: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, name: str, said: str
) -> None:
    if source is not None:
        (merged.folder.parent / "site" / "mine.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(merged.folder.parent / "site")
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    done = backtest(merged, log, "--quota-callback", name, command=invoke)
    assert (done.code, done.out) == (1, "")
    assert said in done.err


@pytest.mark.spark
def test_window_settings_are_those_of_the_cluster_manifest(merged: GitRepository, log: Path, warm_command: Command) -> None:
    text = (EXAMPLE / "cluster.yaml").read_text(encoding="utf-8").partition("  # What the brokers'")[0]
    merged.write("cluster.yaml", text + ANY_LENGTH + "  brokerSettings: {quota.window.num: 3, quota.window.size.seconds: 20}\n")
    merged.write("quotas.yaml", (EXAMPLE / "quotas.yaml").read_text(encoding="utf-8").replace("payments_", "payments_api"))
    merged.commit()
    done = backtest(merged, log, "--format", "json", command=warm_command)
    assert done.code == 0, done.err
    said = " ".join(done.json()["provenance"]["assumptions"])
    assert "3 samples of 20 s (quota.window.num and quota.window.size.seconds from " in said
    assert "the Cluster manifest)" in said
    assert done.json()["provenance"]["form"] == "seconds"
    # 80 kB/s for 40 s in a window of 40 s: nobody is over 100 KiB/s, whatever the default window would say.
    assert {v["verdict"] for v in done.json()["verdicts"]} == {"clear"}
