"""Effective quotas of clients, as a command shows them."""
