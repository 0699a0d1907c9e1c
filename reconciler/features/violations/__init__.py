"""Logs of quota violations as recorded traffic: they prove throttles, and have no traffic."""
