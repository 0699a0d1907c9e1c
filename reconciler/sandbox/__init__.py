"""A real local Kafka from published jars, and clients that make traffic."""
