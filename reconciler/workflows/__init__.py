"""One small module for each thing a user wants done; the only place that combines the layers below."""
