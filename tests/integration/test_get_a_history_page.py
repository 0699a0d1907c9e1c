"""The commands that docs/record-traffic.md shows, on real brokers, and what their logs then have."""

from __future__ import annotations

import re
import shlex

import pytest

from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from tests.support import config_command, raw_quotas
from tests.support.command import Done, invoke
from tests.support.pages import page
from tests.support.polling import wait_until

pytestmark = pytest.mark.kafka

PAGE = page("record-traffic")
ALICE = Login(name="alice", password="alice-secret")
TOPIC = "orders"


def commands(section: str) -> list[list[str]]:
    """The arguments of each ``kafka-configs`` in a section of the page, without the server."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line)[3:] for line in blocks.splitlines() if line.startswith("kafka-configs --bootstrap-server ")]


def produce(broker: Sandbox) -> float:
    """What the client saw as its longest throttle, in milliseconds."""
    sent = produce_steadily(
        broker.sasl_bootstrap_servers or "", TOPIC, client_id="app", bytes_per_second=200_000, seconds=3, login=ALICE
    )
    return sent.throttle_ms_max


def expose(broker: Sandbox) -> Done:
    """Run the command of the page that makes clients visible."""
    (text,) = re.findall(r"^## Make clients visible\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    (line,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    words = [broker.bootstrap_servers if word == "b1:9092" else word for word in shlex.split(line)]
    return invoke(*words[1:], "--auto-approve", cwd=broker.folder)


@pytest.mark.large
def test_the_request_log_goes_on_and_off_and_the_default_quota_throttles_no_client() -> None:
    with running(SandboxSpec(users=(ALICE,))) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        expose(broker)
        everybody = frozenset({("user", None), ("client-id", None)})
        assert raw_quotas.settled(broker.bootstrap_servers) == {
            everybody: {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12}
        }
        switch_on, switch_off = commands("Enable the request log")
        log = broker.nodes[0].log_file
        config_command.run(broker, *switch_on)
        assert produce(broker) == 0
        wait_until(lambda: b"Completed request:" in log.read_bytes())

        config_command.run(broker, *switch_off)
        wait_until(lambda: log.read_bytes().count(b"kafka.request.logger") > 0)
        before = log.read_bytes().count(b"Completed request:")
        produce(broker)
        assert log.read_bytes().count(b"Completed request:") <= before + 5
