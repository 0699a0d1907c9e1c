"""The state of all clusters on one page."""
