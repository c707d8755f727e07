# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of a page, and running them.

The blocks of a page run in order and share their names, as a reader would type them. A block with `>>>` is held to the
output it shows. One without runs as it is; if the next block is fenced as `text`, it must have printed that. A block that
is not to be run has a comment with the reason on the line before its fence: `<!-- not run: the reason -->`.
"""

import contextlib
import doctest
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Snippet", "run_page", "snippets"]

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_FENCE = re.compile(
    r"^(?:<!-- not run: *(?P<reason>.*?) *-->\n)?```(?P<language>[\w-]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Snippet:
    """A Python block.

    Args:
      code: what stands between the fences.
      line: of the page, where the code begins.
      prints: what the block after it says that it prints, None if there is none.
      reason: why it is not run, None if it is.
    """

    code: str
    line: int
    prints: str | None
    reason: str | None


def snippets(page: str) -> Iterator[Snippet]:
    """The Python blocks of a page in order."""
    fences = list(_FENCE.finditer(page))
    for index, fence in enumerate(fences):
        if fence["language"] != "python":
            continue
        after = fences[index + 1] if index + 1 < len(fences) else None
        close = after is not None and after["language"] == "text" and not page[fence.end() : after.start()].strip()
        line = page[: fence.start("code")].count("\n") + 1
        yield Snippet(fence["code"], line, after["code"] if close and after else None, fence["reason"])


def run_page(path: Path) -> list[str]:
    """What is wrong with the blocks of a page: errors, and outputs that are not as shown."""
    names: dict[str, Any] = {"__name__": "__main__"}
    wrong: list[str] = []
    for snippet in snippets(path.read_text(encoding="utf-8")):
        if snippet.reason is None:
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
    if snippet.prints is None:
        return []
    if doctest.OutputChecker().check_output(snippet.prints, printed.getvalue(), _FLAGS):
        return []
    return [f"{path.name}:{snippet.line}: says that it prints\n{snippet.prints}but prints\n{printed.getvalue()}"]
