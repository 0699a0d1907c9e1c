"""Reads logs in which brokers note the clients that they throttle."""

SOURCES = ("reconciler.features.violations.log:ViolationLogs",)
