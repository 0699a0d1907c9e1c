"""Rules of the jmx_exporter that make the layouts of public configurations, written from their description."""

from __future__ import annotations

from typing import Final

import yaml

HEAD: Final = """\
lowercaseOutputName: true
includeObjectNames:
- "kafka.server:type=Produce,*"
- "kafka.server:type=Fetch,*"
- "kafka.server:type=Request,*"
- "kafka.server:type=ControllerMutation,*"
- "kafka.server:type=socket-server-metrics,*"
"""
_PAIR: Final = r"""
- pattern: kafka.server<type=(.+), user=(.+), client-id=(.+)><>([a-z-]+)
  name: kafka_server_quota_$4
  labels: {resource: "$1", user: "$2", clientId: "$3"}
"""
_CLIENT: Final = r"""
- pattern: kafka.server<type=(.+), client-id=(.+)><>([a-z-]+)
  name: kafka_server_quota_$3
  labels: {resource: "$1", clientId: "$2"}
"""
_USER: Final = r"""
- pattern: kafka.server<type=(.+), user=(.+)><>([a-z-]+)
  name: kafka_server_quota_$3
  labels: {resource: "$1", user: "$2"}
"""
_NAMES: Final = r"""
- pattern: kafka.server<type=(.+)><>([a-z-]+)
  name: kafka_server_$1_$2
"""
_MORE: Final = r"""
- pattern: kafka.server<type=(\w+)><>queue-size
  name: kafka_server_$1_queue_size
- pattern: kafka.server<type=socket-server-metrics, ip=(.+)><>connection-accept-rate
  name: kafka_server_socket_server_metrics_connection_accept_rate
  labels: {ip: "$1"}
"""
_BY_KIND: Final = r"""
- pattern: kafka.server<type=(Produce|Fetch|Request), user=(.+), client-id=(.+)><>(byte-rate|request-time|throttle-time)
  name: kafka_server_$1_$4
  labels: {user: "$2", client-id: "$3"}
- pattern: kafka.server<type=(Produce|Fetch|Request), user=([^,]+)><>(byte-rate|request-time|throttle-time)
  name: kafka_server_$1_$3
  labels: {user: "$2"}
"""

RULES: Final = {
    "quota-labels": f"{HEAD}rules:{_PAIR}{_CLIENT}{_USER}",
    "client-id first": f"{HEAD}rules:{_CLIENT}{_USER}{_PAIR}",
    "user first": f"{HEAD}rules:{_USER}{_CLIENT}{_PAIR}",
    "kraft": f"{HEAD}rules:{_NAMES}{_PAIR}{_CLIENT}{_USER}",
    "koperator": f"{HEAD}rules:{_MORE}{_PAIR}{_CLIENT}{_USER}",
    "confluent": f"{HEAD}rules:{_BY_KIND}",
    "no rules": HEAD.replace("lowercaseOutputName: true\n", "") + 'rules:\n- pattern: ".*"\n',
}
"""By name; the same order of rules as the originals, of which these are the part about quotas."""


def with_first(rules: str, repair: str) -> str:
    """The rules with those of ``repair`` (a document of ``rules:``) before them, as a YAML document."""
    document = yaml.safe_load(rules)
    document["rules"] = [*yaml.safe_load(repair)["rules"], *document["rules"]]
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text
