"""Parquet and CSV files with columns of their own, and metrics of other names, as a mapping file states them."""

MAPPINGS = ("reconciler.features.mapping.mapping:parse_mapping",)
