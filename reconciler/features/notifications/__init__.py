"""Notifications of drift, of writes and of failures, sent to webhooks."""
