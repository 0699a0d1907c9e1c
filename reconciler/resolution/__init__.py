"""Which quota wins for a client, and which bucket it shares: the eight levels of Kafka's default quota callback."""
