"""Quotas in ZooKeeper, for clusters up to Kafka 3.9: every node read and written with kazoo, nothing asked of brokers."""
