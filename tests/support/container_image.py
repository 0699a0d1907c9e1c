"""The container image, built by buildah from ``deploy/Dockerfile`` and run by bubblewrap: neither needs a container engine.

The base is a Debian that debootstrap makes once, in place of the one that the Dockerfile names: it has the same version of
Python and needs no registry of images.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reconciler.features.sandbox.jars import exclusive
from reconciler.files import cache_folder

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = ("buildah", "debootstrap", "bwrap")
_BASE: Final = "localhost/python:base"
_IMAGE: Final = "localhost/kafka-quotas:test"
_POLICY: Final = {"default": [{"type": "insecureAcceptAnything"}]}
"""Of signatures: no image comes from elsewhere."""
HOST_FILES: Final = ("/etc/ssl/certs", "/etc/resolv.conf", "/etc/pip.conf")
"""What pip needs to reach the package index as this machine does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltImage:
    """``root``: its files. ``config``: user, environment, entrypoint and command, as the OCI format has them."""

    root: Path
    config: dict[str, Any]

    def command(self, *arguments: str, manifests: Path) -> list[str]:
        """The command line that runs it as its user, with a read-only root and the manifests where a pod would have them."""
        user, _, group = self.config["User"].partition(":")
        environment = [part for pair in self.config["Env"] for part in ("--setenv", *pair.split("=", 1))]
        mounts = ["--ro-bind", str(self.root), "/", "--ro-bind", str(manifests), "/manifests", "--dev", "/dev", "--proc", "/proc"]
        identity = ["--unshare-user", "--uid", user, "--gid", group, "--clearenv", *environment]
        return ["bwrap", "--die-with-parent", *mounts, *identity, *self.config["Entrypoint"], *arguments]


def debian(suite: str, *packages: str) -> Path:
    """The root of a Debian with these packages, which debootstrap makes once."""
    folder = cache_folder() / f"debian-{suite}"
    with exclusive(folder.with_suffix(".lock")):
        if not (folder / ".finished").exists():
            shutil.rmtree(folder, ignore_errors=True)
            names = ",".join(("ca-certificates", *packages))
            subprocess.run(
                ["debootstrap", "--variant=minbase", f"--include={names}", suite, str(folder)], check=True, timeout=900
            )
            (folder / ".finished").touch()
    return folder


def build_image(store: Path) -> BuiltImage:
    """Build it. buildah keeps everything below ``store``. Needs root, as debootstrap does."""
    (store / "policy.json").write_text(json.dumps(_POLICY), encoding="utf-8")
    buildah = _Buildah(store)
    base = debian("trixie", "python3", "python3-venv")
    container = buildah.run("from", "scratch")
    root = buildah.run("mount", container)
    subprocess.run(["cp", "-a", f"{base}/.", root], check=True, timeout=300)
    (Path(root) / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    buildah.run("commit", "--signature-policy", str(store / "policy.json"), container, _BASE)
    buildah.run("rm", container)
    mounts = [part for path in HOST_FILES if Path(path).exists() for part in ("--volume", f"{path}:{path}:ro")]
    options = ["--isolation", "chroot", "--network", "host", "--pull-never", "--build-arg", f"BASE={_BASE}", *mounts]
    build = ["build", "--signature-policy", str(store / "policy.json"), *options, "-f", "deploy/Dockerfile", "-t", _IMAGE, "."]
    buildah.run(*build)
    config = json.loads(buildah.run("inspect", "--type", "image", _IMAGE))["OCIv1"]["config"]
    built = buildah.run("from", "--pull-never", "--signature-policy", str(store / "policy.json"), _IMAGE)
    root = buildah.run("mount", built)
    (Path(root) / "manifests").mkdir()  # where a container engine mounts a volume, it makes the folder
    return BuiltImage(root=Path(root), config=config)


class _Buildah:
    def __init__(self, store: Path) -> None:
        self._places = ["--root", str(store / "root"), "--runroot", str(store / "run"), "--storage-driver", "vfs"]

    def run(self, *arguments: str) -> str:
        """What it prints, without the last line's end."""
        command = ["buildah", *self._places, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()
