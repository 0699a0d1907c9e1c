"""Completion scripts for bash, zsh and fish from the words of the parsers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from reconciler.cli.completion_words import CommandWords, OptionWords

_PROGRAM: Final = "kafka-quotas"


def bash(tree: CommandWords) -> str:
    """For bash 4.4 and newer; what is not known falls back to file names."""
    return f"""# bash completion for {_PROGRAM}
_kafka_quotas() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} at= i
    COMPREPLY=()
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$at ${{COMP_WORDS[i]}}" in
{_moves(tree, "at=")}
        esac
    done
    case "$at $previous" in
{_lines(_bash_value(path, option) for path, option in _valued(tree))}
    esac
    case "$at" in
{_lines(_bash_words(command) for command in tree.walk())}
    esac
}}
complete -o bashdefault -o default -F _kafka_quotas {_PROGRAM}
"""


def _bash_value(path: str, option: OptionWords) -> str:
    patterns = "|".join(f'"{path} {flag}"' for flag in option.flags)
    if not option.choices:
        return f"        {patterns}) return ;;"
    return f'        {patterns}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$current")); return ;;'


def _bash_words(command: CommandWords) -> str:
    flags = " ".join(flag for option in command.options for flag in option.flags)
    words = " ".join((*command.choices, *(sub.path[-1] for sub in command.commands)))
    plain = f'COMPREPLY=($(compgen -W "{words}" -- "$current"))' if words else ":"
    dashed = f'COMPREPLY=($(compgen -W "{flags}" -- "$current"))'
    return f'        "{_at(command)}") if [[ $current == -* ]]; then {dashed}; else {plain}; fi ;;'


def zsh(tree: CommandWords) -> str:
    """For zsh 5; to be found as ``_kafka-quotas`` in a folder of ``$fpath``, or evaluated after ``compinit``."""
    return f"""#compdef {_PROGRAM}
_kafka_quotas() {{
    local at= previous=${{words[CURRENT-1]}} i
    local -a known
    for ((i = 2; i < CURRENT; i++)); do
        case "$at ${{words[i]}}" in
{_moves(tree, "at=")}
        esac
    done
    case "$at $previous" in
{_lines(_zsh_value(path, option) for path, option in _valued(tree))}
    esac
    case "$at" in
{_lines(_zsh_words(command) for command in tree.walk())}
    esac
}}
if [[ $funcstack[1] == _{_PROGRAM} ]]; then
    _kafka_quotas "$@"
else
    compdef _kafka_quotas {_PROGRAM}
fi
"""


def _zsh_value(path: str, option: OptionWords) -> str:
    patterns = "|".join(f'"{path} {flag}"' for flag in option.flags)
    action = f"compadd -- {' '.join(option.choices)}" if option.choices else "_files"
    return f"        {patterns}) {action}; return ;;"


def _zsh_words(command: CommandWords) -> str:
    flags = " ".join(_zsh_item(flag, option.summary) for option in command.options for flag in option.flags)
    subs = " ".join(_zsh_item(sub.path[-1], sub.summary) for sub in command.commands)
    if subs:
        plain = f"known=({subs}); _describe command known"
    else:
        plain = f"compadd -- {' '.join(command.choices)}" if command.choices else "_files"
    dashed = f"known=({flags}); _describe option known"
    return f'        "{_at(command)}") if [[ ${{words[CURRENT]}} == -* ]]; then {dashed}; else {plain}; fi ;;'


def _zsh_item(word: str, summary: str) -> str:
    return _quoted(f"{word}:{summary}" if summary else word)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish(tree: CommandWords) -> str:
    """For fish 3."""
    return f"# fish completion for {_PROGRAM}\n" + _lines(_fish_rules(tree)) + "\n"


def _fish_rules(tree: CommandWords) -> Iterator[str]:
    for command in tree.walk():
        known = " ".join(sub.path[-1] for sub in command.commands)
        here = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.path)
        below = f"not __fish_seen_subcommand_from {known}" if known else ""
        start = f"complete -c {_PROGRAM}" + _fish_condition("; and ".join(part for part in (here, below) if part))
        for sub in command.commands:
            yield f"{start} -f -a {_fish_quoted(sub.path[-1])} -d {_fish_quoted(sub.summary)}"
        if command.choices:
            yield f"{start} -f -a {_fish_quoted(' '.join(command.choices))}"
        for option in command.options:
            yield f"{start} {_fish_option(option)}"


def _fish_condition(condition: str) -> str:
    return f" -n {_fish_quoted(condition)}" if condition else ""


def _fish_option(option: OptionWords) -> str:
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = f" -x -a {_fish_quoted(' '.join(option.choices))}" if option.choices else " -r" if option.takes_value else ""
    return f"{flags}{value} -d {_fish_quoted(option.summary)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _at(command: CommandWords) -> str:
    return "".join(f" {word}" for word in command.path)


def _moves(tree: CommandWords, assign: str) -> str:
    """From a command to the one below it, when its word is seen."""
    return _lines(f'            "{_at(sub)}") {assign}"{_at(sub)}" ;;' for sub in tree.walk() if sub.path)


def _valued(tree: CommandWords) -> Iterator[tuple[str, OptionWords]]:
    for command in tree.walk():
        yield from ((_at(command), option) for option in command.options if option.takes_value)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


SCRIPTS: Final[Mapping[str, Callable[[CommandWords], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}
"""By the name of the shell."""
