"""The bash command of the DAG in deploy/, as Airflow would start it, read without Airflow."""

from __future__ import annotations

import ast
import re
import shlex
import string
from pathlib import Path

DAG = Path(__file__).parents[2] / "deploy" / "airflow_compact.py"


def airflow_command() -> list[str]:
    """The arguments behind ``kafka-quotas`` on 2026-11-21."""
    tree = ast.parse(DAG.read_text("utf-8"))
    constants = {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    (operator,) = [call for call in calls if getattr(call.func, "id", "") == "BashOperator"]
    keywords = {keyword.arg: keyword.value for keyword in operator.keywords}
    environment = keywords["env"]
    assert isinstance(environment, ast.Dict)
    pairs = zip(environment.keys, environment.values, strict=True)
    names = {ast.literal_eval(key): value.id for key, value in pairs if key is not None and isinstance(value, ast.Name)}
    dates = {"{{ macros.ds_add(ds, -1) }}": "2026-11-20", "{{ ds }}": "2026-11-21"}
    rendered = ast.literal_eval(keywords["bash_command"])
    for template, date in dates.items():
        rendered = rendered.replace(template, date)
    rendered = re.sub(r"\{\{.*?\}\}", "", rendered)
    words = shlex.split(rendered)
    assert words[0] == "kafka-quotas"
    values = {name: constants[constant] for name, constant in names.items()}
    return [string.Template(word).substitute(values) for word in words[1:]]
