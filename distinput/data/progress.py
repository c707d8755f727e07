# SPDX-License-Identifier: Apache-2.0
"""A pass over a dataset whose progress is shown."""

import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import monotonic
from typing import Any, Generic, Protocol, Self, TextIO

from distinput.columns.state import State
from distinput.data.iterator import DatasetIterator, T_co
from distinput.data.stats import Stats
from distinput.errors import EngineMissing, InvalidArgumentError
from distinput.names.words import number_text, seconds_text
from distinput.run.threads import Closing

# ----------------------------------------------------------------------------
# A bar that shows how far something is: tqdm's, rich's, or a line of text; nothing where nobody watches.
# ----------------------------------------------------------------------------


_SECONDS = 0.1
"""Between two updates of what is shown."""


class _Drawn(Protocol):
    """How a bar is drawn."""

    def show(self, done: int, note: str) -> None:
        """So many are done."""

    def end(self) -> None:
        """Nothing more is shown."""


class ProgressBar(Closing):
    """Shows how much is done, of how much, the rate, and the remaining time.

    Args:
      low: the fewest there are.
      high: the most there are; None: nobody knows.
      what: a name for it.
      unit: what is counted.
      kind: "tqdm", "rich", "plain", or "auto" for the first of these that is installed.
      stream: a terminal; None: standard error. In a notebook tqdm draws below the cell instead.
      leave: whether the bar stays when it has ended.

    Raises:
      EngineMissing: `kind` names a package that is not installed.
      InvalidArgumentError: `kind` is none of these.

    >>> with ProgressBar(3, 3, "counting") as bar:
    ...     for number in range(3):
    ...         bar.step()
    >>> bar.done
    3
    """

    def __init__(
        self,
        low: int,
        high: int | None,
        what: str = "",
        unit: str = "elements",
        kind: str = "auto",
        stream: TextIO | None = None,
        leave: bool = True,
    ) -> None:
        if kind not in ("auto", *_KINDS):
            raise InvalidArgumentError(f"progress: kind must be one of auto, {', '.join(_KINDS)}, got {kind!r}")
        if kind in ("rich", "tqdm") and not _installed(kind):
            raise EngineMissing(f"progress: {kind} is not installed; `pip install {kind}`, or take kind='plain'")
        self.done, self._note = 0, ""
        terminal = stream or sys.stderr
        self._drawn: _Drawn | None = None
        self._next = 0.0
        if kind == "auto":
            kind = next(each for each in ("tqdm", "rich", "plain") if _draws(each))
        if _in_notebook() or terminal.isatty():
            self._drawn = _KINDS[kind](low, high, what, unit, terminal, leave)

    def step(self, note: str = "", count: int = 1) -> None:
        """Count elements that are done.

        Args:
          note: something to show beside it.
          count: how many.
        """
        self.done, self._note = self.done + count, note
        if self._drawn is not None:
            now = monotonic()
            if now >= self._next:
                self._next = now + _SECONDS
                self._drawn.show(self.done, note)

    def reach(self, done: int) -> None:
        """Count up to so many that are done."""
        self.step(count=done - self.done)

    def close(self) -> None:
        """Show the last number, and end; may be called again."""
        drawn, self._drawn = self._drawn, None
        if drawn is not None:
            drawn.show(self.done, self._note)
            drawn.end()


class _Tqdm:
    """tqdm's bar."""

    def __init__(self, low: int, high: int | None, what: str, unit: str, stream: TextIO, leave: bool) -> None:
        if _in_notebook():
            from tqdm.auto import tqdm
        else:
            from tqdm import tqdm
        name = what if low == high or high is None else f"{what} (at most)".lstrip()
        where: dict[str, Any] = {} if _in_notebook() else {"file": stream, "dynamic_ncols": True}
        self._bar = tqdm(total=high, desc=name or None, unit=f" {unit}", mininterval=_SECONDS, leave=leave, **where)

    def show(self, done: int, note: str) -> None:
        if note:
            self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)

    def end(self) -> None:
        self._bar.close()


class _Rich:
    """rich's bar."""

    def __init__(self, low: int, high: int | None, what: str, unit: str, stream: TextIO, leave: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[told]}", markup=False),
        )
        self._bar = Progress(
            *columns,
            TimeRemainingColumn(),
            console=Console(file=stream),
            transient=not leave,
            # Printed above the bar by rich, but what goes to a file must get there.
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )
        self._task = self._bar.add_task(what, total=high, told="")
        self._told = _of(low, high, unit)
        self._bar.start()

    def show(self, done: int, note: str) -> None:
        self._bar.update(self._task, completed=done, told=" ".join(filter(None, (f"{done:,}{self._told}", note))))

    def end(self) -> None:
        self._bar.stop()


class _Plain:
    """A line that is overwritten."""

    def __init__(self, low: int, high: int | None, what: str, unit: str, stream: TextIO, leave: bool) -> None:
        self._what, self._high, self._stream = f"{what}: " if what else "", high, stream
        self._told, self._begin, self._leave = _of(low, high, unit), monotonic(), leave

    def show(self, done: int, note: str) -> None:
        seconds = monotonic() - self._begin
        parts = [f"{self._what}{done:,}{self._told}"]
        if done and seconds > _SECONDS:
            parts.append(f"{number_text(done / seconds)}/s")
            if self._high is not None and done < self._high:
                parts.append(f"{seconds_text((self._high - done) * seconds / done)} left")
        line = ", ".join([*parts, *([note] if note else [])])
        self._stream.write("\r\033[K" + line[: _room(self._stream)])  # of two lines only the last one is overwritten
        self._stream.flush()

    def end(self) -> None:
        self._stream.write("\n" if self._leave else "\r\033[K")
        self._stream.flush()


_KINDS: dict[str, Callable[[int, int | None, str, str, TextIO, bool], _Drawn]] = {
    "plain": _Plain,
    "rich": _Rich,
    "tqdm": _Tqdm,
}


def _of(low: int, high: int | None, unit: str) -> str:
    """Of how many elements, with the bounds that are known."""
    if high is None:
        return f" {unit}" if low == 0 else f" of at least {low:,} {unit}"
    if low == high:
        return f" of {high:,} {unit}"
    return f" of at most {high:,} {unit}" if low == 0 else f" of {low:,} to {high:,} {unit}"


def _is_terminal(stream: Any) -> bool:
    """Whether somebody watches what is printed; a stream that a program has put in place may not know."""
    return hasattr(stream, "isatty") and stream.isatty()


def _room(terminal: TextIO) -> int | None:
    """How long a line of a terminal may be; None: nobody knows."""
    try:
        return max(os.get_terminal_size(terminal.fileno()).columns - 1, 0) or None
    except (AttributeError, OSError, ValueError):  # text in memory has no descriptor
        return None


def _draws(kind: str) -> bool:
    """Whether this kind of bar is installed and draws on this terminal."""
    if kind == "rich" and os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return False
    return kind == "plain" or _installed(kind)


def _installed(package: str) -> bool:
    if package in sys.modules:
        return sys.modules[package] is not None
    return find_spec(package) is not None


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


# ----------------------------------------------------------------------------
# The pass that is shown.
# ----------------------------------------------------------------------------


class ShownPass(Closing, Iterator[T_co], Generic[T_co]):
    """The elements of a dataset's next pass, and a bar for them; `Dataset.progress` makes it.

    Args:
      elements: the pass, at its beginning.
      bar: what shows how far it is.
    """

    def __init__(self, elements: DatasetIterator[T_co], bar: ProgressBar) -> None:
        self.bar = bar
        self._elements = elements
        self._before = elements.mark()
        self._waiting: tuple[T_co] | None = None  # taken, but not delivered when an interrupt came

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        try:
            if self._waiting is None:
                self._before = self._elements.mark()
                for element in self._elements:
                    self._waiting = (element,)
                    break
                else:
                    raise StopIteration
            self.bar.step()
        except BaseException as error:
            if not isinstance(error, Exception) or isinstance(error, StopIteration):
                self.bar.close()
            raise
        (element,), self._waiting = self._waiting, None
        return element

    @property
    def element_spec(self) -> Any:
        """The spec of an element."""
        return self._elements.element_spec

    def state(self) -> State:
        """The position after the last element; see `DatasetIterator.state`."""
        elements = self._elements
        return elements.sealed(elements.place(self._before if self._waiting else None))

    def stats(self) -> Stats:
        """Statistics of the steps so far."""
        return self._elements.stats()

    def close(self) -> None:
        """End the pass and its bar; may be called again."""
        self.bar.close()
        self._elements.close()
