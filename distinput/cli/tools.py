# SPDX-License-Identifier: Apache-2.0
"""The commands that ask for no dataset of ours: `judge`, `kernels`, `doctor`, `completion`."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from distinput.cli.arguments import add_json
from distinput.cli.commands import COMMANDS, FINE, FOUND, USAGE, Command
from distinput.cli.main import parser_of
from distinput.cli.output import print_json, print_table
from distinput.diagnosis import ENGINES, PURPOSES, Diagnosis, Package, diagnose
from distinput.kernels.kernel import cached_kernels, compile_all
from distinput.testing.judge import command as judging

# ----------------------------------------------------------------------------
# `distinput judge`: does a loader of any library deliver each record once, and go on where it stopped?
# ----------------------------------------------------------------------------


def judge_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput judge`."""
    parser.description = (
        "Try loaders of any library in jobs of several ranks, and say which laws they keep: each record once, equal steps, "
        "the same order, a restart after every step, ranks that are killed. The exit status is 3 if a law is broken."
    )
    judging.add_arguments(parser)


def judge_command(given: argparse.Namespace) -> int:
    """Judge."""
    try:
        return FINE if judging.run(given) else FOUND
    except (ImportError, ValueError) as error:
        print(f"distinput judge: {error}", file=sys.stderr)
        return USAGE


# ----------------------------------------------------------------------------
# `distinput doctor`: what is installed here, what the machine offers, and what would make it faster.
# ----------------------------------------------------------------------------


_GIB = 1 << 30


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput doctor`."""
    parser.description = (
        "Say what is installed here, what the machine offers, which loops are compiled, and what would make distinput faster. "
        "Nothing is installed or compiled for it. The exit status is 3 if a package that is needed is missing or too old."
    )
    add_json(parser)


def doctor_command(given: argparse.Namespace) -> int:
    """Look, and say."""
    found = diagnose()
    print_json(found.to_dict()) if given.json else _print_diagnosis(found)
    return FINE if found.well else FOUND


def _print_diagnosis(found: Diagnosis) -> None:
    machine = found.machine
    quota = f" ({machine.core_quota:g} of them busy at a time)" if machine.core_quota is not None else ""
    memory = "memory not known" if machine.memory is None else f"{machine.memory / _GIB:.3g} GiB of memory"
    print(f"distinput {found.version}, Python {machine.python}, {machine.system}")
    print(
        f"{machine.cores} cores{quota}, {memory}, {sum(found.kernels.values())} of {len(found.kernels)} kernels compiled\n"
    )
    print_table(("package", "version", "needs", "extra", "what for"), [*map(_package_line, _in_order(found.packages))])
    if found.advice:
        print()
    for one in found.advice:
        print(f"{'WRONG' if one.wrong else 'better'}: {one.text}")


def _in_order(packages: Sequence[Package]) -> list[Package]:
    """What is needed, then engines, then the rest."""
    return sorted(packages, key=lambda one: (one.extra != "", one.extra not in ENGINES, one.extra, one.name))


def _package_line(one: Package) -> Sequence[str]:
    needs = f">={one.least}" if one.least else "any"
    what = PURPOSES.get(one.extra, "") if one.extra else "needed"
    return (one.name, one.found or "-", needs, one.extra or "-", what)


# ----------------------------------------------------------------------------
# `distinput kernels`: which loops are compiled on this machine; or compile them all.
# ----------------------------------------------------------------------------


def kernels_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput kernels`."""
    parser.description = (
        "Say which kernels, the loops of this package, are in the cache of compiled ones; or compile those that are not, for "
        "all later programs. Programs load what is there, and compile nothing."
    )
    text = "what to do (default: list)"
    parser.add_argument("action", nargs="?", choices=("list", "build"), default="list", help=text)
    add_json(parser)


def kernels_command(given: argparse.Namespace) -> int:
    """List them, or compile them."""
    if given.action == "build":
        if given.json:
            print_json(dict(compile_all()))
            return FINE
        for name, took in compile_all():
            print(f"{name:<20} {took:6.2f} s", flush=True)
        return FINE
    found = cached_kernels()
    if given.json:
        print_json(found)
    else:
        print_table(("kernel", "compiled"), [(name, "yes" if there else "-") for name, there in found.items()])
    return FINE


# ----------------------------------------------------------------------------
# The words that may stand in a command line, as plain values, read off the parsers of all commands.
# ----------------------------------------------------------------------------


_FILES = {"DIR": ("/",), "FILE": ("*",), "FOLDER": ("/",)}
"""What the name of a value in the help says of it, where nothing else was suggested."""


class Completions(NamedTuple):
    """What may stand somewhere.

    Attributes:
      words: some, or all, of the words.
      files: ends of names of files, without the dot; "*" for all files, "/" for directories.
    """

    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Option(NamedTuple):
    """An option of a command.

    Attributes:
      names: `--workers`, or `-o` and `--output`.
      help: what it does, in a line.
      value: what follows it; None if nothing does.
    """

    names: tuple[str, ...]
    help: str
    value: Completions | None


class CommandWords(NamedTuple):
    """The words of a command.

    Attributes:
      name: of the command; with a space between them, of a command and an action of it.
      help: what it does, in a line.
      options: in the order of the help.
      rest: what its other arguments may be, all of them together.
    """

    name: str
    help: str
    options: tuple[Option, ...]
    rest: Completions


def table(
    parser_of: Callable[[Command], argparse.ArgumentParser], commands: Sequence[Command] = COMMANDS
) -> list[CommandWords]:
    """The words of all commands.

    Args:
      parser_of: makes the parser of a command, which loads what the command needs.
      commands: those of `distinput`.
    """
    return [words for command in commands for words in _of(command.name, command.help, parser_of(command))]


def _of(name: str, text: str, parser: argparse.ArgumentParser) -> list[CommandWords]:
    options: list[Option] = []
    words: list[str] = []
    files: list[str] = []
    below: list[CommandWords] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for word, inner in action.choices.items():
                words.append(word)
                below += _of(f"{name} {word}", helps.get(word, ""), inner)
        elif action.option_strings:
            value = None if action.nargs == 0 else _place(action)
            options.append(Option(tuple(action.option_strings), _help(action), value))
        else:
            place = _place(action)
            words += place.words
            files += place.files
    return [CommandWords(name, text, tuple(options), Completions(tuple(words), tuple(dict.fromkeys(files)))), *below]


def _place(action: argparse.Action) -> Completions:
    words, files = getattr(action, "suggested", ((), _FILES.get(str(action.metavar), ())))
    return Completions(tuple(map(str, action.choices)) if action.choices else tuple(words), tuple(files))


def _help(action: argparse.Action) -> str:
    if not action.help or action.help == argparse.SUPPRESS:
        return ""
    text = action.help.replace("%(default)s", str(action.default)).replace("%%", "%")
    return " ".join(text.split())


# ----------------------------------------------------------------------------
# The script for bash: a case for each command, and one for each option that takes a value.
# ----------------------------------------------------------------------------


_BASH_SCRIPT = """\
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
    return _BASH_SCRIPT.format(
        commands=" ".join(name for name in names if " " not in name),
        actions="\n".join(f"        '{name}') command='{name}' ;;" for name in names if " " in name) or "        *) ;;",
        values="\n".join(values),
        rest="\n".join(rest),
    )


def _set(place: Completions) -> str:
    files = "*" if "*" in place.files else " ".join(place.files)
    return f"words='{' '.join(map(_bash_quoted, place.words))}' files='{files}'"


def _bash_quoted(word: str) -> str:
    """A word as `compgen -W` takes it, which reads its list as the shell would, in single quotes."""
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", word).replace("'", "'\\''")


# ----------------------------------------------------------------------------
# The script for fish: a line of `complete` for each word.
# ----------------------------------------------------------------------------


def fish_script(commands: Sequence[CommandWords]) -> str:
    """The script.

    Args:
      commands: all words.

    Source: `complete` in the manual of fish.
    """
    lines = ["# fish completion for distinput; made by `distinput completion fish`", "complete -c distinput -f"]
    first = "complete -c distinput -n __fish_use_subcommand"
    lines += [f"{first} -a {one.name} -d {_fish_quoted(one.help)}" for one in commands if " " not in one.name]
    for command in commands:
        where = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.name.split())
        start = f"complete -c distinput -n '{where}'"
        lines += [f"{start} {_fish_option(option)}" for option in command.options]
        if command.rest.words or command.rest.files:
            lines.append(f"{start} {_value(command.rest)}")
    return "\n".join(lines) + "\n"


def _fish_option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = "" if option.value is None else " -x" if not option.value.files else " -r"
    given = "" if option.value is None else f" {_value(option.value)}".rstrip()
    return f"{names}{value}{given} -d {_fish_quoted(option.help)}"


def _value(place: Completions) -> str:
    words = f"-a {_fish_quoted(' '.join(place.words))}" if place.words else ""
    return f"{words} -F".strip() if place.files else words


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# ----------------------------------------------------------------------------
# The script for zsh: arguments of `_arguments`, a function for each command.
# ----------------------------------------------------------------------------


_ZSH_SCRIPT = """\
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
    return _ZSH_SCRIPT.format(
        commands="\n".join(f"        {_zsh_quoted(f'{_plain(one.name)}:{one.help}')}" for one in plain),
        actions="\n".join(_case(one, 2) for one in actions) or "        *) ;;",
        cases="\n".join(_case(one, 1) for one in plain),
    )


def _case(command: CommandWords, words: int) -> str:
    given = [_zsh_option(option, name) for option in command.options for name in option.names]
    if any(command.rest):  # a place that nothing completes would only keep the others from being inserted
        given.append("*:argument" + _action(command.rest))
    lines = [f"        {_zsh_quoted(command.name)})", f"            shift {words} words; (( CURRENT -= {words} ))"]
    lines += ["            _arguments -S " + " \\\n                ".join(map(_zsh_quoted, given))]
    return "\n".join([*lines, "            return ;;"])


def _zsh_option(option: Option, name: str) -> str:
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


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ----------------------------------------------------------------------------
# `distinput completion`: a script that completes words of this command in a shell.
#
# The script has a table of all words in it, made from the parsers when it is printed: completing a word runs no Python.
# ----------------------------------------------------------------------------


_SCRIPTS = {"bash": bash_script, "fish": fish_script, "zsh": zsh_script}
_EPILOG = """
bash:  distinput completion bash > ~/.local/share/bash-completion/completions/distinput
zsh:   distinput completion zsh > ~/.zfunc/_distinput   (a folder of $fpath)
fish:  distinput completion fish > ~/.config/fish/completions/distinput.fish
"""


def completion_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput completion`."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="the shell that the script is for")
    add_json(parser)


def completion_command(given: argparse.Namespace) -> int:
    """Print the script, or the table that it is made from."""
    words = table(parser_of)
    print_json(words) if given.json else print(_SCRIPTS[given.shell](words), end="")
    return FINE
