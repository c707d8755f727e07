# SPDX-License-Identifier: Apache-2.0
"""The blocks of a page that are run, and running them.

The blocks of a page run in order and share their names, as a reader would type them. A block with `>>>` is held to the
output it shows. One without runs as it is; if the next block is fenced as `text`, it must have printed that. A block that
is not to be run has a comment with the reason on the line before its fence: `<!-- not run: the reason -->`.
One after `<!-- needs: package, package -->` is left out where a package is not installed; later blocks do without its names.

After the comment `<!-- file: name -->` a block, in any language, is not run but saved under that name, as a reader would
save it. A block of shell is run after the comment `<!-- run -->`, where `python` is the Python of the tests; it must end
well, and print what a block fenced as `text` after it says.
"""

import contextlib
import doctest
import importlib.util
import io
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.nursery import FORKED

__all__ = ["Snippet", "left_out", "run_page", "snippets"]

_TORCHRUN = """torchrun() { python -c "
import subprocess, sys
from tests.nursery import FORKED
FORKED.on, FORKED.loads = True, 'torch'
sys.exit(subprocess.call([sys.executable, '-m', 'torch.distributed.run', *sys.argv[1:]]))" "$@"; }
"""
"""What a shell runs in place of torchrun: a fork of a process that has loaded PyTorch."""
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_COMMENT = r"<!-- (?:not run: *(?P<reason>.*?)|needs: *(?P<needs>[\w, ]+?)|file: *(?P<file>\S+)|(?P<run>run)) *-->\n"
_FENCE = re.compile(rf"^(?:{_COMMENT})?```(?P<language>[\w-]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """A block of Python, a file, or a block of shell that is run.

    Args:
      code: what stands between the fences.
      line: of the page, where the code begins.
      prints: what the block after it says that it prints, None if there is none.
      reason: why it is not run, None if it is.
      file: the name to save it under instead of running it, None if it is run.
      shell: whether it is shell.
      needs: the packages without which it is left out.
    """

    code: str
    line: int
    prints: str | None
    reason: str | None
    file: str | None = None
    shell: bool = False
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """The packages that it needs and that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def snippets(page: str) -> Iterator[Snippet]:
    """The blocks of a page that are run or saved, and those of Python that are not, in order."""
    fences = list(_FENCE.finditer(page))
    for index, fence in enumerate(fences):
        if fence["language"] != "python" and not (fence["file"] or fence["run"]):
            continue
        after = fences[index + 1] if index + 1 < len(fences) else None
        close = after is not None and after["language"] == "text" and not page[fence.end() : after.start()].strip()
        line = page[: fence.start("code")].count("\n") + 1
        prints = after["code"] if close and after else None
        needs = tuple((fence["needs"] or "").replace(",", " ").split())
        yield Snippet(fence["code"], line, prints, fence["reason"], fence["file"], fence["run"] is not None, needs)


def left_out(path: Path) -> dict[str, int]:
    """How many blocks of a page are left out here for want of a package, by its name."""
    return Counter(name for snippet in snippets(path.read_text(encoding="utf-8")) for name in snippet.missing)


def run_page(path: Path) -> list[str]:
    """What is wrong with the blocks of a page: errors, and outputs that are not as shown."""
    names: dict[str, Any] = {"__name__": "__main__"}
    wrong: list[str] = []
    for snippet in snippets(path.read_text(encoding="utf-8")):
        if snippet.missing:
            continue
        if snippet.file is not None:
            Path(snippet.file).write_text(snippet.code, encoding="utf-8")
        elif snippet.shell:
            wrong += _shell(snippet, path)
        elif snippet.reason is None:
            wrong += _examples(snippet, path, names) if ">>>" in snippet.code else _script(snippet, path, names)
    return wrong


def _examples(snippet: Snippet, path: Path, names: dict[str, Any]) -> list[str]:
    test = doctest.DocTestParser().get_doctest(snippet.code, names, path.name, str(path), snippet.line - 1)
    test.globs = names  # the parser makes a copy, but later blocks use what this one defines
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=_FLAGS, verbose=False)
    runner.run(test, out=told.append, clear_globs=False)
    return ["".join(told)] if told else []


def _script(snippet: Snippet, path: Path, names: dict[str, Any]) -> list[str]:
    code = compile("\n" * (snippet.line - 1) + snippet.code, str(path), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return _compared(snippet, path, printed.getvalue())


def _shell(snippet: Snippet, path: Path) -> list[str]:
    """What a block of shell does wrong, with this Python and this distinput."""
    search = {"PATH": [str(Path(sys.executable).parent)], "PYTHONPATH": [str(Path(__file__).parents[2])]}
    paths = {name: os.pathsep.join([*first, os.environ.get(name, "")]) for name, first in search.items()}
    done = subprocess.run(
        ["bash", "-e", "-c", (_TORCHRUN if FORKED.on else "") + snippet.code],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **paths},
    )
    if done.returncode:
        return [f"{path.name}:{snippet.line}: ends with {done.returncode} and says\n{done.stdout}{done.stderr}"]
    return _compared(snippet, path, done.stdout)


def _compared(snippet: Snippet, path: Path, printed: str) -> list[str]:
    if snippet.prints is None or doctest.OutputChecker().check_output(snippet.prints, printed, _FLAGS):
        return []
    return [f"{path.name}:{snippet.line}: says that it prints\n{snippet.prints}but prints\n{printed}"]
