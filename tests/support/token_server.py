"""A real token endpoint over TLS on loopback: it checks clients, issues signed JWTs, and publishes its keys as a JWKS."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from reconciler.features.sandbox.configuration import LOOPBACK
from tests.support.certificates import Authority
from tests.support.http_servers import serving_http

CLIENT_ID = "quotas ci"
SECRET = "s3cr3t-horse:of/clients"  # characters that mean something in a header and in a form
AUDIENCE = "kafka"
ISSUER = "https://id.example"
KEY_ID = "first"


@dataclass(kw_only=True)
class TokenServer:
    """What it knows, what it was asked, and how it is to behave."""

    folder: Path
    port: int = 0
    subject: str = "token-writer"
    valid_seconds: int = 3600
    status: int = 200
    """Any other: it refuses everybody with it."""
    failures: int = 0
    """How many requests are answered with status 503 before the next is served."""
    redirect_to: str | None = None
    requests: list[dict[str, str]] = field(default_factory=list)
    signing_key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048))

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}/token"

    def jwks(self) -> Path:
        """A file with the public key, for a broker."""
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.signing_key.public_key()))
        path = self.folder / "jwks.json"
        path.write_text(json.dumps({"keys": [{**key, "kid": KEY_ID, "use": "sig", "alg": "RS256"}]}))
        return path

    def issue(self) -> str:
        """A token as the endpoint gives it."""
        now = int(time.time())
        claims = {
            "sub": self.subject,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + self.valid_seconds,
            "scope": "quotas",
            "jti": str(len(self.requests)),
        }
        return jwt.encode(claims, self.signing_key, algorithm="RS256", headers={"kid": KEY_ID})

    def answer(self, form: dict[str, str], authorization: str | None) -> tuple[int, dict[str, Any]]:
        """Status and body for one request."""
        self.requests.append(form)
        if self.failures:
            self.failures -= 1
            return 503, {"error": "temporarily_unavailable"}
        if self.status != 200:
            return self.status, {"error": "invalid_client", "error_description": f"no such client with {authorization}"}
        if not self._is_client(form, authorization):
            return 401, {"error": "invalid_client", "error_description": f"bad credentials {authorization}"}
        return 200, {"access_token": self.issue(), "token_type": "Bearer", "expires_in": self.valid_seconds}

    @staticmethod
    def _is_client(form: dict[str, str], authorization: str | None) -> bool:
        pair = base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
        return form.get("grant_type") == "client_credentials" and authorization == f"Basic {pair}"


@contextmanager
def token_server(folder: Path, authority: Authority) -> Iterator[TokenServer]:
    """Start it; ``authority`` signs its certificate."""
    server = TokenServer(folder=folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if server.redirect_to is not None:
                self.send_response(307)
                self.send_header("Location", server.redirect_to)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            form = {key: value for key, [value] in urllib.parse.parse_qs(body.decode()).items()}
            status, answer = server.answer(form, self.headers["Authorization"])
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    pem = folder / "token-server.pem"
    pem.write_text(authority.sign("id").pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with serving_http(Handler, tls=context) as server.port:
        yield server
