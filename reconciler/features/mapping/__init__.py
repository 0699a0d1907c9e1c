"""Parquet and CSV files with columns of their own, as a mapping file states them."""

MAPPINGS = ("reconciler.features.mapping.mapped:read_mapping",)
