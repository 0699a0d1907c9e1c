"""Who merged and approved the commit that a CI job applies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.features.pull_requests.forge import Forge, Job
from reconciler.features.pull_requests.posting import job_forge
from reconciler.model import JobFacts, RunContext
from reconciler.ports import SystemClock

_PATIENCE: Final = 20.0
"""Seconds of waiting for rate limits and faults: the run goes on meanwhile."""


def run_context(environment: Mapping[str, str]) -> Iterator[RunContext]:
    """Yield what the variables of a job state, and then what its forge knows too, if the job has a token.

    Yields nothing outside of a job. Raises ``ForgeError``, ``FileAccessError`` and ``UsageError``.
    """
    forge = job_forge(environment)
    if forge is None:
        return
    job = forge.job(environment)
    commit = environment.get(forge.commit_variable) or None
    facts = JobFacts(
        source=f"variables of the {forge.title} job",
        run=job.link,
        commit=commit,
        started_by=next((environment[name] for name in forge.starter_variables if environment.get(name)), None),
    )
    yield RunContext(job=facts)
    if not environment.get(forge.login_variable):
        return
    api = forge.connect(environment, clock=SystemClock(), patience=_PATIENCE)
    try:
        number = job.request
        if number is None and commit is not None:
            number = _merged_as(api, dataclasses.replace(job, commit=commit, head=None, pushed=True))
        if number is not None:
            yield RunContext(job=facts, pull_request=api.merged(number))
    finally:
        api.close()


def _merged_as(api: Forge, job: Job) -> int | None:
    """The one request that became exactly this commit."""
    doing = f"look for the {api.request} of commit {job.commit} in {api.repository}"
    numbers = [number for number, exact in api.candidates(job, doing) if exact]
    return numbers[0] if len(numbers) == 1 else None
