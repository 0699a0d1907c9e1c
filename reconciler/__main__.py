"""``python -m reconciler``."""

from reconciler.cli.main import entry_point

entry_point()
