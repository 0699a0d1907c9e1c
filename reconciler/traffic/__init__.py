"""The backtest on Spark: recorded traffic against quotas. The only package that imports pyspark."""
