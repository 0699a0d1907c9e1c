"""Scripts that call kafka-configs, and what its --describe prints."""

import pytest

from reconciler.importing.kafka_configs import read_kafka_configs
from reconciler.model.entity import DEFAULT
from tests.builders import client, ip, pair, user
from tests.support.spans import span_of

ADD = "--add-config producer_byte_rate=1024"
ALTER = "kafka-configs.sh --bootstrap-server b1:9092 --alter"


def read(text):
    return read_kafka_configs(text.encode(), "quotas.sh")


def state(text):
    found = read(text)
    assert [one for one in found.findings if one.severity.value == "error"] == []
    return {one.entity: one.quotas for one in found.quotas}


def refused(text):
    found = read(text)
    assert found.quotas == ()
    return [(one.id, one.span.line, one.span.column) for one in found.findings]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--entity-type users --entity-name alice", user("alice")),
        ("--entity-name alice --entity-type users", user("alice")),
        ("--entity-type users --entity-default", user()),
        ("--entity-type=users --entity-name=''", user()),
        ("--entity-type clients --entity-name app", client("app")),
        ("--entity-type clients --entity-default", client()),
        ("--entity-type users --entity-name alice --entity-type clients --entity-name app", pair("alice", "app")),
        ("--entity-type clients --entity-type users --entity-name app --entity-name alice", pair("alice", "app")),
        ("--entity-type users --entity-default --entity-type clients --entity-name app", pair(DEFAULT, "app")),
        ("--entity-type users --entity-name a --entity-type clients --entity-default", pair("a", DEFAULT)),
        ("--entity-type users --entity-type clients --entity-default --entity-default", pair(DEFAULT, DEFAULT)),
        ("--user alice", user("alice")),
        ("--user alice --client 'my app'", pair("alice", "my app")),
        ("--user-defaults", user()),
        ("--client-defaults --user a", pair("a", DEFAULT)),
        ("--user 'CN=a,O=\"b\"'", user('CN=a,O="b"')),
        ('--user "a\'b\\"c"', user("a'b\"c")),
        ("--user a\\ b", user("a b")),
    ],
)
def test_every_way_to_name_an_entity(options, expected):
    assert state(f"{ALTER} {options} {ADD}\n") == {expected: {"producer_byte_rate": 1024.0}}


def test_a_test_of_something_ends_with_its_line():
    script = f"[ -d x ] && {{ echo y; }}\n{ALTER} --user a {ADD}\n[ -d x ] &&\n  {ALTER} --user b {ADD}\n{ALTER} --user c {ADD}\n"
    found = read(script)

    assert [one.entity for one in found.quotas] == [user("a"), user("c")]
    assert [(one.id, span_of(one).line) for one in found.findings] == [("import-template", 4)]


def test_addresses_have_their_own_key():
    rate = "--add-config connection_creation_rate=5"

    assert state(f"{ALTER} --ip 10.0.0.1 {rate}") == {ip("10.0.0.1"): {"connection_creation_rate": 5.0}}
    assert state(f"{ALTER} --entity-type ips --entity-default {rate}") == {ip(): {"connection_creation_rate": 5.0}}
    assert state(f"{ALTER} --ip-defaults {rate}") == {ip(): {"connection_creation_rate": 5.0}}


def test_with_zookeeper_the_word_default_is_the_default_and_with_brokers_it_is_a_name():
    names = "--alter --entity-type users --entity-name '<default>' " + ADD

    assert state(f"kafka-configs.sh --zookeeper z:2181 {names}") == {user(): {"producer_byte_rate": 1024.0}}
    assert state(f"kafka-configs.sh --bootstrap-server b {names}") == {user("<default>"): {"producer_byte_rate": 1024.0}}


def test_all_keys_are_read_in_any_of_the_forms():
    keys = "'producer_byte_rate=1024, consumer_byte_rate=2.0E6 ,request_percentage=12.5,controller_mutation_rate=5'"

    assert state(f"{ALTER} --user a --add-config {keys}\n") == {
        user("a"): {
            "producer_byte_rate": 1024.0,
            "consumer_byte_rate": 2e6,
            "request_percentage": 12.5,
            "controller_mutation_rate": 5.0,
        }
    }


def test_commands_are_followed_in_their_order():
    script = (
        f"{ALTER} --user a --add-config producer_byte_rate=1,consumer_byte_rate=2\n"
        f"{ALTER} --user a --add-config producer_byte_rate=3 --delete-config consumer_byte_rate && "
        f"{ALTER} --user b --add-config request_percentage=4; {ALTER} --user c {ADD} | tee log 2>&1\n"
        f"{ALTER} --user b --delete-config request_percentage >/dev/null 2>&1\n"
    )
    found = read(script)

    assert {one.entity: one.quotas for one in found.quotas} == {
        user("a"): {"producer_byte_rate": 3.0},
        user("c"): {"producer_byte_rate": 1024.0},
    }
    assert [one.id for one in found.findings] == ["import-left-out"]


@pytest.mark.parametrize(
    "line",
    [
        f"sudo /opt/kafka/bin/kafka-configs.sh --alter --user a {ADD}",
        f"docker exec -it broker kafka-configs --alter --user a {ADD}",
        f"kubectl exec pod -- bin/kafka-configs.sh --alter --user a {ADD}",
        f"$KAFKA_HOME/bin/kafka-configs.sh --bootstrap-server $BROKERS --command-config ~/c.properties --alter --user a {ADD}",
        f'"${{KAFKA}}/kafka-configs.sh" --bootstrap-server "$(hostname):9092" --alter --user a {ADD}',
        f"KAFKA_OPTS='-Dx=y' kafka-configs.sh --force --alter \\\n  --user a \\\r\n  {ADD}",
        f"( kafka-configs.sh --alter --user a {ADD} ) || exit 1",
        f"cd /opt/kafka && bin/kafka-topics.sh --list && bin/kafka-configs.sh --alter --user a {ADD}",
        f"if [ -z $X ]; then exit 1; fi\ng() {{ exit 1; }}\n[ -d x ] || exit 1\nkafka-configs.sh --alter --user a {ADD}",
        f"{{ kafka-configs.sh --alter --user a {ADD}; }} # and so on",
    ],
)
def test_the_command_is_found_wherever_it_stands(line):
    assert state(line) == {user("a"): {"producer_byte_rate": 1024.0}}


@pytest.mark.parametrize(
    ("line", "at"),
    [
        (f"{ALTER} --user $APP {ADD}", "$APP"),
        (f'{ALTER} --user "team-${{TEAM}}" {ADD}', '"team'),
        (f"{ALTER} --user `whoami` {ADD}", "`who"),
        (f"{ALTER} --user {{a,b}} {ADD}", "{a,b"),
        (f"{ALTER} --user a --add-config producer_byte_rate=$((10 * 1024))", "producer_"),
        (f"{ALTER} $OPTIONS", "$OPTIONS"),
        (f"$KAFKA_CONFIGS --alter --user a {ADD}", "--add-config"),
        (f"ssh b1 'kafka-configs.sh --alter --user a {ADD}'", "'kafka"),
        (f"cat users | xargs -I USER kafka-configs.sh --alter --user USER {ADD}", "kafka-configs"),
        (f"if true; then {ALTER} --user a {ADD}; fi", "kafka-configs"),
        (f"for u in a b; do {ALTER} --user a {ADD}; done", "kafka-configs"),
        (f"while read u; do {ALTER} --user a {ADD}; done", "kafka-configs"),
        (f"case $1 in prod) {ALTER} --user a {ADD};; esac", "kafka-configs"),
        (f"limit() {{ {ALTER} --user a {ADD}; }}", "kafka-configs"),
        (f"function limit {{ {ALTER} --user a {ADD}; }}", "kafka-configs"),
        (f"false || {ALTER} --user a {ADD}", "kafka-configs"),
        (f"limit() ( {ALTER} --user a {ADD} )", "kafka-configs"),
        (f"[ -n $X ] && {ALTER} --user a {ADD}", "kafka-configs"),
        (f"grep -q x y && cd z && {ALTER} --user a {ADD}", "kafka-configs"),
        (f"[ -n $X ] && {{ true; {ALTER} --user a {ADD}; }}", "kafka-configs"),
        (f"[ -n $X ] && {{ true; }} && {ALTER} --user a {ADD}", "kafka-configs"),
        (f"[ -n $X ] && (true; {ALTER} --user a {ADD})", "kafka-configs"),
        (f"exit 0; {ALTER} --user a {ADD}", "kafka-configs"),
        (f"OUT=$({ALTER} --user a {ADD})", "OUT"),
    ],
)
def test_what_only_the_shell_knows_is_refused_at_its_place(line, at):
    found = read(line)

    assert found.quotas == ()
    assert {one.id for one in found.findings} == {"import-template"}
    assert (found.findings[0].span.line, found.findings[0].span.column) == (1, line.index(at) + 1)


def test_a_command_in_a_here_document_is_refused_and_a_mention_is_not():
    inner = f"bash -s <<'EOF'\nkafka-configs.sh --alter --user a {ADD}\nEOF\n"

    assert refused(inner) == [("import-template", 2, 1)]
    assert state(f"cat <<EOF\nsee kafka-configs.sh 'there\nEOF\n{ALTER} --user a {ADD}") != {}


@pytest.mark.parametrize(
    ("line", "rule_id"),
    [
        (f"{ALTER} --entity-type users {ADD}", "import-ambiguous"),
        (f"{ALTER} --entity-type users --entity-type clients --entity-name a {ADD}", "import-ambiguous"),
        (f"{ALTER} --entity-type users --user a {ADD}", "import-ambiguous"),
        (f"{ALTER} --user a --user b {ADD}", "import-ambiguous"),
        (f"{ALTER} --user a {ADD} {ADD}", "import-ambiguous"),
        (f"{ALTER} --user a", "import-ambiguous"),
        (f"{ALTER} {ADD}", "import-ambiguous"),
        (f"{ALTER} --user a --ip 10.0.0.1 {ADD}", "illegal-entity"),
        (f"{ALTER} --user a --add-config-file quotas.properties", "import-unsupported"),
        (f"{ALTER} --user a --add-configs x=1", "import-unsupported"),
        (f"{ALTER} --user a --add-config", "import-syntax"),
        (f"{ALTER} --user a b {ADD}", "import-syntax"),
        (f"{ALTER} --user a --add-config producer_byte_rate", "import-syntax"),
        (f"{ALTER} --user 'a {ADD}", "import-syntax"),
        (f"{ALTER} --user $(a {ADD}", "import-syntax"),
        (f"{ALTER} --user a --add-config producer_byterate=1", "unknown-quota-key"),
        (f"{ALTER} --user a --add-config connection_creation_rate=1", "key-not-for-entity"),
        (f"{ALTER} --user a --add-config producer_byte_rate=10MB", "value-syntax"),
        (f"{ALTER} --user a --add-config producer_byte_rate=0", "value-not-positive"),
    ],
)
def test_what_kafka_would_refuse_or_nobody_can_mean_is_refused(line, rule_id):
    assert [one[0] for one in refused(line)] == [rule_id]


@pytest.mark.parametrize(
    "line",
    [
        "kafka-configs.sh --bootstrap-server b --describe --entity-type users --entity-name $USER",
        "kafka-configs.sh --bootstrap-server b --alter --entity-type topics --entity-name $T --add-config retention.ms=1",
        "kafka-configs.sh --bootstrap-server b --alter --broker-defaults --add-config log.cleaner.threads=$N",
        "echo kafka-configs.sh --alter --add-config",
        "kafka-topics.sh --list # kafka-configs.sh --alter --user 'x",
    ],
)
def test_commands_about_other_things_are_passed_over(line):
    found = read(line)

    assert (found.quotas, found.findings) == ((), ())


def test_credentials_are_left_out_and_never_printed():
    found = read(f"{ALTER} --user a --add-config 'SCRAM-SHA-256=[iterations=8192,password=hunter2],producer_byte_rate=5'")

    assert [(one.entity, one.quotas) for one in found.quotas] == [(user("a"), {"producer_byte_rate": 5.0})]
    assert [one.id for one in found.findings] == ["import-left-out"]
    assert "hunter2" not in repr(found)


def test_several_servers_are_mentioned_once_each_and_converted_as_one_cluster():
    lines = [f"{ALTER} --user {name} {ADD}" for name in "abcd"]
    script = "\n".join([lines[0], lines[1].replace("b1", "b2"), lines[2].replace("b1", "b2"), lines[3].replace("b1", "b3")])
    found = read(script)

    assert [one.entity for one in found.quotas] == [user("a"), user("b"), user("c"), user("d")]
    assert [(one.id, one.severity.value, span_of(one).line) for one in found.findings] == [
        ("import-several-servers", "warning", 2),
        ("import-several-servers", "warning", 4),
    ]


def test_an_entity_that_two_servers_get_is_refused_for_both():
    other = f"{ALTER} --user a {ADD}".replace("b1", "b2")
    found = read(f"{ALTER} --user a {ADD}\n{ALTER} --user b {ADD}\n{other}\n")

    assert [one.entity for one in found.quotas] == [user("b")]
    assert [(one.id, span_of(one).line) for one in found.findings] == [("import-ambiguous", 3)]


@pytest.mark.parametrize(
    "line",
    [
        f"{ALTER} --user a --add-config consumer_byte_rate=$RATE",
        f"{ALTER} --user a --add-config consumer_byte_rate",
        f"{ALTER} --user a --add-config consumer_byte_rate=0",
        f"{ALTER} --user a --add-config-file more.properties",
        f"if true; then {ALTER} --user a --delete-config producer_byte_rate; fi",
        f"{ALTER} --user a --delete-config producer_byte_rate".replace("b1", "b2"),
    ],
)
def test_an_entity_with_one_command_that_is_refused_is_not_converted_at_all(line):
    found = read(f"{ALTER} --user a {ADD}\n{ALTER} --user b {ADD}\n{line}\n")

    assert [one.entity for one in found.quotas] == [user("b")]
    assert [one.span.line for one in found.findings] == [3]


DESCRIBED = """\
Quota configs for the default user-principal are consumer_byte_rate=2048.0, request_percentage=200.0
Quota configs for user-principal 'alice' are producer_byte_rate=2.0E7
Quota configs for user-principal 'o'brien, jr' are producer_byte_rate=1.0
Quota configs for the default client-id are producer_byte_rate=1.0
Quota configs for client-id ' app ' are producer_byte_rate=1.0
Quota configs for user-principal 'a', client-id 'b' are producer_byte_rate=1.0
Quota configs for user-principal 'a', the default client-id are producer_byte_rate=1.0
Quota configs for the default user-principal, client-id 'b' are producer_byte_rate=1.0
Quota configs for the default user-principal, the default client-id are controller_mutation_rate=1.5
Quota configs for the default ip are connection_creation_rate=10.0
Quota configs for ip '10.0.0.1' are connection_creation_rate=10.0
Quota configs for user-principal '<default>' are producer_byte_rate=1.0
"""


def test_every_entity_that_describe_prints_is_read():
    one = {"producer_byte_rate": 1.0}
    assert state(DESCRIBED) == {
        user(): {"consumer_byte_rate": 2048.0, "request_percentage": 200.0},
        user("alice"): {"producer_byte_rate": 2e7},
        user("o'brien, jr"): one,
        client(): one,
        client(" app "): one,
        pair("a", "b"): one,
        pair("a", DEFAULT): one,
        pair(DEFAULT, "b"): one,
        pair(DEFAULT, DEFAULT): {"controller_mutation_rate": 1.5},
        ip(): {"connection_creation_rate": 10.0},
        ip("10.0.0.1"): {"connection_creation_rate": 10.0},
        user("<default>"): one,
    }


def test_the_form_before_2_6_and_credentials_beside_quotas_are_read():
    text = (
        "$ bin/kafka-configs.sh --zookeeper z --describe --entity-type users\n"
        "Configs for user-principal 'a' are SCRAM-SHA-256=salt=MW==,stored_key=x=,server_key=y=,iterations=4096,"
        "producer_byte_rate=1024\n"
        "Configs for default user-principal are producer_byte_rate=5\n"
        "Configs for user-principal 'a', client-id 'b' are producer_byte_rate=1024,consumer_byte_rate=2048\n"
        "Dynamic configs for topic t are:\n"
    )

    assert state(text) == {
        user("a"): {"producer_byte_rate": 1024.0},
        user(): {"producer_byte_rate": 5.0},
        pair("a", "b"): {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0},
    }


def test_the_four_views_may_be_one_file_and_repeat_themselves():
    assert state(DESCRIBED + DESCRIBED) == state(DESCRIBED)


@pytest.mark.parametrize(
    ("line", "rule_id"),
    [
        ("Quota configs for user-principal 'a', client-id 'b', client-id 'c' are producer_byte_rate=1.0", "import-ambiguous"),
        ("Quota configs for user-principal '' are producer_byte_rate=1.0", "import-ambiguous"),
        ("Quota configs for client-id-prefix 'a' are producer_byte_rate=1.0", "import-ambiguous"),
        ("Quota configs for user-principal 'a' are producer_byte_rate=0.0", "value-not-positive"),
        ("Quota configs for user-principal 'a' are producer_byte_rate=NaN", "value-syntax"),
        ("Quota configs for user-principal 'a' are future_key=1.0", "unknown-quota-key"),
        ("Quota configs for user-principal 'broken", "import-syntax"),
        ("12:00 Quota configs for user-principal 'a' are producer_byte_rate=1.0", "import-syntax"),
        (f"{ALTER} --user a {ADD}", "import-ambiguous"),
    ],
)
def test_a_line_that_reads_in_two_ways_or_none_is_refused(line, rule_id):
    found = read(DESCRIBED + line + "\n")

    assert [(one.id, span_of(one).line) for one in found.findings] == [(rule_id, 13)]
    assert len(found.quotas) == 12


def test_scram_lines_and_empty_entities_are_only_mentioned():
    found = read(
        "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-512=iterations=4096\n"
        "Quota configs for user-principal 'a' are \n"
    )

    assert found.quotas == ()
    assert [(one.id, one.severity.value) for one in found.findings] == [("import-left-out", "info")] * 2


def test_what_is_not_utf_8_is_a_finding():
    found = read_kafka_configs(b"# a\n# \xff\n", "quotas.sh")

    assert [(one.id, span_of(one).line) for one in found.findings] == [("invalid-utf8", 2)]
