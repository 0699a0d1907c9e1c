"""Kafka brokers, over DescribeClientQuotas and AlterClientQuotas (KIP-546) with kafka-python."""
