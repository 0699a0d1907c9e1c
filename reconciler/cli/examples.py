"""Two examples for each command, and the page of the documentation to read; loaded when a help is printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.hooks import CommandExamples, added

_OF_CORE: Final[Mapping[str, CommandExamples]] = {
    "": CommandExamples(
        page="index.md",
        lines=(
            ("Try everything on a local Kafka", "sandbox demo"),
            ("Show the changes that apply would make", "plan quotas --cluster prod"),
        ),
    ),
    "export": CommandExamples(
        page="operators.md",
        lines=(
            (
                "Write all quotas of a cluster as manifests",
                "export --bootstrap-server b1:9092 --command-config client.properties --folder quotas",
            ),
            ("Keep a snapshot for plan --current and backtest --current", "export quotas --cluster prod --snapshot prod.json"),
        ),
    ),
    "validate": CommandExamples(
        page="authors.md",
        lines=(
            ("Check all manifests below a folder", "validate quotas"),
            ("Fail on warnings, and keep a JUnit file for CI", "validate quotas --fail-on warning --out junit=junit.xml"),
        ),
    ),
    "plan": CommandExamples(
        page="reviewers.md",
        lines=(
            ("Compare the manifests with the live cluster", "plan quotas --cluster prod"),
            (
                "Compare with a snapshot, and save the plan and a comment",
                "plan quotas --current prod.json --out json=plan.json --out markdown=plan.md",
            ),
        ),
    ),
    "backtest": CommandExamples(
        page="backtest.md",
        lines=(
            (
                "Replay the request logs of one broker",
                "backtest quotas --traffic 1=/logs/broker-1 --current prod.json",
            ),
            (
                "Write a page with plots from per-second totals",
                "backtest quotas --traffic history --current prod.json --out html=backtest.html",
            ),
            ("Judge the loss of broker 3", "backtest --bootstrap-server b1:9092 --traffic history --without-broker 3"),
        ),
    ),
    "compact": CommandExamples(
        page="request-log.md",
        lines=(
            ("Sum up the logs of two brokers", "compact --traffic 1=/logs/broker-1 --traffic 2=/logs/broker-2 --folder history"),
            ("Sum up on a Spark cluster", "compact --traffic /logs --folder history --master spark://host:7077"),
            (
                "Write the days of an address through Spark",
                "compact --traffic s3a://logs/kafka --folder s3a://lake/seconds --since 2026-11-20T00:00Z",
            ),
            (
                "Keep the samples of a Prometheus server",
                "compact --traffic prometheus+https://prometheus.example.org/ --folder history",
            ),
        ),
    ),
    "tool check-traffic": CommandExamples(
        page="notebooks.md",
        lines=(
            ("Check a folder of Parquet files", "tool check-traffic --traffic lake/traffic"),
            (
                "Check other columns, and fail on warnings",
                "tool check-traffic --traffic out.csv --mapping mapping.yaml --fail-on warning",
            ),
        ),
    ),
    "tool render": CommandExamples(
        page="ci.md",
        lines=(
            ("Print a saved plan as text", "tool render plan.json"),
            ("Write it as a page and for code scanning", "tool render plan.json --out html=plan.html --out sarif=plan.sarif"),
        ),
    ),
    "apply": CommandExamples(
        page="apply.md",
        lines=(
            ("Show the plan, ask, write and verify", "apply quotas --cluster prod"),
            (
                "Apply exactly the plan that was reviewed, and keep a report for revert",
                "apply quotas --plan plan.json --auto-approve --report report.json",
            ),
        ),
    ),
    "revert": CommandExamples(
        page="apply.md",
        lines=(
            ("Restore the quotas from before a run", "revert report.json quotas"),
            ("Let the cluster validate that, and write nothing", "revert report.json quotas --validate-only"),
        ),
    ),
    "alter": CommandExamples(
        page="describe-and-alter.md",
        lines=(
            ("Set one quota of a user", "alter quotas --name user=alice --add producer_byte_rate=10MiB"),
            ("Raise it for two hours", "alter quotas --name user=alice --add producer_byte_rate=50MiB --for 2h"),
            (
                "Remove a quota of the default client-id",
                "alter --bootstrap-server b1:9092 --defaults client-id --delete request_percentage",
            ),
        ),
    ),
    "describe": CommandExamples(
        page="describe-and-alter.md",
        lines=(
            ("Print every quota of a cluster", "describe --bootstrap-server b1:9092"),
            ("Print the quotas of users that begin with 'etl-' as CSV", "describe quotas --prefix user=etl- --format csv"),
        ),
    ),
    "resolve": CommandExamples(
        page="resolve.md",
        lines=(
            (
                "Show the limits of a client, and draw the precedence levels",
                "resolve quotas --name user=alice --name client-id=app --explain",
            ),
            ("Show which clients get other limits by a change", "resolve quotas --all --diff planned"),
        ),
    ),
    "drift": CommandExamples(
        page="at-night.md",
        lines=(
            ("Compare a cluster with the manifests and the last apply", "drift quotas --cluster prod --baseline baseline.json"),
            ("Exit 2 on differences, for a scheduled job", "drift quotas --all-clusters --detailed-exitcode --format json"),
        ),
    ),
    "tool clusters": CommandExamples(
        page="ci.md",
        lines=(
            ("List the clusters that a branch changes", "tool clusters quotas --changed-since origin/main"),
            (
                "Write them as the matrix of a workflow",
                "tool clusters quotas --changed-since origin/main --out outputs=matrix.txt",
            ),
        ),
    ),
    "tool": CommandExamples(
        page="authors.md",
        lines=(
            ("Print the schema of manifests, for an editor", "tool schema ClientQuotas"),
            ("Print a saved plan as text", "tool render plan.json"),
        ),
    ),
    "explain": CommandExamples(
        page="guards.md",
        lines=(
            ("Explain the guard against removals", "explain prune"),
            ("List everything that has an id", "explain"),
        ),
    ),
    "tool schema": CommandExamples(
        page="authors.md",
        lines=(
            ("Print the schema of manifests, for an editor", "tool schema ClientQuotas"),
            ("Print the schema of a saved plan", "tool schema plan"),
        ),
    ),
    "tool completion": CommandExamples(
        page="install.md",
        lines=(
            ("bash: evaluate this output in ~/.bashrc", "tool completion bash"),
            ("fish: save this output as ~/.config/fish/completions/kafka-quotas.fish", "tool completion fish"),
            ("zsh: save this output as _kafka-quotas in a folder of $fpath", "tool completion zsh"),
        ),
    ),
}
"""By the words of the command, ``""`` for the program itself."""


def examples() -> Mapping[str, CommandExamples]:
    """Those of every command by its name, and of each word below it, such as ``sandbox start``."""
    every = dict(_OF_CORE)
    every.update(added("EXAMPLES"))
    return every
