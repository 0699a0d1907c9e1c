"""Reads mapping files, and the files that have their columns."""

MAPPINGS = ("reconciler.features.mapping.mapping:parse_mapping",)
