"""Two open pull requests that change one entity: the comment on the second warns of the first, on both forges."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reconciler.documents import PLAN
from reconciler.features.pull_requests.overlaps import MOST_REQUESTS, entities_line, hidden_entities
from reconciler.formats import plan_digest
from reconciler.model.entity import DEFAULT
from reconciler.model.plan import Action, Change, KeyChange, Plan, Reason
from tests.builders import client, pair, plan, user
from tests.support import gitlab_server as gitlab
from tests.support.command import Done, invoke
from tests.support.github_server import BOT, HEAD, NUMBER, REPOSITORY, TOKEN, Fault, GitHubServer, github_server
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github

SCHEMA = Draft202012Validator(json.loads((Path(__file__).parents[3] / "schemas/comment.v1.schema.json").read_text("utf-8")))


def planned(*names: str, cluster: str = "prod") -> Plan:
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS)
    changes = [Change(entity=user(name), action=Action.UPDATE, keys=(key,)) for name in names]
    made = plan(*changes)
    identity = made.cluster.named(cluster)
    return dataclasses.replace(made, cluster=identity, digest=plan_digest(identity.id, changes))


def variables(url: str) -> dict[str, str]:
    return {"GITHUB_ACTIONS": "true", "GITHUB_API_URL": url, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": TOKEN}


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with github_server() as server:
        yield server


def comment(folder: Path, server: GitHubServer, made: Plan, *options: str) -> Done:
    (folder / "plan.json").write_text(PLAN.text(made), encoding="utf-8")
    arguments = ("plan.json", "--pull-request", str(NUMBER), "--commit", HEAD, *options)
    return invoke("comment", *arguments, cwd=folder, env=variables(server.url))


def body_of(folder: Path, made: Plan) -> str:
    """The comment of another pull request, as this tool posts it."""
    with github_server() as server:
        assert comment(folder, server, made).code == 0
        (posted,) = server.comments.values()
    return str(posted["body"])


def test_the_comment_names_the_other_pull_request_and_the_entity(tmp_path: Path, github: GitHubServer) -> None:
    github.open_beside(12, "a review", body_of(tmp_path, planned("alice", "bob")))
    github.open_beside(13, body_of(tmp_path, planned("carol")))
    done = comment(tmp_path, github, planned("alice", "dave"), "--format", "json")
    (posted,) = github.comments.values()

    SCHEMA.validate(done.json())
    assert done.json()["overlaps"] == [{"pull_request": 12, "entities": [{"user": "alice"}]}]
    sentence = "Pull request #12 changes user=alice, too."
    assert sentence in done.err
    assert sentence in by_github(posted["body"]).text()
    assert "#13" not in done.err + posted["body"]

    applying = invoke(
        "comment", "--state", "applying", "--cluster", "prod", "--pull-request", str(NUMBER), cwd=tmp_path,
        env=variables(github.url),
    )  # fmt: skip
    (posted,) = github.comments.values()
    assert applying.code == 0
    assert "Pull request #12" not in posted["body"]
    assert hidden_entities(posted["body"]) == {user("alice"), user("dave")}


def test_a_merge_request_of_gitlab_is_compared_too(tmp_path: Path) -> None:
    with gitlab.gitlab_server() as server:
        server.open_beside(12, body_of(tmp_path, planned("alice")))
        (tmp_path / "plan.json").write_text(PLAN.text(planned("alice")), encoding="utf-8")
        environment = {
            "GITLAB_CI": "true", "CI_API_V4_URL": server.url, "CI_PROJECT_ID": gitlab.PROJECT_ID, "GITLAB_TOKEN": gitlab.TOKEN,
            "CI_MERGE_REQUEST_IID": str(gitlab.NUMBER), "CI_COMMIT_SHA": gitlab.HEAD,
        }  # fmt: skip
        done = invoke("comment", "plan.json", cwd=tmp_path, env=environment)
        (posted,) = server.comments.values()

    assert done.code == 0
    assert "Merge request !12 changes user=alice, too." in done.err
    assert "changes user=alice, too." in by_github(posted["body"]).text()


@pytest.mark.parametrize("case", ["another cluster", "another branch", "a stranger", "edited", "another entity"])
def test_what_is_not_the_same_change_brings_no_warning(tmp_path: Path, github: GitHubServer, case: str) -> None:
    text = body_of(
        tmp_path, planned("bob" if case == "another entity" else "alice", cluster="x" if "cluster" in case else "prod")
    )
    text = text.replace("Kafka quotas for", "Kafka  quotas for") if case == "edited" else text
    login, base = "mallory" if case == "a stranger" else BOT, "release" if case == "another branch" else "main"
    github.open_beside(12, text, login=login, base=base)
    done = comment(tmp_path, github, planned("alice"), "--format", "json")

    assert (done.code, done.json()["overlaps"], done.err) == (0, [], "")


def test_a_forge_that_does_not_answer_fails_no_comment(tmp_path: Path, github: GitHubServer) -> None:
    github.open_beside(12, body_of(tmp_path, planned("alice")))

    def refuse_list(request: object) -> None:
        if "base=main" in getattr(request, "path", ""):
            github.faults.append(Fault(status=403, body=b'{"message": "Resource not accessible by integration"}'))

    github.before = refuse_list
    done = comment(tmp_path, github, planned("alice"))

    assert (done.code, len(github.comments)) == (0, 1)
    assert "The other open requests were not all compared with this one" in done.err


def test_no_more_than_a_bound_of_requests_is_looked_at(tmp_path: Path, github: GitHubServer) -> None:
    for number in range(100, 100 + MOST_REQUESTS + 5):
        github.open_beside(number)
    done = comment(tmp_path, github, planned("alice"))
    read = {request.path for request in github.seen("GET") if "/issues/1" in request.path}

    assert done.code == 0
    assert len(read) == MOST_REQUESTS
    assert f"Only {MOST_REQUESTS} other open requests were compared" in done.err


ENTITIES = st.one_of(st.sampled_from([*HOSTILE, "a"]).map(user), st.just(client(DEFAULT)), st.just(pair("a", DEFAULT)))


@given(st.lists(ENTITIES, min_size=1, unique=True, max_size=8))
def test_hidden_entities_are_those_of_the_plan_whatever_their_names(entities: list[object]) -> None:
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS)
    made = plan(*(Change(entity=entity, action=Action.UPDATE, keys=(key,)) for entity in entities))  # type: ignore[arg-type]  # of builders
    line = entities_line(made)

    assert line is not None
    assert "--" not in line.removeprefix("<!--").removesuffix("-->")
    assert hidden_entities(f"text\n{line}\nmore") == set(entities)


@pytest.mark.parametrize("data", ["", "!", "AAAA", "eJwDAAAAAAE=", "eJyLrlZKLE4FAAaRAhQ="])
def test_a_damaged_line_names_no_entity(data: str) -> None:
    assert hidden_entities(f"<!-- kafka-quotas:entities {data} -->") == frozenset()


def test_a_plan_with_very_many_entities_has_no_line() -> None:
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS)
    names = (f"{number * 7_919 % 100_003}-{number * 104_729 % 1_000_003}" for number in range(5_000))

    assert entities_line(plan(*(Change(entity=user(name), action=Action.UPDATE, keys=(key,)) for name in names))) is None
