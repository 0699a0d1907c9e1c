"""A DAG for Apache Airflow 3: per-second totals of yesterday's traffic, every day.

Copy it into the folder of DAGs, and change the four settings. Where tasks run, kafka-quotas has to be installed with its extras
"traffic" and "spark". A run computes the day before its date from all traffic of that day, so it may be repeated, cleared and
caught up. To write a day also if the dataset has more of it than the traffic, trigger the DAG with {"replace": true}.
"""

from __future__ import annotations

import datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Param

TRAFFIC = "s3a://logs/kafka/"
OUT = "s3a://lake/quota-seconds"
PROPERTIES = "/etc/kafka-quotas/spark.properties"
MASTER = "local[*]"

with DAG(
    dag_id="kafka_quotas_compact",
    schedule="30 2 * * *",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    max_active_runs=1,
    params={"replace": Param(default=False, type="boolean")},
    default_args={"retries": 3, "retry_delay": datetime.timedelta(minutes=10)},
    tags=["kafka", "quotas"],
) as dag:
    BashOperator(
        task_id="compact",
        bash_command=(
            'kafka-quotas compact --traffic "$TRAFFIC" --folder "$OUT" --master "$MASTER" '
            "--since {{ macros.ds_add(ds, -1) }}T00:00Z --until {{ ds }}T00:00Z "
            '--properties-file "$PROPERTIES" --format json {{ "--replace" if params.replace else "" }}'
        ),
        env={"TRAFFIC": TRAFFIC, "OUT": OUT, "MASTER": MASTER, "PROPERTIES": PROPERTIES},
        append_env=True,
    )
