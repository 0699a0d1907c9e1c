"""Reads samples of a Prometheus server for ``backtest``, ``compact`` and ``why``, and judges samples."""

SAMPLE_SERVERS = ("reconciler.features.prometheus.server_pages:fetch_prometheus",)
METRIC_JUDGES = ("reconciler.features.prometheus.metric_verdicts:judge_metrics",)
