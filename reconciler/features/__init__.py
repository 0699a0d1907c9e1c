"""What the core can live without: one folder for each feature, and what it adds in its ``__init__.py``."""
