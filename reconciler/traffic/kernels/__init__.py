"""Kafka's quota arithmetic: plain models, and the vector forms that must agree with them."""
