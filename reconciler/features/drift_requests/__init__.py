"""Drift as a pull request, which adopts the values of the cluster or restores the declared ones."""
