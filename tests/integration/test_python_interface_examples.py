"""Every example in the reference of the Python interface, run as it is printed there, on a real broker."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import client
from reconciler.features.sandbox.spec import Sandbox
from tests.builders import user
from tests.support import raw_quotas
from tests.support.manifests import prod_cluster, quotas, snapshot
from tests.support.polling import wait_until

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
ADDRESS = "b1:9092"
"""The broker of the examples; the real one takes its place."""

MANIFEST = quotas(({"user": "payments"}, {"producer_byte_rate": "20MiB", "consumer_byte_rate": "40MB"}))
PAYMENTS, EVERYBODY = frozenset({("user", "payments")}), frozenset({("user", None)})
LIVE: dict[raw_quotas.RawEntity, dict[str, float]] = {
    PAYMENTS: {"producer_byte_rate": 20_000_000.0, "consumer_byte_rate": 40_000_000.0},
    EVERYBODY: {"producer_byte_rate": 5_000_000.0},
}
"""What every example starts with."""


def all_examples() -> Iterator[doctest.DocTest]:
    """Of the package, its classes and functions, and their methods, each with where it stands."""
    finder = doctest.DocTestFinder(recurse=False)
    for name, thing in [("reconciler.client", client), *((name, getattr(client, name)) for name in dir(client))]:
        documented = [(name, thing)]
        if inspect.isclass(thing):
            members = inspect.getmembers(thing, lambda one: inspect.isfunction(one) or isinstance(one, property))
            documented += [(f"{name}.{member}", value) for member, value in members if not member.startswith("_")]
        for qualified, one in documented:
            if inspect.ismodule(one) or inspect.isroutine(one) or inspect.isclass(one):
                yield from (test for test in finder.find(one, qualified) if test.examples)


EXAMPLES = {test.name: test for test in all_examples()}


@pytest.fixture
def prod(clean_kafka: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """The cluster of the examples, with its manifests and a snapshot in the current folder."""
    servers = clean_kafka.bootstrap_servers
    raw_quotas.alter(servers, LIVE)
    wait_until(lambda: raw_quotas.describe(servers) == LIVE)
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "cluster.yaml").write_text(prod_cluster(clean_kafka.cluster_id, servers), encoding="utf-8")
    (tmp_path / "quotas" / "payments.yaml").write_text(MANIFEST, encoding="utf-8")
    entities = {user("payments"): LIVE[PAYMENTS], user(): LIVE[EVERYBODY]}
    (tmp_path / "now.json").write_text(snapshot(entities, clean_kafka.cluster_id), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return clean_kafka


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_does_what_it_says(prod: Sandbox, name: str) -> None:
    test = EXAMPLES[name]
    # Each runs with what the package exports, and nothing else.
    test.globs = {exported: getattr(client, exported) for exported in dir(client)}
    for example in test.examples:
        assert example.source.count(":9092") == example.source.count(ADDRESS)
        example.source = example.source.replace(ADDRESS, prod.bootstrap_servers)
    said: list[str] = []
    failures = doctest.DocTestRunner().run(test, out=said.append, clear_globs=True)
    assert failures.failed == 0, "".join(said)


def test_the_example_of_the_readme_runs(prod: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert ADDRESS in example
    Path("client.properties").write_text("security.protocol=PLAINTEXT\n", encoding="utf-8")
    example = example.replace(ADDRESS, prod.bootstrap_servers).replace("payments-api", "payments")
    exec(compile(example, "README.md", "exec"), {})
    assert "1 to create, 0 to update, 0 to delete" in capsys.readouterr().out
    assert raw_quotas.describe(prod.bootstrap_servers)[frozenset({("user", "reports")})] == {"consumer_byte_rate": 10485760.0}


def test_a_login_is_used_and_never_shown(prod: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    assert prod.sasl_bootstrap_servers is not None
    with (
        caplog.at_level("DEBUG"),
        client.connect(prod.sasl_bootstrap_servers, command_config=prod.client_properties("alice")) as quotas,
    ):
        change = quotas.plan_alter({client.entity(user="reports"): {"producer_byte_rate": 1}})
        shown = [repr(one) for one in (quotas, quotas.describe(), quotas.read(), change, change.apply())]
    assert "alice-secret" not in "".join(shown) + caplog.text
    assert any(record.name == "reconciler.client" for record in caplog.records)
