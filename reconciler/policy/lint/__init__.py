"""Lint: what is legal and most likely not meant. Pure functions over one cluster's states, one module a theme."""
