"""Files of the recorder, the plugin in brokers that writes what each client was charged in each second, as recorded traffic."""

SOURCES = ("reconciler.features.recorder.traffic:RecorderTraffic",)
