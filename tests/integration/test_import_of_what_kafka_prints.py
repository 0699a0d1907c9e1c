"""Kafka's own kafka-configs is the witness: what a script makes it do, and what it prints then, is what an import declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.importing.shell import commands
from reconciler.model.entity import DEFAULT
from reconciler.sandbox.spec import Sandbox
from reconciler.workflows.load import desired_for, load_manifests
from tests.support import config_command, raw_quotas
from tests.support.command import run

pytestmark = pytest.mark.kafka

VIEWS = (("users",), ("clients",), ("users", "clients"), ("ips",))
SCRIPT = """\
#!/bin/sh
set -e
kafka-configs.sh --alter --entity-type users --entity-name '' --add-config 'request_percentage=2000.5' # the default
kafka-configs.sh --alter --client-defaults --user "o'brien, jr" --add-config \\
  "producer_byte_rate=10485760, consumer_byte_rate=2.0E7"
kafka-configs.sh --alter --user "o'brien, jr" --client-defaults --delete-config consumer_byte_rate \\
  --add-config controller_mutation_rate=5
kafka-configs.sh --alter --entity-type clients --entity-type users --entity-name ' a b ' --entity-default \\
  --add-config=request_percentage=3000
kafka-configs.sh --alter --ip 127.0.0.9 --add-config connection_creation_rate=500
"""


def declared(folder: Path) -> dict[frozenset[tuple[str, str | None]], dict[str, float]]:
    _, state, _ = desired_for(load_manifests([str(folder)]), None)
    return {
        frozenset((kind, None if name is DEFAULT else name) for kind, name in entity.parts): dict(quotas)
        for entity, quotas in state.values().items()
    }


@pytest.mark.large
def test_a_script_and_its_description_declare_what_the_broker_holds(tmp_path: Path, clean_kafka: Sandbox) -> None:
    (tmp_path / "quotas.sh").write_text(SCRIPT)
    for command in commands(SCRIPT):
        words = [word.text for word in command.words]
        if words[0] == "kafka-configs.sh":
            config_command.run(clean_kafka, *words[1:])
    live = raw_quotas.settled(clean_kafka.bootstrap_servers)
    lines = [line for kinds in VIEWS for line in config_command.describe(clean_kafka, *kinds)]
    (tmp_path / "described.txt").write_text("\n".join([*lines, ""]))

    for source in ("quotas.sh", "described.txt"):
        done = run("import", "--from", "kafka-configs", source, "--folder", f"from-{source}", cwd=tmp_path)
        assert done.code == 0, done.out
        assert declared(tmp_path / f"from-{source}") == live
    assert len(live) == 4
    planned = run(
        "plan", "from-described.txt", "--bootstrap-server", clean_kafka.bootstrap_servers, "--detailed-exitcode", cwd=tmp_path
    )
    assert planned.code == 0, planned.out + planned.err
