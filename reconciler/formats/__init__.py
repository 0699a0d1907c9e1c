"""File formats: YAML with positions, JSON Schema checks, canonical JSON, units of values."""
