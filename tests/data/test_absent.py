# SPDX-License-Identifier: Apache-2.0
"""Names of TensorFlow that are not there: the error says what to write instead."""

import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.names import absent, words

ROOT = Path(__file__).parents[2]
NAMES = [(module, name) for module, names in absent._TABLE.items() for name in names]


def message(module: str, name: str) -> str:
    """What is said when a module is asked for a name."""
    with pytest.raises(AttributeError) as found:
        getattr(import_module(module), name)
    return str(found.value)


@pytest.mark.parametrize("module, name", NAMES)
def test_a_name_that_is_not_there_says_what_to_write_instead(module: str, name: str) -> None:
    cure, section = absent._TABLE[module][name]
    assert re.search(f"^## {section}$", (ROOT / words.PAGE).read_text(encoding="utf-8"), re.MULTILINE)
    assert message(module, name) == (
        f"module '{module}' has no attribute '{name}': {cure} (\"{section}\" in {words.PAGE})"
    )


@pytest.mark.parametrize(
    "module, name, near",
    [
        ("distinput", "TensorSpc", "TensorSpec"),
        ("distinput.data", "Datset", "Dataset"),
        ("distinput.io", "TFRecordWritr", "TFRecordWriter"),
        ("distinput.data.experimental", "cardinalty", "cardinality"),
    ],
)
def test_a_name_that_is_nearly_there_is_suggested(module: str, name: str, near: str) -> None:
    assert message(module, name) == f"module '{module}' has no attribute '{name}'; did you mean {near}?"


@pytest.mark.parametrize("module", ["distinput", "distinput.data"])
@pytest.mark.parametrize("name", ["from_generator", "list_files", "zip"])
def test_a_method_of_a_dataset_is_no_function_of_the_module(module: str, name: str) -> None:
    assert message(module, name) == f"module '{module}' has no attribute '{name}'; it is a method of data.Dataset"


def test_any_other_name_lists_those_that_are_there() -> None:
    assert message("distinput", "zzz").startswith(
        "module 'distinput' has no attribute 'zzz'; it has IndexedSlices, OptionalSpec, "
    )


def test_what_python_itself_asks_for_is_refused_in_few_words() -> None:
    assert message("distinput.data", "__wrapped__") == "module 'distinput.data' has no attribute '__wrapped__'"


@pytest.mark.fresh_process
def test_a_first_batch_looks_for_no_words() -> None:
    program = "import sys, distinput as di; next(iter(di.data.Dataset.range(4).batch(2))); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"difflib", "distinput.names.absent"} & set(done.stdout.split())


# ----------------------------------------------------------------------------
# Names of other libraries.
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", absent._ELSEWHERE)
def test_a_name_of_another_library_says_what_it_is_called_here(name: str) -> None:
    said = absent.elsewhere(name)
    assert said is not None
    dataset = di.data.Dataset.range(3)
    modules = [
        module
        for module in (di, di.data)
        if not hasattr(module, name) and name not in absent._TABLE.get(module.__name__, {})
    ]
    for asked in (dataset, di.data.Dataset, di.data.TFRecordDataset("a"), *modules):
        assert not hasattr(asked, name), "it is there, so the table need not speak of it"
        with pytest.raises(AttributeError, match=re.escape(said)):
            getattr(asked, name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.needs(*(("torch",) if "interop.torch" in ours else ())))
        for name, ours in absent._ELSEWHERE.items()
    ],
)
def test_what_it_says_is_there(name: str) -> None:
    called = re.findall(r"\b([a-z_][\w.]*|[A-Z]\w*\.\w+)\(", absent._ELSEWHERE[name])
    for text in called:
        start = (
            di
            if text.startswith(("data.", "interop."))
            else di.data
            if text.startswith("Dataset.")
            else di.data.Dataset
        )
        found = {"len": len, "iter": iter, "row.astype": True, "state": di.data.DatasetIterator}.get(text)
        if found is None:
            found = start
            for part in text.removeprefix("(").split("."):
                found = getattr(found, part)
        assert found is not None


def test_a_name_that_python_looks_for_is_refused_in_few_words() -> None:
    with pytest.raises(AttributeError, match=r"^type object 'Dataset' has no attribute '__wrapped__'$"):
        di.data.Dataset.__wrapped__  # noqa: B018
    with pytest.raises(AttributeError, match=r"^type object 'Dataset' has no attribute 'zzz'$"):
        di.data.Dataset.zzz  # noqa: B018


@pytest.mark.parametrize(
    "ask",
    [
        lambda: di.py_function,
        lambda: di.data.Dataset.from_pandas_,
        lambda: di.data.Dataset.range(3).batchs,
        lambda: di.distribute.MirroredStrategy(["CPU:0"]).unwrap,
    ],
)
def test_python_adds_no_advice_of_its_own(ask: Callable[[], Any]) -> None:
    try:
        ask()
    except AttributeError as error:
        raised, text = error, "".join(traceback.format_exception_only(error))
    assert text.lower().count("did you mean") <= 1
    assert "Did you mean" not in text or ";" not in text, "where nothing better is said, Python may help"
    assert raised.name is not None
    assert raised.obj is None or ";" not in text, "Python 3.12 and later look for names that look alike in it"
