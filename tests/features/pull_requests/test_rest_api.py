"""A forge's API with all it can answer, on a real server: what is waited for, tried again, and refused."""

from __future__ import annotations

import datetime
import json
import socket
import ssl
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.errors import FileAccessError, ForgeError, UsageError
from reconciler.features.pull_requests.forge import Request
from reconciler.features.pull_requests.github import GitHub
from reconciler.features.pull_requests.gitlab import GitLab
from reconciler.features.pull_requests.rest_api import read_token
from tests.builders import NOON
from tests.fakes import FakeClock
from tests.support import gitlab_server as gitlab
from tests.support.certificates import Authority
from tests.support.github_server import BOT, HEAD, NUMBER, REPOSITORY, TOKEN, Fault, GitHubServer, github_server
from tests.support.records import recorded

OWN = Request(number=NUMBER, commit=HEAD, address="")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def connected(url: str, clock: FakeClock, patience: float = 120.0) -> GitHub:
    environment = {"GITHUB_API_URL": url, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": TOKEN}
    return GitHub.connect(environment, clock=clock, patience=patience)


@pytest.fixture
def forge(github: GitHubServer, clock: FakeClock) -> Iterator[GitHub]:
    with closing(connected(github.url, clock)) as made:
        yield made


def message(error: pytest.ExceptionInfo[Exception]) -> str:
    """The error's words; neither they nor the traceback have the token."""
    assert TOKEN not in "".join(traceback.format_exception(error.value))
    return str(error.value)


def reset_in(seconds: int) -> str:
    return str(int((NOON + datetime.timedelta(seconds=seconds)).timestamp()))


def test_every_comment_is_read_once_over_all_pages_the_oldest_first(github, forge):
    github.per_page = 3
    ids = [github.add(f"comment {n}") for n in range(8)]
    # A comment comes twice when others are removed between two pages.
    github.comments = {-1: github.comments[ids[1]], **dict(reversed(github.comments.items()))}

    assert [one.id for one in forge.comments(OWN)] == ids
    assert len(github.seen("GET")) == 3


def test_a_request_is_logged_without_the_token_and_says_who_asks(github, forge):
    with recorded() as records:
        forge.create(OWN, "one")

    (answered,) = records.events("forge answered")
    assert (answered["method"], answered["status"]) == ("POST", 201)
    assert not records.holds(TOKEN)
    headers = github.requests[0].headers
    assert (headers["authorization"], headers["x-github-api-version"]) == (f"token {TOKEN}", "2022-11-28")
    assert headers["user-agent"].startswith("kafka-quotas/")


FAULTS = [Fault(status=status, body=b"<html>Unicorn!</html>") for status in (500, 502, 503, 504, 0)]


@pytest.mark.parametrize("fault", [*FAULTS, *(Fault(cut=cut) for cut in (0, 1, 200))])
def test_a_fault_that_passes_is_waited_for(github, forge, clock, fault):
    github.add("hello" * 100)
    github.faults += [fault] * 2

    assert [one.body for one in forge.comments(OWN)] == ["hello" * 100]
    assert clock.seconds == 1 + 2


def test_a_server_that_stays_down_is_given_up_on(github, forge, clock):
    github.faults += [Fault(status=503)] * 4

    with pytest.raises(ForgeError) as error:
        forge.comments(OWN)

    assert "answers with HTTP status 503" in message(error)
    assert (len(github.requests), clock.seconds) == (4, 1 + 2 + 4)


SECONDARY = b'{"message": "You have exceeded a secondary rate limit. Please wait."}'


@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (403, {"retry-after": "30"}, SECONDARY, 30),
        (429, {"retry-after": "7"}, b"Retry later", 7),
        (429, {"retry-after": "0"}, b"", 0),
        (403, {}, SECONDARY, 60),
        (429, {}, b"", 60),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset_in(50)}, b'{"message": "API rate limit"}', 51),
        (429, {"ratelimit-remaining": "0", "ratelimit-reset": reset_in(50)}, b"", 51),
        (403, {"x-ratelimit-remaining": "9", "x-ratelimit-reset": reset_in(50)}, SECONDARY, 60),
    ],
)
def test_a_limit_is_waited_for_as_long_as_the_server_asks(github, forge, clock, status, headers, body, seconds):
    github.faults.append(Fault(status=status, headers=headers, body=body))

    assert forge.comments(OWN) == []
    assert clock.seconds == seconds


@pytest.mark.parametrize(
    ("faults", "words", "waited"),
    [
        ([{"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset_in(1800)}], "the next try is in 1801 s", 0),
        ([{"retry-after": "999999999999"}], "the next try is in 999999999999 s", 0),
        ([{"retry-after": "50"}] * 3, "Only 20 s of waiting are left, and the next try is in 50 s", 100),
        ([{}] * 2, "Only 60 s of waiting are left, and the next try is in 120 s", 60),
    ],
)
def test_a_limit_beyond_what_may_be_waited_in_all_is_an_error_that_names_its_end(github, forge, clock, faults, words, waited):
    github.faults += [Fault(status=429, headers=headers) for headers in faults]

    with pytest.raises(ForgeError) as error:
        forge.comments(OWN)

    assert f"GitHub's API at {github.url}: the rate limit is reached" in message(error)
    assert words in message(error)
    assert clock.seconds == waited


ELSEWHERE = ["https://evil.example.org/x", "//evil.example.org/x", "http://127.0.0.1:1/", "ftp://127.0.0.1/", "http://[/"]


@pytest.mark.parametrize("location", ELSEWHERE)
def test_another_server_is_never_given_the_token(github, forge, location):
    github.faults.append(Fault(status=200, headers={"link": f'<{location}>; rel="next"'}, body=b"[]"))

    with pytest.raises(ForgeError) as error:
        forge.comments(OWN)

    assert "another server" in message(error)
    assert len(github.requests) == 1


def test_a_redirection_is_not_followed_and_a_circle_of_pages_ends(github, forge):
    github.faults.append(Fault(status=301, headers={"location": "/x"}))
    with pytest.raises(ForgeError, match="HTTP status 301"):
        forge.comments(OWN)
    github.faults += [Fault(status=200, headers={"link": '</x>; rel="next"'}, body=b"[]")] * 150
    with pytest.raises(ForgeError, match="more than 100 pages"):
        forge.comments(OWN)


def test_a_refusal_names_what_the_token_lacks(github, forge):
    github.writes = False

    with pytest.raises(ForgeError) as error:
        forge.create(OWN, "hello")

    assert error.value.status == 403
    for words in ("permissions: pull-requests: write", "Resource not accessible by", "issues=write; pull_requests=write"):
        assert words in message(error)


def test_a_refusal_is_in_the_words_of_the_forge(github, forge):
    with pytest.raises(ForgeError, match=r"422: Validation Failed; .*is too long \(maximum is 65536"):
        forge.create(OWN, "x" * 70_000)
    with pytest.raises(ForgeError, match=r"cannot read the comments of pull request 99 of acme/quotas: .*404: Not Found"):
        forge.comments(Request(number=99, commit="", address=""))
    echoed = json.dumps({"message": f"bad token {TOKEN}\u202e\x1b[31m"}).encode()
    github.faults.append(Fault(status=400, body=echoed))
    with pytest.raises(ForgeError) as error:
        forge.comments(OWN)
    assert "bad token ***\\u202e\\u001b[31m" in message(error)
    github.logins.clear()
    with pytest.raises(ForgeError, match=r"not expired.*401.*Bad credentials"):
        forge.comments(OWN)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"{", b"[1]", b'[{"id": "x"}]', b'[{"id": 1}]', b'{"a": 1}', b"[" * 100_000, b'"text"', b"\xff",
        b"<html>log in</html>",
    ],
)  # fmt: skip
def test_an_answer_of_something_else_is_an_error(github, forge, body):
    github.faults += [Fault(status=200, body=body)] * 4

    with pytest.raises(ForgeError, match="cannot read the comments"):
        forge.comments(OWN)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[1]", b'{"message": 5}', b'{"message": null, "errors": "x"}', b"{" * 99, b"[" * 100_000, b"\xff",
        b'{"message": {"a": {"b": [1]}}, "errors": [[1], {"c": null}]}',
    ],
)  # fmt: skip
def test_a_refusal_in_any_form_is_an_error(github, forge, body):
    github.faults.append(Fault(status=422, body=body))

    with pytest.raises(ForgeError) as error:
        forge.create(OWN, "x")

    assert error.value.status == 422


@pytest.mark.parametrize(
    "url",
    [
        "github.com", "http://github.example.org", "https://u:p@h", "https://h/?x", "https://h/#x", "ftp://h", "https://",
        "https://h:x", "http://[", "https://é",
    ],
)  # fmt: skip
def test_an_address_that_is_none_or_gives_the_token_away_is_refused(url, clock):
    with pytest.raises(UsageError):
        connected(url, clock)


def test_a_proxy_of_the_environment_is_used_and_never_sees_the_token(monkeypatch, clock):
    seen: list[bytes] = []

    def refuse(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            seen.append(connection.recv(65_536))
            connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse, args=(listener,), daemon=True)
        thread.start()
        for name in ("HTTPS_PROXY", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("https_proxy", f"http://me:p%40ss@127.0.0.1:{listener.getsockname()[1]}")
        with closing(connected("https://github.example.org", clock, 0.0)) as forge, pytest.raises(ForgeError) as error:
            forge.whoami()
        thread.join(timeout=10)

    assert "the proxy did not let us through" in message(error)
    assert seen[0].startswith(b"CONNECT github.example.org:443 ")
    assert b"Basic bWU6cEBzcw==" in seen[0]
    assert TOKEN.encode() not in seen[0]


def test_authorities_are_those_that_the_environment_names(clock, tmp_path: Path, monkeypatch):
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem, encoding="utf-8")
    (tmp_path / "server.pem").write_text(authority.sign("server").pem(), encoding="utf-8")
    (tmp_path / "empty.pem").write_text("")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with github_server(tls=context) as server, closing(connected(server.url, clock)) as forge:
        with pytest.raises(ForgeError, match="no trusted TLS connection"):
            forge.whoami()
        assert (server.requests, clock.seconds) == ([], 0), "and it is not tried again"
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        with closing(connected(server.url, clock)) as trusting:
            assert trusting.whoami() == BOT
        monkeypatch.delenv("SSL_CERT_FILE")
    with gitlab.gitlab_server(tls=context) as other:
        job = {"CI_API_V4_URL": other.url, "CI_PROJECT_ID": gitlab.PROJECT_ID, "GITLAB_TOKEN": gitlab.TOKEN}
        named = job | {"CI_SERVER_TLS_CA_FILE": str(tmp_path / "ca.pem")}
        with closing(GitLab.connect(named, clock=clock, patience=0)) as trusting_gitlab:
            assert trusting_gitlab.whoami() == gitlab.BOT
        for file, words in (("empty.pem", "no certificates"), ("absent.pem", "cannot read the certificates")):
            with pytest.raises(FileAccessError, match=words):
                GitLab.connect(job | {"CI_SERVER_TLS_CA_FILE": str(tmp_path / file)}, clock=clock, patience=0)


@pytest.mark.parametrize("token", ["SECRET\r\nX-Header: 1", "SECRET one", "SECR\u00c9T", "SECRET\x00", "", "\n"])
def test_another_text_is_refused_as_a_token_without_being_shown(token):
    assert read_token({"T": " other\n"}, "T") == "other"
    with pytest.raises(UsageError, match="variable T has no token") as error:
        read_token({"T": token}, "T")
    assert "SECR" not in "".join(traceback.format_exception(error.value))
