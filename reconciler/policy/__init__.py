"""Guards and rules over pure data, and the catalogue of their ids."""
