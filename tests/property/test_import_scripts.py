"""A shell is the oracle: what an import takes from a script is what the script does when it runs."""

import os
import subprocess
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.importing.kafka_configs import read_kafka_configs
from reconciler.model.entity import Entity
from reconciler.model.finding import Severity

STUB = '#!/bin/sh\nprintf \'%s\\000\' "$3" "$5" >> "$LOG"\n'
NAMES = st.sampled_from(["a", "b", "'c d'", '"e"', "f\\ g", '"h\'i"', "'j\"k'", "l\"m\"'n'", "o\\\np", "'$q'", '"\\$r"'])
KEYS = st.sampled_from(["producer_byte_rate", "consumer_byte_rate", "request_percentage"])
FRAMES = [
    "{0}", "{0}; {1}", "{0} && {1}", "{0}\n{1}", "true && {0}", "false && {0}", "false || {0}", "true || {0}",
    "[ 1 = 2 ] && {0}", "false && {{ {0}; {1}; }}", "false && {{ true; }}\n{0}", "false &&\n{0}",
    "false && ( {0}; {1} ); {0}", "false || true && {0}", "if false; then {0}; fi", "if true; then {0}; else {1}; fi",
    "if false\nthen\n{0}\nelse\n{1}\nfi\n{0}", "for i in 1 2; do {0}; done", "for i in\ndo {0}; done",
    "while false; do {0}; done; {1}", "until true; do {0}; done", "f() {{ {0}; }}", "f() {{\n{0}\n}}\n{1}",
    "f() ( {0} )\n{1}", "f() {{ {0}; }}; f", "{{ {0}; {1}; }}", "( {0}; {1} )", "( {0} ) && {1}",
    "case a in b) {0};; a) {1};; esac", "case a in\nb)\n{0}\n;;\nesac\n{1}", "cat <<EOF >/dev/null\n{0}\nEOF\n{1}",
    "cat <<-'E' > /dev/null\n\t{0}\n\tE\n{1}", "# {0}", "{0} # {1}", "echo {0} > /dev/null", "{0} | cat",
    "{0} >/dev/null 2>&1", "! {0}", "sh -c '{0}'", "true; {0}", "X=1 {0}", "x='{0}'", 'x="a;b"; {0}', "x=$(echo {0}); {1}",
    "x=$({0})", "{0} &\nwait", "false | {0}", "exit 0\n{0}", "test 1 = 2 &&\\\n{0}", ": ${{x:-'}}'}}; {0}",
    "x=$((1 + 2)); {0}", "[ -z '' ] || {0}",
]  # fmt: skip
"""A conditional exit is not among them: a script is taken to be meant to reach its end."""


@st.composite
def command(draw):
    name, key = draw(NAMES), draw(KEYS)
    value = draw(st.integers(1, 9))
    return f"kafka-configs.sh --alter --user {name} --add-config {key}={value}"


PARTS = st.builds(lambda frame, one, two: frame.format(one, two), st.sampled_from(FRAMES), command(), command())


def executed(script, folder):
    """The state that the script leaves, by a stub in the place of Kafka's tool."""
    (folder / "kafka-configs.sh").write_text(STUB)
    (folder / "kafka-configs.sh").chmod(0o755)
    (folder / "log").write_text("")
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "LOG": str(folder / "log")}
    subprocess.run(["sh", "-c", script], env=environment, cwd=folder, capture_output=True, timeout=300, check=False)
    words = (folder / "log").read_text().split("\0")[:-1]
    state: dict[Entity, dict[str, float]] = {}
    for name, added in zip(words[::2], words[1::2], strict=True):
        key, given, value = added.partition("=")
        if given:
            state.setdefault(Entity.of({"user": name}), {})[key] = float(value)
    return state


@given(parts=st.lists(PARTS, max_size=4))
@example(parts=["sh -c 'kafka-configs.sh --alter --user \"h'i\" --add-config producer_byte_rate=1'"] * 2)
@settings(deadline=None, max_examples=100)
def test_what_is_taken_from_a_script_is_what_the_script_does(parts):
    script = "\n".join(parts) + "\n"
    found = read_kafka_configs(script.encode(), "quotas.sh")
    taken = {one.entity: one.quotas for one in found.quotas}
    with tempfile.TemporaryDirectory() as folder:
        done = executed(script, Path(folder))

    errors = [one for one in found.findings if one.severity is Severity.ERROR]
    if not errors:
        assert taken == done
    if not any("seems to call" in one.message for one in errors):  # else it is not known whose quotas are meant
        assert taken == {entity: done.get(entity) for entity in taken}
