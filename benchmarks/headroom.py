"""One refresh of ``headroom`` with 10,000 series, from an exporter's page and from a Prometheus, beside decoding the same bytes.

The page is decoded by ``prometheus_client``, the server's answer by ``json``.

``python -m benchmarks.headroom [--series N]`` (needs the Debian package prometheus)
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from benchmarks.measure import cpu_seconds, machine, row

_SCRAPES = 20
"""As many as five minutes have at 15 s."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=10_000)
    args = parser.parse_args()
    from prometheus_client.parser import text_string_to_metric_families

    from reconciler.model.entity import DEFAULT, Entity
    from reconciler.resolution.views import QuotaView, ViewKind
    from tests.support.metrics_exporter import served
    from tests.support.prometheus_server import ScrapeJob, prometheus

    groups = args.series // 2
    entities = {Entity.of({"user": f"user-{number}"}): {"producer_byte_rate": 1e6} for number in range(groups // 2)}
    entities[Entity.of({"user": DEFAULT})] = {"producer_byte_rate": 5e5}
    view = QuotaView(kind=ViewKind.SNAPSHOT, entities=entities)
    lines = [
        line
        for number in range(groups)
        for line in (
            f'kafka_server_Produce_byte_rate{{user="user-{number}"}} {number * 300}',
            f'kafka_server_Produce_throttle_time{{user="user-{number}"}} {"NaN" if number % 50 else 120}',
        )
    ]
    page = ("\n".join(lines) + "\n").encode()
    print(machine())
    with served(lambda *_: (200, "text/plain; version=0.0.4", page)) as port:
        parsed = cpu_seconds(lambda: list(text_string_to_metric_families(page.decode())))
        _refresh(f"page of {args.series:,} series", view, f"metrics+http://127.0.0.1:{port}", parsed)
        job = ScrapeJob(name="kafka", ports={port: {"broker": "1"}}, interval_s=5)
        with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder), [job]) as server:
            query = '{__name__=~"kafka_server_.+"}'
            while (server.value("min(count_over_time(kafka_server_Produce_byte_rate[5m]))") or 0) < _SCRAPES:
                time.sleep(1)
            fields = urllib.parse.urlencode({"query": f"{query}[300s]"}).encode()
            url = f"http://127.0.0.1:{server.port}/api/v1/query"
            with urllib.request.urlopen(url, fields) as answer:
                body = answer.read()
            decode = cpu_seconds(lambda: json.loads(body))
            traffic = f"prometheus+http://127.0.0.1:{server.port}"
            _refresh(f"Prometheus, {args.series:,} series of {len(body) >> 20} MiB", view, traffic, decode)


def _refresh(what: str, view: object, traffic: str, bare: float) -> None:
    """Wall clock and CPU time of reading, joining and drawing."""
    from reconciler.features.insight.headroom_view import headroom_lines
    from reconciler.features.insight.observe import observe
    from reconciler.features.insight.rate_sources import RateRequest
    from reconciler.render.terminal import write
    from reconciler.resolution.views import QuotaView

    assert isinstance(view, QuotaView)
    rates = RateRequest(traffic=(traffic,))

    def draw() -> None:
        headroom = observe(view, {}, rates)
        write(
            headroom_lines([headroom], [(headroom, group) for group in headroom.groups], top=40),
            io.StringIO(),
            color=True,
            width=120,
        )

    draw()
    walls = []
    for _ in range(5):
        begun = time.perf_counter()
        draw()
        walls.append(time.perf_counter() - begun)
    cpu = cpu_seconds(draw)
    row(f"refresh: {what}", cpu, bare, f"beside a bare decode; wall clock {min(walls):.2f} to {max(walls):.2f} s; goal 2 s")


if __name__ == "__main__":
    main()
