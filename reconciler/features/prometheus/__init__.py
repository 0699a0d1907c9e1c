"""Samples of metrics as traffic: of a Prometheus server, hour by hour, and of brokers' exporter pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.features.prometheus.exporter_page import PAGE_PREFIX, ExporterPage, PageRead, PageSeries
    from reconciler.features.prometheus.exporters import (
        ExporterTarget,
        exporter_rules,
        exporter_targets,
        open_page,
        series_reader,
    )
    from reconciler.features.prometheus.foreign_servers import foreign_page, foreign_selector, series_text
    from reconciler.features.prometheus.login import ReadFile, read_login, trusted_reader
    from reconciler.features.prometheus.metric_answers import AnswerReader, ForeignAnswerError, read_answer
    from reconciler.features.prometheus.metric_targets import MetricTargets, ScrapeTarget
    from reconciler.features.prometheus.pieces import Piece, PieceReader
    from reconciler.features.prometheus.recorded_folder import PageColumns, RecordedFolder, Retention, ScrapedRows
    from reconciler.features.prometheus.sample_pages import PageFacts, PageWriter, page_facts
    from reconciler.features.prometheus.server_api import (
        HttpLogin,
        PrometheusApi,
        TooManySamplesError,
        basic_auth,
    )

__getattr__ = lazy_face(__name__)
