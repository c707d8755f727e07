# SPDX-License-Identifier: Apache-2.0
"""`MODULE:ds`: a dataset of a user's program, found by the module and the name in it."""

import argparse
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from distinput.cli.arguments import suggest
from distinput.data.dataset import Dataset
from distinput.errors import DistinputError, FailedPreconditionError, InvalidArgumentError, NotFoundError, UnknownError
from distinput.names.words import meant

WHERE = "a module or a file, and a name in it: `package.module:ds`, `train.py:make_dataset`"
_NAME = re.compile(r"(?P<module>[^:]+(?:\.py)?):(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")
_FRAMES = 5
"""Lines of the user's program that an error names."""
_OURS = str(Path(__file__).parents[1]) + os.sep


def add_dataset(parser: argparse.ArgumentParser, **given: Any) -> None:
    """Let a command take a dataset of the user's program, as its argument `dataset`."""
    text = f"the dataset, or a function without arguments that returns it: {WHERE}"
    suggest(parser.add_argument("dataset", metavar="MODULE:ds", help=text, **given), files=("py",))


def is_name(text: str) -> bool:
    r"""Whether a word is the name of a dataset rather than that of a file.

    >>> [is_name(word) for word in ("train.py:ds", "my.data:make.eval", "a.csv", "s3://bucket/a", "C:\\data")]
    [True, True, False, False, False]
    """
    return _NAME.fullmatch(text) is not None and not os.path.exists(text)


def load_dataset(text: str) -> Dataset[Any]:
    """The dataset that is meant.

    Args:
      text: see `load`.

    Raises:
      InvalidArgumentError: what is there is no dataset.
    """
    found = load(text)
    if isinstance(found, Dataset):
        return found
    kind = type(found).__name__
    inside = getattr(found, "dataset", None)
    cure = f"; it has a dataset in it: {text}.dataset" if isinstance(inside, Dataset) else ""
    raise InvalidArgumentError(f"{text}: it must be a Dataset, or a function that returns one, got {kind}{cure}")


def load(text: str) -> Any:
    """What a module has under a name; functions are called.

    The module is imported as `python -m` would do: from the current directory, or else from where packages are installed.
    A file is imported as the module of its name, with its folder in front of the places where modules are searched.

    Args:
      text: `package.module:name`, or `file.py:name`; the name may be that of an attribute, `model.dataset`.

    Raises:
      InvalidArgumentError: the words are none of these, or the function needs arguments.
      NotFoundError: there is no such module, file, or name.
      FailedPreconditionError: the module was found, and fails.
    """
    words = _NAME.fullmatch(text)
    if words is None:
        raise InvalidArgumentError(f"{text}: the dataset must be named by {WHERE}")
    module = _module(words["module"], text)
    found: Any = module
    for name in words["name"].split("."):
        if not hasattr(found, name):
            raise NotFoundError(f"{text}: {words['module']} has no {name!r}; {_offered(module, name)}")
        found = getattr(found, name)
    if isinstance(found, Dataset) or not callable(found):
        return found
    with user_code(text, FailedPreconditionError):
        try:
            return found()
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise InvalidArgumentError(
                f"{text}: a function is called without arguments ({error}); write one that gives them, and name that"
            ) from error


@contextmanager
def user_code(what: str, kind: type[Exception] = UnknownError) -> Iterator[None]:
    """Turn errors of the user's program into errors of a command, with the lines of the program that they come from.

    Args:
      what: begins the message.
      kind: what is raised.
    """
    try:
        yield
    except DistinputError:
        raise
    except SystemExit as error:
        raise FailedPreconditionError(
            f"{what}: it ended the program; put code that should only run as a script below `if __name__ == '__main__':`"
        ) from error
    except Exception as error:
        raised = kind(f"{what}: {type(error).__name__}: {error}")
        for note in [*_lines_of(error), *getattr(error, "__notes__", ())]:
            raised.add_note(note)
        raise raised from error


def _lines_of(error: BaseException) -> list[str]:
    if isinstance(error, SyntaxError):
        return [f"{error.filename}:{error.lineno}: {(error.text or '').strip()}"]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen", _OURS)) and os.sep + "importlib" + os.sep not in frame.filename
    ]
    return [f"{frame.filename}:{frame.lineno}, in {frame.name}: {frame.line}" for frame in frames[-_FRAMES:]]


def _module(name: str, text: str) -> ModuleType:
    is_file = name.endswith(".py") or "/" in name or os.sep in name
    path = Path(name if name.endswith(".py") else f"{name}.py")
    if is_file and not path.is_file():
        raise NotFoundError(f"{text}: there is no file {name}, seen from {os.getcwd()}")
    first = str(path.parent.resolve()) if is_file else os.getcwd()
    if first not in sys.path:
        sys.path.insert(0, first)
    word = path.stem if is_file else name
    with user_code(f"{text}: importing {name} failed", FailedPreconditionError):
        try:
            module = import_module(word)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{word}.".startswith(f"{error.name}."):
                raise  # it was found, and a module that it imports was not
            raise NotFoundError(
                f"{text}: there is no module {error.name}, in {os.getcwd()} or installed; "
                "name a file by its path, such as ./train.py:ds"
            ) from error
    if is_file and Path(module.__file__ or "").resolve() != path.resolve():
        raise FailedPreconditionError(
            f"{text}: Python has another module {word} loaded, {module.__file__}; give the file another name"
        )
    return module


def _offered(module: ModuleType, name: str) -> str:
    """What could have been meant: datasets, then functions that the module defines."""
    here = [
        key
        for key, value in vars(module).items()
        if isinstance(value, Dataset)
        or (callable(value) and not isinstance(value, type) and getattr(value, "__module__", "") == module.__name__)
    ]
    here = [key for key in here if not key.startswith("_")]
    return meant(name, sorted(here), "it has") if here else "it has no dataset, and no function"
