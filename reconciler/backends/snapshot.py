"""Snapshot files: the JSON that `export --snapshot` writes, read as a cluster that cannot be written."""
