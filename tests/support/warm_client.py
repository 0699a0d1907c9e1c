"""``kafka-quotas`` for scripts that a test starts: a small program that has its command run by the warm process.

It is run as a file, by an interpreter without ``site``, and imports no more than it needs: a start takes 20 ms instead of 600.
"""

import array
import json
import os
import signal
import socket
import sys


def main(at: str, arguments: list[str]) -> int:
    """Hand over arguments, folder, environment, umask and open files, and wait for the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))  # until there is a process that they are for
    umask = os.umask(0o077)
    os.umask(umask)
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes as long as everything else here
    request = {"arguments": arguments, "cwd": folder, "environ": dict(os.environ), "umask": umask}
    content = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(at)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", (0, 1, 2)))
        connection.sendmsg([len(content).to_bytes(4, "big")], [rights])
        connection.sendall(content)
        with connection.makefile("r", encoding="ascii") as answers:
            pid = int(answers.readline())
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda received, _: os.kill(pid, received))
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            code = int(answers.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
