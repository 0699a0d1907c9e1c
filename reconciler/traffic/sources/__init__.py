"""Recorded traffic, read into rows of charged requests."""
