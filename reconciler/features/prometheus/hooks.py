"""Reads samples of a Prometheus server for ``backtest``, ``compact`` and ``why``."""

SAMPLE_SERVERS = ("reconciler.features.prometheus.server_pages:fetch_prometheus",)
