# SPDX-License-Identifier: Apache-2.0
"""Members of TensorFlow's classes that are not there: the error says what to do instead."""

from distinput.names.words import CHANGE, MEMBERS, declined, told
from distinput.values.spec import RaggedTensorSpec


def test_a_reason_names_its_page() -> None:
    assert told(("use NumPy", CHANGE)) == 'use NumPy ("What to change" in docs/tensorflow.md)'


def test_classes_have_the_reasons_of_those_they_derive_from() -> None:
    what, _ = MEMBERS["TypeSpec"]["cast"]
    assert str(declined(RaggedTensorSpec, "cast")).startswith(
        f"'RaggedTensorSpec' object has no attribute 'cast': {what} ("
    )
    assert str(declined(int, "cast")) == "'int' object has no attribute 'cast'"
