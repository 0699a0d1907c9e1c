"""What spark-submit runs: kafka-quotas, whose code comes as one wheel.

spark-submit --master spark://host:7077 --py-files kafka_quota_reconciler-0.1.0-py3-none-any.whl spark_submit.py backtest ...
"""

import sys

from reconciler.cli.main import main

sys.exit(main())
