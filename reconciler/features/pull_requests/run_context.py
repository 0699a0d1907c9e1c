"""Who merged and approved the commit that a CI job applies."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final

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
    with contextlib.closing(forge.connect(environment, clock=SystemClock(), patience=_PATIENCE)) as api:
        numbers = [] if job.request is None else [job.request]
        if not numbers and commit is not None:
            # The one request that became exactly this commit.
            pushed = dataclasses.replace(job, commit=commit, head=None, pushed=True)
            doing = f"look for the {api.request} of commit {commit} in {api.repository}"
            numbers = [number for number, exact in api.candidates(pushed, doing) if exact]
        if len(numbers) == 1:
            yield RunContext(job=facts, pull_request=api.merged(numbers[0]))
