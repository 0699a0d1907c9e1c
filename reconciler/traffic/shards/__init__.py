"""The backtest of traffic with more clients than one process has room for: shards of clients, each judged by one worker."""
