"""Writing a plan: validate-only, chunks, read back, report."""
