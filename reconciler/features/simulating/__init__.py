"""A backtest of recorded traffic on other brokers, or of more of it."""
