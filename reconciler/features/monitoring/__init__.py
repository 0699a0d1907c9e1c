"""The limits of a cluster as Prometheus rules and a Grafana dashboard."""
