"""Logs of quota violations as recorded traffic: they prove throttles, and have no traffic."""

SOURCES = ("reconciler.features.violations.log:ViolationLogs",)
