"""Reads the files of the recorder in brokers."""

SOURCES = ("reconciler.features.recorder.traffic:RecorderTraffic",)
