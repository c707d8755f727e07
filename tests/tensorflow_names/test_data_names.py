# SPDX-License-Identifier: Apache-2.0
"""Every name of `tf.data`, `tf.io` and `tf.errors` is there, with TensorFlow's arguments, or declined with its reason."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from distinput.errors import DistinputError
from distinput.names import absent, words
from tests.tensorflow_names.test_names import differs, find, has, instance

FACTS = json.loads((Path(__file__).parent / "tensorflow_data_2_21.json").read_text(encoding="utf-8"))
NAMES: dict[str, dict[str, str]] = FACTS["names"]
METHODS: dict[str, str] = FACTS["methods"]
MEMBERS = [(name, member) for name, facts in NAMES.items() for member in facts.get("members", "").split()]

OUR_OWN_ARGUMENTS = {
    "data.Dataset": "users make datasets by its methods, in TensorFlow too",
    "data.Dataset.range": "TensorFlow's `**kwargs` are `output_type` and `name`",
    "data.Dataset.shuffle": "`reshuffle_each_iteration` is None by default, which means True",
    "data.Dataset.zip": "what follows `*args` is given by name, in TensorFlow too",
    "data.Iterator": "users call iter(dataset), in TensorFlow too",
    "data.experimental.CsvDataset": "`header` is None by default: False for tuples, as in TensorFlow, and True for dicts",
    "data.experimental.Optional": "users make it by its methods, in TensorFlow too",
}
"""Calls whose arguments TensorFlow's signature does not tell."""


def reason_of(error: AttributeError) -> str:
    """The reason in the message of an error, which a table gives; empty if there is none."""
    tables = {**absent._TABLE, **absent._MEMBERS, **words.MEMBERS}
    reasons = [words.told(cure) for names in tables.values() for cure in names.values()]
    return next((reason for reason in reasons if str(error).endswith(f": {reason}")), "")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there_or_declined(name: str) -> None:
    found = find(name)
    if isinstance(found, AttributeError):
        assert reason_of(found), f"{name} is just missing: {found}"


@pytest.mark.parametrize("name, member", MEMBERS)
def test_every_member_is_there_or_declined(name: str, member: str) -> None:
    found = find(name)
    if isinstance(found, AttributeError):
        assert reason_of(found)
        return
    if has(found, member):
        return
    with pytest.raises(AttributeError) as error:
        getattr(instance(found), member)
    assert reason_of(error.value), f"{name}.{member} is just missing: {error.value}"


@pytest.mark.parametrize("name", [name for name, facts in NAMES.items() if "arguments" in facts])
def test_calls_are_written_as_for_tensorflow(name: str) -> None:
    found = find(name)
    if name in OUR_OWN_ARGUMENTS or isinstance(found, AttributeError):
        pytest.skip("declined, or not told by the signature")
    assert differs(found, NAMES[name]["arguments"]) == ""


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_called_as_tensorflows(name: str) -> None:
    owner, _, member = name.rpartition(".")
    cls = find(owner)
    if isinstance(cls, AttributeError) or not hasattr(cls, member) or name in OUR_OWN_ARGUMENTS:
        pytest.skip("declined, or not told by the signature")
    method = inspect.getattr_static(cls, member)
    function: Any = method.__func__ if isinstance(method, staticmethod | classmethod) else getattr(cls, member)
    assert differs(function, METHODS[name]) == ""


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("errors.") and name.endswith("Error")])
def test_errors_are_caught_as_tensorflows(name: str) -> None:
    found = find(name)
    if isinstance(found, AttributeError):
        return
    assert issubclass(found, DistinputError)
    error = found("what happened")
    assert (error.message, str(error), error.node_def, error.experimental_payloads) == ("what happened",) * 2 + (
        None,
        {},
    )
    assert error.error_code in range(1, 17)


def test_the_facts_are_whole() -> None:
    assert len(NAMES) == 166
    assert len(MEMBERS) > 300
    assert {name.rpartition(".")[0] for name in METHODS} <= set(NAMES)


@pytest.mark.parametrize("cls, name", [(cls, name) for cls, names in words.MEMBERS.items() for name in names])
def test_a_declined_member_names_its_section(cls: str, name: str) -> None:
    _, section = words.MEMBERS[cls][name]
    page = (Path(__file__).parents[2] / words.PAGE).read_text(encoding="utf-8")
    assert f"\n## {section}\n" in page
