"""A DAG for Apache Airflow 3.1: plan, wait for a person, apply exactly the reviewed plan, and look for drift.

Copy it with ``quota_tasks.py`` into the folder of DAGs. kafka-quotas has to be installed where tasks run.
"""

from __future__ import annotations

import datetime

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import dag, task
from quota_tasks import apply_plan, check_drift, plan_quotas

CLUSTER = "prod"


@dag(
    dag_id="kafka_quotas",
    schedule="@hourly",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    max_active_runs=1,
    tags=["kafka", "quotas"],
)
def kafka_quotas() -> None:
    """Plan, approve, apply, drift."""
    planned = task(plan_quotas)(CLUSTER)
    approved = ApprovalOperator(
        task_id="approve",
        subject="Apply the plan of kafka-quotas?",
        body="{{ ti.xcom_pull(task_ids='plan_quotas')['plan'] }}",
        execution_timeout=datetime.timedelta(hours=8),
    )
    applied = task(apply_plan)(planned, CLUSTER)
    drift = task(check_drift)(CLUSTER)
    planned >> approved >> applied >> drift


kafka_quotas()
