"""Findings that a repository knows and keeps for now: a manifest lists them, each with a reason and a last day."""
