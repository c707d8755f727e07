# SPDX-License-Identifier: Apache-2.0
"""The script for bash: a case for each command, and one for each option that takes a value."""

import re
from collections.abc import Sequence

from distinput.cli.completion.words import CommandWords, Completions

__all__ = ["bash_script"]

_SCRIPT = """\
# bash completion for distinput; made by `distinput completion bash`
_distinput() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
    local words='' files='' IFS=$' \\t\\n'
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W '{commands} --help --version' -- "$word"))
        return
    fi
    case "$command ${{COMP_WORDS[2]}}" in
{actions}
    esac
    case "$command $before" in
{values}
        *)
            case "$command" in
{rest}
            esac ;;
    esac
    [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ -z $files || $word == -* ]] && return
    local IFS=$'\\n' found
    compopt -o filenames 2>/dev/null
    for found in $(compgen -f -- "$word"); do
        if [[ -d $found || $files == '*' ]] || [[ $files != / && " $files " == *" ${{found##*.}} "* ]]; then
            COMPREPLY+=("$found")
        fi
    done
}}
complete -F _distinput distinput
"""


def bash_script(commands: Sequence[CommandWords]) -> str:
    """The script.

    Args:
      commands: all words.

    Source: "Programmable Completion" in the manual of bash.
    """
    values: list[str] = []
    rest: list[str] = []
    for command in commands:
        plain: list[str] = []
        for option in command.options:
            plain += option.names
            if option.value is not None:
                cases = "|".join(f"'{command.name} {name}'" for name in option.names)
                values.append(f"        {cases}) {_set(option.value)} ;;")
        words = Completions((*command.rest.words, *plain), command.rest.files)
        rest.append(f"                '{command.name}') {_set(words)} ;;")
    names = [command.name for command in commands]
    return _SCRIPT.format(
        commands=" ".join(name for name in names if " " not in name),
        actions="\n".join(f"        '{name}') command='{name}' ;;" for name in names if " " in name) or "        *) ;;",
        values="\n".join(values),
        rest="\n".join(rest),
    )


def _set(place: Completions) -> str:
    files = "*" if "*" in place.files else " ".join(place.files)
    return f"words='{' '.join(map(_quoted, place.words))}' files='{files}'"


def _quoted(word: str) -> str:
    """A word as `compgen -W` takes it, which reads its list as the shell would, in single quotes."""
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", word).replace("'", "'\\''")
