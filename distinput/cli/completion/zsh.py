# SPDX-License-Identifier: Apache-2.0
"""The script for zsh: arguments of `_arguments`, a function for each command."""

from collections.abc import Sequence

from distinput.cli.completion.words import CommandWords, Completions, Option

__all__ = ["zsh_script"]

_SCRIPT = """\
#compdef distinput
# zsh completion for distinput; made by `distinput completion zsh`
_distinput() {{
    local -a commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    case "$words[2] $words[3]" in
{actions}
    esac
    case "$words[2]" in
{cases}
    esac
}}
if [[ $funcstack[1] == _distinput ]]; then _distinput "$@"; else compdef _distinput distinput; fi
"""


def zsh_script(commands: Sequence[CommandWords]) -> str:
    """The script.

    Args:
      commands: all words.

    Source: `_arguments` and `_describe` in zshcompsys(1).
    """
    plain = [command for command in commands if " " not in command.name]
    actions = [command for command in commands if " " in command.name]
    return _SCRIPT.format(
        commands="\n".join(f"        {_quoted(f'{_plain(one.name)}:{one.help}')}" for one in plain),
        actions="\n".join(_case(one, 2) for one in actions) or "        *) ;;",
        cases="\n".join(_case(one, 1) for one in plain),
    )


def _case(command: CommandWords, words: int) -> str:
    given = [_option(option, name) for option in command.options for name in option.names]
    if any(command.rest):  # a place that nothing completes would only keep the others from being inserted
        given.append("*:argument" + _action(command.rest))
    lines = [f"        {_quoted(command.name)})", f"            shift {words} words; (( CURRENT -= {words} ))"]
    lines += ["            _arguments -S " + " \\\n                ".join(map(_quoted, given))]
    return "\n".join([*lines, "            return ;;"])


def _option(option: Option, name: str) -> str:
    text = f"*{name}[{_plain(option.help)}]"
    return text if option.value is None else f"{text}:value{_action(option.value)}"


def _action(place: Completions) -> str:
    """What completes a place: `:` and words in brackets, or a function that finds files."""
    if place.words:
        return ":(" + " ".join(_plain(word) for word in place.words) + ")"
    if "/" in place.files:
        return ":_files -/"
    if not place.files or "*" in place.files:
        return ":_files" if place.files else ": "
    return ':_files -g "' + " ".join(f"*.{end}" for end in place.files) + '"'


def _plain(text: str) -> str:
    """A text without what has a meaning in specifications."""
    return "".join(f"\\{c}" if c in ":[]\\" else c for c in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
