"""Quotas in ZooKeeper, for clusters up to Kafka 3.9: every node is read and written with kazoo, without the brokers."""
