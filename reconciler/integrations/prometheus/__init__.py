"""Prometheus: the metrics of the long-running service."""
