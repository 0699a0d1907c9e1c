"""Samples of metrics as traffic: of a Prometheus server, hour by hour, and of brokers' exporter pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.features.prometheus.exporter_page import (
        ExporterPage,
        ExporterTarget,
        PageRead,
        PageSeries,
        exporter_targets,
        foreign_page,
        is_page,
        series_text,
        split_page,
    )
    from reconciler.features.prometheus.http import HttpLogin, ReadFile, read_login, trusted_reader
    from reconciler.features.prometheus.metric_answers import AnswerReader, ForeignAnswerError, timed_values
    from reconciler.features.prometheus.metric_layouts import (
        Layout,
        MetricSeries,
        Unattributed,
        layout_of,
        read_series,
        selector_of,
    )
    from reconciler.features.prometheus.recorded_folder import PageColumns, RecordedFolder, ScrapedRows
    from reconciler.features.prometheus.sample_pages import PageWriter
    from reconciler.features.prometheus.server_api import PrometheusApi, TooManySamplesError

SAMPLE_SERVERS = ("reconciler.features.prometheus.server_pages:fetch_prometheus",)
METRIC_JUDGES = ("reconciler.features.prometheus.metric_verdicts:judge_metrics",)

__getattr__ = lazy_face(__name__)
