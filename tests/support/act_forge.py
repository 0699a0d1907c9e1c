"""The repository that ``init`` writes on a forge whose runner is act: its two clusters are real, its remote asks for a login."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support import raw_quotas
from tests.support.act import ActMachine, ActRun, linked_requirement
from tests.support.command import invoke
from tests.support.forge import Forge
from tests.support.git_https import git_over_https
from tests.support.github_server import BOT, REPOSITORY, TOKEN, GitHubServer, github_server, workflow_run
from tests.support.markdown_views import by_github

LOGIN = "security.protocol=PLAINTEXT\nclient.id=workflow\n"


class ActForge(Forge):
    """``clusters``: addresses of brokers, by the name of their manifest. ``requirement`` is what the jobs install."""

    def __init__(self, folder: Path, github: GitHubServer, clusters: Mapping[str, str], requirement: Path, config: Path) -> None:
        super().__init__(folder, github)
        self._clusters = clusters
        self.requirement = requirement
        self._act = ActMachine(
            folder=folder / "act",
            bare=self.remote,
            repository=REPOSITORY,
            token=TOKEN,
            api_url=github.url,
            environ={"GIT_CONFIG_GLOBAL": str(config)},
            secrets={"CLIENT_PROPERTIES": LOGIN, "PROPOSE_TOKEN": TOKEN},
        )

    def init(self, *arguments: str) -> None:
        """What ``init`` writes, with the addresses of the brokers, without limits that the tests' own connections would have."""
        done = invoke("init", str(self.work.folder), "--overwrite", *arguments, cwd=self.folder)
        assert done.code == 0, done.err
        manifests = self.work.folder / "clusters"
        for path in manifests.iterdir() if self._clusters else ():
            if path.stem not in self._clusters:
                path.unlink()
        for name, servers in self._clusters.items():
            text = (manifests / f"{name}.yaml").read_text(encoding="utf-8")
            before, _, rest = text.partition("bootstrapServers: [")
            (manifests / f"{name}.yaml").write_text(f'{before}bootstrapServers: ["{servers}"]{rest.partition("]")[2]}')
        (self.work.folder / "teams/platform/quotas.yaml").unlink(missing_ok=True)
        for path in (self.work.folder / ".github/workflows").glob("quotas-*.yml"):
            self.give(path.name, requirement=str(self.requirement))

    def give(self, workflow: str, **inputs: Any) -> None:
        """Inputs that the template's workflow of this file name passes on."""
        path = self.work.folder / ".github/workflows" / workflow
        lines = "".join(f"      {name.replace('_', '-')}: {json.dumps(value)}\n" for name, value in inputs.items())
        text = path.read_text(encoding="utf-8").rstrip() + "\n"
        path.write_text(
            text.replace("    with:\n", f"    with:\n{lines}") if "    with:\n" in text else f"{text}    with:\n{lines}"
        )

    def under_act(self, workflow: str, github: Mapping[str, Any]) -> ActRun:
        """Run a workflow of the repository for this event, whose artifacts the forge lists afterwards."""
        number = len(self.github.runs) + 1
        commit = str(github["sha"])
        self.github.runs[number] = workflow_run(number, event=github["event_name"], commit=commit, workflow=workflow)
        done = self._act.run(github["event_name"], github["event"], commit=commit, workflow=workflow, number=number)
        assert TOKEN not in done.log
        self.github.artifacts[number] = {path.name for path in done.artifacts.iterdir()}
        return done

    def propose(self, *, label: str = "acme:change") -> tuple[str, str]:
        """As ``Forge`` does, and the forge lists the changed lines."""
        head, merge = super().propose(label=label)
        names = self.work.git("diff", "--name-only", "--no-renames", f"main...{head}").splitlines()
        patches = {name: self.work.git("diff", f"main...{head}", "--", name) for name in names}
        self.github.files = [{"filename": name, "patch": text[text.find("@@") :]} for name, text in patches.items()]
        return head, merge

    def edit(self, path: str, old: str, new: str) -> None:
        """Change a file of the clone."""
        file = self.work.folder / path
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    def comment(self, cluster: str) -> str:
        """The text of the comment about a cluster, as a reader sees it."""
        (posted,) = (one for one in self.github.comments.values() if f'"cluster": "{cluster}"' in one["body"])
        assert posted["user"]["login"] == BOT
        return by_github(str(posted["body"])).text()

    def live(self, cluster: str) -> dict[Any, dict[str, float]]:
        """The quotas on the broker."""
        return raw_quotas.settled(self._clusters[cluster])

    def alter(self, cluster: str, user: str, key: str, value: float) -> None:
        """Change a quota by hand."""
        servers = self._clusters[cluster]
        raw_quotas.alter(servers, {frozenset({("user", user)}): {key: value}})
        raw_quotas.settled(servers)


@contextlib.contextmanager
def act_forge(folder: Path, clusters: Mapping[str, str], *arguments: str) -> Iterator[ActForge]:
    """The repository that ``init`` writes with these arguments, committed to main, for as long as the block lasts."""
    with github_server() as github, contextlib.ExitStack() as stack:
        bare = folder / "remote.git"
        served = stack.enter_context(git_over_https(bare, folder, host="github.com", name=REPOSITORY, token=TOKEN))
        made = ActForge(folder, github, clusters, linked_requirement(folder), served.config)
        made.init(*arguments)
        made.push()
        yield made
