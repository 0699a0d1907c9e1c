"""The error tree. Data travels in attributes. Only the command line turns an error into an exit code.

Each docstring describes when its class is raised. ``failure_reason`` is the machine-readable word printed in JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconciler.model import ApplyReport, Finding


class ReconcilerError(Exception):
    """Root of everything this package raises on purpose. The text is one complete sentence for a person."""

    failure_reason: ClassVar[str] = "failed"


class UsageError(ReconcilerError):
    """The command was called in a way that cannot work: unknown cluster, unknown guard id, options that exclude each other."""

    failure_reason = "usage"


class MissingDependencyError(ReconcilerError):
    """Something the machine lacks: an optional package, Java, or a program. The text names what to install."""

    failure_reason = "missing-dependency"


PACKAGES: Mapping[str, tuple[str, str]] = {
    "pyspark": ("pyspark", "spark"),
    "pyarrow": ("pyarrow", "traffic"),
    "pandas": ("pandas", "spark"),
    "numpy": ("numpy", "traffic"),
    "msgspec": ("msgspec", "traffic"),
    "urllib3": ("urllib3", "traffic"),
    "prometheus_client": ("prometheus-client", "service"),
    "gssapi": ("gssapi", "kerberos"),
    "botocore": ("botocore", "msk"),
}
"""By module, an optional package and the extra that brings it."""


class MissingPackageError(MissingDependencyError):
    """An optional package is not installed. The text names it, and the extra that brings it."""

    def __init__(self, needs: str, module: str, *, extra: str | None = None, remark: str = "") -> None:
        """``needs``: the first words. ``extra``: the one to name, where several bring the package. ``remark``: the last words."""
        package, brought_by = PACKAGES[module]
        how = f"Install the extra {extra or brought_by} (kafka-quotas explain install){remark}"
        super().__init__(f"{needs} {package}, which is not installed. {how}")

    @classmethod
    def of(cls, needs: str, error: ImportError) -> MissingPackageError | None:
        """The same for a failed import; ``None`` for a module that no extra brings."""
        name = error.name or ""
        known = next((module for module in PACKAGES if name == module or name.startswith(f"{module}.")), None)
        return None if known is None else cls(needs, known)


class FileAccessError(ReconcilerError):
    """A file the user named cannot be read or written."""

    failure_reason = "file"


class UnusableDocumentError(FileAccessError):
    """A JSON document is of another major version, or was changed after it was written: its digest is another."""


class OutputError(ReconcilerError):
    """The result could not be printed: the reader went away, or the disk is full."""

    failure_reason = "output"


class VanishedError(ReconcilerError):
    """Manifests that a running service has read are not there any more: a folder is gone or empty, or another one is the root."""

    failure_reason = "vanished"


class ManifestError(ReconcilerError):
    """The manifests have findings at or above the level that stops the command."""

    failure_reason = "invalid-manifests"

    def __init__(self, message: str, *, findings: Sequence[Finding] = (), brief: str | None = None) -> None:
        super().__init__(message)
        self.findings = tuple(findings)
        self.brief = brief or message
        """The message without the first finding, for a command that prints all of them."""


class GitError(ReconcilerError):
    """A git reference cannot be read: no git, no repository, no such reference, or a clone too shallow to have it."""

    failure_reason = "git"


class UnknownCommitError(GitError):
    """A reference names no commit that is here."""


class BackendError(ReconcilerError):
    """Reading or writing a cluster failed."""

    failure_reason = "cluster"


class UnreachableError(BackendError):
    """No connection: refused, timed out, unknown host, or the other side does not speak Kafka. Nothing was sent.

    ``remedy``: what to check, where the reason decides it. It is not part of the message.
    """

    failure_reason = "unreachable"

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


class AuthenticationError(BackendError):
    """The cluster refused the credentials or the TLS handshake."""

    failure_reason = "authentication"


class TlsFailedError(AuthenticationError):
    """The TLS handshake failed: one side does not trust the other's certificate, or they have no protocol in common."""


class AuthorizationError(BackendError):
    """The cluster knows the principal and refuses the operation."""

    failure_reason = "authorization"


class UnsupportedClusterError(BackendError):
    """The cluster answers, but not to this request: the API is missing, or too old, or the answer is malformed.

    ``remedy`` is the last sentence of the message, where it names what serves instead.
    """

    failure_reason = "unsupported"

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


class RequestRefusedError(BackendError):
    """The cluster refused a request as a whole, with its error code and words. Nothing of it was done."""

    failure_reason = "refused-by-cluster"

    def __init__(self, message: str, *, error_code: int) -> None:
        super().__init__(message)
        self.error_code = error_code


class OtherClusterError(BackendError):
    """A new connection reached another cluster than the one that the command began with. Nothing was written on it."""

    failure_reason = "wrong-cluster"


class OutcomeUnknownError(BackendError):
    """The connection was lost, or timed out, after a write was sent: it may or may not have been done. Describe, then decide."""

    failure_reason = "outcome-unknown"


class RefusedError(ReconcilerError):
    """The tool refuses to write: a guard, a stale plan, the wrong cluster, or no terminal to ask on."""

    failure_reason = "refused"


class GuardRefusedError(RefusedError):
    """Guards tripped that were not accepted. ``guard_ids`` names them."""

    failure_reason = "guard"

    def __init__(self, message: str, *, guard_ids: Sequence[str]) -> None:
        super().__init__(message)
        self.guard_ids = tuple(guard_ids)


class FrozenError(GuardRefusedError):
    """The cluster is frozen and that was not accepted. No other guard is in the way, so the same run may pass later."""

    failure_reason = "frozen"


class StalePlanError(RefusedError):
    """What would be written now is not what was reviewed: the digest differs, or the cluster changed after planning."""

    failure_reason = "stale-plan"


class NotAppliedError(ReconcilerError):
    """A write asked for in Python failed, or was not completed or not verified. ``report`` has the outcome of every change."""

    failure_reason = "not-applied"

    def __init__(self, message: str, *, report: ApplyReport) -> None:
        super().__init__(message)
        self.report = report


class LockedError(RefusedError):
    """Another run of this tool has the cluster's lock. The text has what it wrote there about itself."""

    failure_reason = "locked"


class ChangedSinceError(RefusedError):
    """Another writer changed what a revert would put back, after the run that is reverted."""

    failure_reason = "changed-since"


class OutOfScopeError(RefusedError):
    """A revert would write what is outside the scope of the cluster."""

    failure_reason = "out-of-scope"


class UntrustedError(RefusedError):
    """Something that decides where a write goes, or what limits it, is not in the trusted reference."""

    failure_reason = "untrusted"


class BaselineError(RefusedError):
    """A baseline file that is of another cluster or version, or whose content is not what was recorded."""

    failure_reason = "baseline"


class WrongClusterError(RefusedError):
    """The cluster that answers is not the one the Cluster manifest names."""

    failure_reason = "wrong-cluster"


class NotConfirmedError(RefusedError):
    """The person at the terminal refused, or the command has neither a terminal nor ``--auto-approve``."""

    failure_reason = "not-confirmed"


class SandboxError(ReconcilerError):
    """A local Kafka could not be fetched, started, found or stopped. The text names the log file."""

    failure_reason = "sandbox"


class TrafficError(ReconcilerError):
    """Recorded traffic cannot be used: nothing to read, an unknown format, or a Spark that does not start."""

    failure_reason = "traffic"


class QuotaCallbackError(ReconcilerError):
    """A quota callback cannot be used: it is not to be found or not trusted, lacks a method, fails, or answers nonsense."""

    failure_reason = "quota-callback"


class ForgeError(ReconcilerError):
    """A comment could not be posted on a forge such as GitHub: no rights, no such pull request, a rate limit, or no answer.

    ``status`` is the HTTP status of the answer that decided it, if there was one.
    """

    failure_reason = "forge"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
