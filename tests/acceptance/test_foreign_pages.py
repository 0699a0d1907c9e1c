"""Pages without quota sensors: what was seen is named, and no page of another program gets Kafka's advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.prometheus import foreign_page
from tests.support.command import Done, invoke
from tests.support.metrics_exporter import served

REDPANDA = (
    "# TYPE redpanda_application_build gauge\n"
    'redpanda_application_build{redpanda_version="v24.2.7"} 1\n'
    'redpanda_kafka_quotas_client_quota_throttle_time_sum{redpanda_quota_rule="kafka_client_id"} 3.5\n'
)
BROKER = 'kafka_server_brokertopicmetrics_bytesin_total{topic="t"} 12\njvm_threads_current 5\n'
MACHINE = "# HELP node_cpu_seconds_total x\nnode_cpu_seconds_total 5\ngo_goroutines 7\nacme_orders 3\n"
PAGES = {
    "Redpanda": (REDPANDA, "has no metric of a Kafka broker. It has redpanda_application_build, "),
    "Confluent Cloud": ('confluent_kafka_server_request_bytes{x="u"} 1\n', "It has confluent_kafka_server_request_bytes. "),
    "kafka_exporter": ("kafka_exporter_build_info 1\nkafka_brokers 3\n", "Give the page of an exporter in the broker"),
    "a machine": (MACHINE, "has no metric of a Kafka broker. It has acme_orders. "),
}


def doctor(folder: Path, text: str, broker: str = "1=") -> Done:
    with served(lambda *_: (200, "text/plain", text.encode())) as port:
        return invoke("doctor", "--traffic", f"{broker}metrics+http://127.0.0.1:{port}/metrics", cwd=folder)


@pytest.mark.parametrize("name", PAGES)
def test_doctor_shows_what_a_page_of_another_program_has_and_gives_it_no_advice_of_kafka(name: str, tmp_path: Path) -> None:
    text, words = PAGES[name]
    done = doctor(tmp_path, text)
    assert done.code == 1
    assert words.strip() in " ".join(done.out.split()), done.out
    for advice in ("alter --defaults", "kafka-configs", "Brokers measure", "scrape configuration"):
        assert advice not in done.out


def test_a_broker_of_kafka_without_quotas_gets_the_advice_for_it(tmp_path: Path) -> None:
    done = doctor(tmp_path, BROKER)
    assert "has no series of quota groups." in done.out
    assert "alter --defaults client-id" in done.out


def test_a_metric_name_is_the_text_of_a_stranger() -> None:
    words = foreign_page("http://b1:9644/metrics", ("redpanda_a\x1b[31m",))
    assert words is not None
    assert "\x1b" not in str(words)
    assert foreign_page("http://b1:9644/metrics", ()) is None
