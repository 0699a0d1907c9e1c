"""A bare repository as a forge serves it: git's own HTTP backend behind TLS and a login, reached by the forge's name.

No address of the machine is needed for that name: git is given a proxy on loopback, which is this server.
"""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.support.certificates import Authority
from tests.support.http_servers import serving_http


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRepository:
    """``url`` is where a clone has it from; ``config`` is a file for ``GIT_CONFIG_GLOBAL``."""

    url: str
    config: Path


@contextlib.contextmanager
def git_over_https(bare: Path, folder: Path, *, host: str, name: str, token: str) -> Iterator[ServedRepository]:
    """Serve the repository at ``https://HOST/NAME`` to who has the token, until the block ends."""
    authority = Authority("forge")
    signed = authority.sign(host, hosts=(host,))
    (folder / "forge.pem").write_text(signed.pem(), encoding="utf-8")
    (folder / "ca.pem").write_text(authority.pem, encoding="utf-8")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "forge.pem")
    login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    config = folder / "gitconfig"
    with serving_http(_Handler, inner=tls, bare=bare, host=host, name=name, login=f"Basic {login}") as port:
        proxy = f'[http "https://{host}"]\n\tproxy = http://127.0.0.1:{port}\n\tsslCAInfo = {folder / "ca.pem"}\n'
        config.write_text(f"[safe]\n\tdirectory = *\n{proxy}", encoding="utf-8")
        yield ServedRepository(url=f"https://{host}/{name}", config=config)


class _Handler(BaseHTTPRequestHandler):
    inner: ssl.SSLContext
    bare: Path
    host: str
    name: str
    login: str

    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_CONNECT(self) -> None:
        """The tunnel ends here: what comes next on the connection is TLS, and the requests in it are this handler's."""
        if self.path != f"{self.host}:443":
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        self.connection = self.inner.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
        self.close_connection = False

    def answer(self) -> None:
        """One request of git, by git's own program for it."""
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        path, _, query = self.path.partition("?")
        inside = path.removeprefix(f"/{self.name}").removeprefix(".git")
        if self.headers.get("authorization") != self.login:
            self._write(401, {"www-authenticate": 'Basic realm="GitHub"'}, b"")
            return
        if not path.startswith(f"/{self.name}"):
            self._write(404, {}, b"")
            return
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.bare.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": f"/{self.bare.name}{inside}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(content)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "REMOTE_USER": "x-access-token",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"], env=environment, input=content, capture_output=True, check=True, timeout=60
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self._write(int(headers.pop("Status", "200").split()[0]), headers, body)

    do_GET = do_POST = answer  # noqa: N815 - the names that the standard library looks for

    def _write(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def finish(self) -> None:
        super().finish()
        # The server closes the socket that it accepted, which the tunnel has replaced.
        self.rfile.close()
        self.connection.close()
