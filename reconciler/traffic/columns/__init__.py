"""Batches of the canonical traffic schema as arrays: the charged rows, their clients as numbers, and the groups of those."""
