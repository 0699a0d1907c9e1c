"""Kafka client quotas as YAML in git: validate, plan, backtest, apply, verify."""

__version__ = "0.1.0"
