"""Lint rules for legal states that are probably mistakes: pure functions over one cluster's states, one module for each theme."""
