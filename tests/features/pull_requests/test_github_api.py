"""GitHub's API with all it can answer, on a real server: what is waited for, tried again, followed, and refused."""

from __future__ import annotations

import datetime
import json
import socket
import ssl
import threading
import traceback
from collections.abc import Iterator

import pytest

from reconciler.errors import ForgeError, UsageError
from reconciler.features.pull_requests.github.api import GitHubApi, github_address
from reconciler.features.pull_requests.github.pull_requests import PullRequestComments
from reconciler.integrations.transport import Http, Token, proxy_for
from tests.builders import NOON
from tests.fakes import FakeClock
from tests.support.certificates import Authority
from tests.support.github_server import BOT, NUMBER, PREFIX, REPOSITORY, TOKEN, Fault, GitHubServer, github_server
from tests.support.records import recorded

LIMITED = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0", "content-type": "application/json"}


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with github_server() as server:
        yield server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def comments(github: GitHubServer, clock: FakeClock) -> Iterator[PullRequestComments]:
    api = GitHubApi(github_address(github.url), Token(TOKEN), clock=clock, patience=120.0)
    yield PullRequestComments(api, repository=REPOSITORY, number=NUMBER)
    api.close()


def message(error: pytest.ExceptionInfo[ForgeError]) -> str:
    """The error's words; neither they nor the traceback have the token."""
    assert TOKEN not in "".join(traceback.format_exception(error.value))
    return str(error.value)


def reset_in(seconds: int) -> str:
    return str(int((NOON + datetime.timedelta(seconds=seconds)).timestamp()))


def test_every_comment_is_read_over_all_pages(github, comments):
    github.per_page = 3
    ids = [github.add(f"comment {n}") for n in range(8)]

    assert [one.id for one in comments.all()] == ids
    assert len(github.seen("GET")) == 3


def test_a_comment_that_comes_twice_is_one_and_the_oldest_is_first(github, comments):
    one, two = github.add("one"), github.add("two")
    github.comments = {two: github.comments[two], one: github.comments[one], -1: github.comments[two]}

    assert [comment.id for comment in comments.all()] == [one, two]


def test_each_request_is_logged_with_its_status_and_without_the_token(github, comments):
    with recorded() as records:
        comments.create("one")

    (answered,) = records.events("forge answered")
    assert (answered["method"], answered["status"]) == ("POST", 201)
    assert str(answered["url"]).startswith(github.url)
    assert not records.holds(TOKEN)


def test_a_request_says_who_asks_and_for_which_version(github, comments):
    comments.all()

    headers = github.requests[0].headers
    assert headers["authorization"] == f"token {TOKEN}"
    assert headers["user-agent"].startswith("kafka-quotas/")
    assert headers["x-github-api-version"] == "2022-11-28"
    assert github.requests[0].path == f"{PREFIX}/repos/{REPOSITORY}/issues/{NUMBER}/comments?per_page=100"


def test_comments_are_posted_changed_and_removed(github, comments):
    created = comments.create("one ✓")
    changed = comments.update(created.id, "two")
    comments.delete(created.id)
    comments.delete(created.id)

    assert (created.author, created.body) == (BOT, "one ✓")
    assert changed is not None
    assert changed.body == "two"
    assert github.comments == {}
    assert comments.update(created.id, "three") is None


def test_a_comment_of_a_deleted_account_has_no_author(github, comments):
    github.add("hello", login=None)

    assert [one.author for one in comments.all()] == [None]


@pytest.mark.parametrize("status", [500, 502, 503, 504, 0])
def test_a_fault_that_passes_is_waited_for(github, comments, clock, status):
    github.add("hello")
    github.faults += [Fault(status=status, body=b"<html>Unicorn!</html>", headers={"content-type": "text/html"})] * 2

    assert len(comments.all()) == 1
    assert clock.seconds == 1 + 2


@pytest.mark.parametrize("cut", [0, 1, 200])
def test_an_answer_that_is_cut_short_is_asked_for_again(github, comments, cut):
    github.add("hello" * 100)
    github.faults.append(Fault(cut=cut))

    assert [one.body for one in comments.all()] == ["hello" * 100]


def test_a_server_that_stays_down_is_given_up_on(github, comments, clock):
    github.faults += [Fault(status=503)] * 4

    with pytest.raises(ForgeError) as error:
        comments.all()

    assert "answers with HTTP status 503" in message(error)
    assert len(github.requests) == 4
    assert clock.seconds == 1 + 2 + 4


def test_a_server_that_is_not_there_is_told_without_its_object_in_memory(clock):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    api = GitHubApi(github_address(f"http://127.0.0.1:{port}"), Token(TOKEN), clock=clock, patience=120.0)

    with pytest.raises(ForgeError) as error:
        api.get("/user", doing="ask")

    assert message(error) == f"cannot ask: GitHub's API at http://127.0.0.1:{port}: no connection"


def test_a_secondary_limit_is_waited_out_as_long_as_it_says(github, comments, clock):
    github.faults.append(
        Fault(status=403, headers={"retry-after": "30"}, body=b'{"message": "You have exceeded a secondary rate limit"}')
    )
    github.faults.append(Fault(status=429, headers={"retry-after": "7"}))

    assert comments.all() == []
    assert clock.seconds == 37


def test_a_secondary_limit_that_does_not_say_how_long_is_a_minute(github, comments, clock):
    words = b'{"message": "You have exceeded a secondary rate limit. Please wait."}'
    github.faults.append(Fault(status=403, headers={"content-type": "application/json"}, body=words))

    assert comments.all() == []
    assert clock.seconds == 60


def test_each_further_limit_that_does_not_say_how_long_is_waited_for_twice_as_long(github, comments, clock):
    github.faults += [Fault(status=429)] * 2

    with pytest.raises(ForgeError, match="in 120 s, and only 60 s"):
        comments.all()

    assert clock.seconds == 60


def test_the_primary_limit_is_waited_for_until_it_ends(github, comments, clock):
    github.faults.append(
        Fault(status=403, headers={**LIMITED, "x-ratelimit-reset": reset_in(50)}, body=b'{"message": "API rate limit"}')
    )

    assert comments.all() == []
    assert clock.seconds == 51


@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_beyond_what_may_be_waited_is_an_error_that_says_when_it_ends(github, comments, clock, status):
    github.faults.append(Fault(status=status, headers={**LIMITED, "x-ratelimit-reset": reset_in(1800)}))

    with pytest.raises(ForgeError) as error:
        comments.all()

    end = NOON + datetime.timedelta(seconds=1801)
    assert (
        f"the rate limit of GitHub's API at {github.url} is reached. The limit ends at {end:%Y-%m-%d %H:%M:%S} UTC, in 1801 s"
        in message(error)
    )
    assert clock.seconds == 0


def test_waits_for_limits_are_bounded_together(github, comments, clock):
    github.faults += [Fault(status=429, headers={"retry-after": "50"})] * 3

    with pytest.raises(ForgeError, match="only 20 s of waiting are left"):
        comments.all()

    assert clock.seconds == 100


@pytest.mark.parametrize("reset", ["soon", "-5", "1e9", "9" * 40, ""])
def test_a_limit_with_a_senseless_end_is_no_reason_to_crash(github, comments, reset):
    github.faults.append(Fault(status=403, headers={**LIMITED, "x-ratelimit-reset": reset}, body=b"{}"))

    with pytest.raises(ForgeError, match="HTTP status 403"):
        comments.all()


@pytest.mark.parametrize("after", ["999999999999", "0"])
def test_any_number_of_seconds_can_be_asked_for(github, comments, after):
    github.faults.append(Fault(status=429, headers={"retry-after": after}))

    if after == "0":
        assert comments.all() == []
    else:
        with pytest.raises(ForgeError, match="it ends at 2027-"):
            comments.all()


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (307, "POST"), (308, "POST"), (302, "GET")])
def test_a_renamed_repository_is_followed_with_the_same_request(github, comments, status, method):
    moved = f"{github.url}/repos/{REPOSITORY}/issues/{NUMBER}/comments"
    github.faults.append(Fault(status=status, headers={"location": moved}))

    if method == "POST":
        comments.create("hello")
    else:
        comments.all()

    assert [one.method for one in github.requests] == [method, method]
    assert (method == "POST") is (len(github.comments) == 1)


@pytest.mark.parametrize(
    "location", ["https://evil.example.org/x", "//evil.example.org/x", "http://127.0.0.1:1/", "ftp://127.0.0.1/", "http://[/"]
)
def test_another_server_is_never_given_the_token(github, comments, location):
    github.faults.append(Fault(status=307, headers={"location": location}))

    with pytest.raises(ForgeError) as error:
        comments.create("hello")

    assert "another server" in message(error)
    assert len(github.requests) == 1


def test_the_next_page_is_not_asked_of_another_server(github, comments):
    link = '<https://evil.example.org/x?page=2>; rel="next"'
    github.faults.append(Fault(status=200, headers={"link": link, "content-type": "application/json"}, body=b"[]"))

    with pytest.raises(ForgeError, match="another server"):
        comments.all()


def test_redirections_in_a_circle_end(github, comments):
    github.faults += [Fault(status=301, headers={"location": f"{github.url}/x"})] * 9

    with pytest.raises(ForgeError, match="lead nowhere"):
        comments.all()

    assert len(github.requests) == 6


def test_pages_without_end_end(github, comments):
    again = {"link": f'<{github.url}/x>; rel="next"', "content-type": "application/json"}
    github.faults += [Fault(status=200, headers=again, body=b"[]")] * 150

    with pytest.raises(ForgeError, match="more than 100 pages"):
        comments.all()


def test_a_token_without_rights_is_told_which_it_lacks(github, comments):
    github.writes = False

    with pytest.raises(ForgeError) as error:
        comments.create("hello")

    words = message(error)
    assert error.value.status == 403
    assert "permissions: pull-requests: write" in words
    assert "Resource not accessible by integration" in words
    assert "issues=write; pull_requests=write" in words


def test_a_token_that_is_no_longer_good_is_told(github, comments):
    github.logins.clear()

    with pytest.raises(ForgeError, match=r"Is it expired.*401.*Bad credentials"):
        comments.all()


def test_a_pull_request_that_is_not_there_is_told(github, clock):
    api = GitHubApi(github_address(github.url), Token(TOKEN), clock=clock, patience=0.0)

    with pytest.raises(ForgeError, match=r"cannot read the comments of pull request 99 of acme/quotas: .*404: Not Found"):
        PullRequestComments(api, repository=REPOSITORY, number=99).all()

    api.close()


def test_what_github_does_not_take_is_told_in_its_words(comments):
    with pytest.raises(ForgeError, match=r"422: Validation Failed; data unprocessable body is too long \(maximum is 65536"):
        comments.create("x" * 70_000)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{",
        b"[1]",
        b'[{"id": "x"}]',
        b'[{"id": 1}]',
        b'{"a": 1}',
        b"[" * 100_000,
        b'"text"',
        b"\xff",
        b"<html>log in</html>",
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/html", "application/json; charset=nonsense"])
def test_an_answer_of_something_else_is_an_error_and_no_crash(github, comments, body, kind):
    github.faults += [Fault(status=200, headers={"content-type": kind}, body=body)] * 4

    with pytest.raises(ForgeError, match="cannot read the comments"):
        comments.all()


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[1]", b'{"message": 5}', b'{"message": null, "errors": "x"}', b"{" * 99, b"[" * 100_000, b"\xff"]
)
@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 418, 422, 451, 501, 599])
def test_a_refusal_in_any_form_is_an_error_and_no_crash(github, comments, status, body):
    github.faults.append(Fault(status=status, body=body, headers={"content-type": "application/json"}))

    with pytest.raises(ForgeError) as error:
        comments.create("x")

    assert error.value.status == status


def test_a_server_that_sends_the_token_back_does_not_get_it_printed(github, comments):
    echoed = json.dumps({"message": f"bad token {TOKEN}\u202e\x1b[31m"}).encode()
    github.faults.append(Fault(status=400, body=echoed))

    with pytest.raises(ForgeError) as error:
        comments.all()

    assert "bad token ***\\u202e\\u001b[31m" in message(error)


def test_a_post_whose_answer_was_lost_is_sent_again(github, comments):
    github.faults.append(Fault(method="POST", done=True))

    comments.create("hello")

    assert len(github.comments) == 2, "which is why comments that are there twice are folded"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "github.com",
        "http://github.example.org",
        "https://u:p@h",
        "https://h/?x",
        "https://h/#x",
        "ftp://h",
        "https://",
        "https://h:x",
        "http://[",
        "https://é",
    ],
)
def test_an_address_that_is_none_or_gives_the_token_away_is_refused(url):
    with pytest.raises(UsageError):
        github_address(url)


@pytest.mark.parametrize(
    ("url", "made"),
    [
        ("https://api.github.com", "https://api.github.com/user"),
        ("https://github.example.org:8443/api/v3/", "https://github.example.org:8443/api/v3/user"),
        ("http://[::1]:80", "http://[::1]/user"),
    ],
)
def test_paths_are_below_the_address(url, made):
    assert github_address(url).url("/user") == made


def test_a_proxy_of_the_environment_is_used_and_never_sees_the_token(monkeypatch):
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
        api = GitHubApi(github_address("https://github.example.org"), Token(TOKEN), clock=FakeClock(), patience=0.0)
        with pytest.raises(ForgeError) as error:
            api.get("/user", doing="ask")
        api.close()
        thread.join(timeout=10)

    assert "the proxy did not let us through" in message(error)
    assert seen[0].startswith(b"CONNECT github.example.org:443 ")
    assert b"Basic bWU6cEBzcw==" in seen[0]
    assert TOKEN.encode() not in seen[0]


def test_no_proxy_is_asked_for_this_machine_or_what_no_proxy_names(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "github.example.org")

    assert proxy_for(github_address("https://localhost")) is None
    assert proxy_for(github_address("https://github.example.org")) is None
    assert proxy_for(github_address("https://api.github.com")) == "http://127.0.0.1:1"


def test_what_holds_a_connection_gives_it_back(github):
    http = Http(github_address(github.url), purpose="a test", extra="github")
    answer = http.send("GET", f"{github.url}/user", headers={}, body=None)
    http.close()

    assert answer.status == 401


@pytest.fixture
def secured(tmp_path) -> Iterator[tuple[GitHubServer, Authority, str]]:
    """The server behind TLS, with a certificate for 127.0.0.1 that only the returned authority vouches for."""
    authority = Authority()
    (tmp_path / "server.pem").write_text(authority.sign("github").pem(), encoding="utf-8")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with github_server(tls=context) as server:
        yield server, authority, server.url


def test_a_server_that_nobody_vouches_for_is_not_given_the_token(secured, clock):
    server, _, url = secured
    api = GitHubApi(github_address(url), Token(TOKEN), clock=clock, patience=120.0)

    with pytest.raises(ForgeError) as error:
        api.get("/user", doing="ask")
    api.close()

    assert "no trusted TLS connection" in message(error)
    assert (server.requests, clock.seconds) == ([], 0), "and it is not tried again"


def test_the_authority_of_a_company_is_trusted_where_the_environment_names_it(secured, clock, tmp_path, monkeypatch):
    server, authority, url = secured
    server.identity = True
    (tmp_path / "ca.pem").write_text(authority.pem, encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    api = GitHubApi(github_address(url), Token(TOKEN), clock=clock, patience=120.0)

    assert PullRequestComments(api, repository=REPOSITORY, number=NUMBER).whoami() == BOT
    api.close()


@pytest.mark.parametrize("proxy", ["http://[", "ftp://proxy:1", "http://me:SECRET@host:port"])
def test_a_proxy_that_is_none_is_a_usage_error_without_its_password(monkeypatch, proxy):
    monkeypatch.setenv("https_proxy", proxy)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(UsageError, match="the proxy for https") as error:
        Http(github_address("https://github.example.org"), purpose="a test", extra="github")

    assert "SECRET" not in "".join(traceback.format_exception(error.value))


def test_a_proxy_may_be_named_without_its_scheme(monkeypatch):
    monkeypatch.setenv("https_proxy", "proxy.example.org:3128")
    monkeypatch.setenv("no_proxy", "")

    assert proxy_for(github_address("https://api.github.com")) == "http://proxy.example.org:3128"
