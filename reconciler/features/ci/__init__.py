"""Findings for CI systems: annotations, SARIF, Code Quality and JUnit."""
