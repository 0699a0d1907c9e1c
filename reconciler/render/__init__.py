"""Plans, reports and findings as text and JSON: pure functions."""
