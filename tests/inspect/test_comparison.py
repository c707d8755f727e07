# SPDX-License-Identifier: Apache-2.0
"""What is the same in another format, and what differs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.inspect.files import open_files
from distinput.inspect.verification import first_difference, same

values = st.recursive(
    st.none() | st.integers() | st.floats() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_everything_is_the_same_as_itself(value: Any) -> None:
    assert same(value, value)


@given(values, values)
def test_it_does_not_matter_which_comes_first(one: Any, other: Any) -> None:
    assert same(one, other) == same(other, one)


@pytest.mark.parametrize(
    "one, other, is_same",
    [
        (np.array([1, 2]), [1, 2], True),
        (np.array([1, 2]), [2, 1], False),
        (np.float32(0.5), 0.5, True),
        ({"value": b"a"}, b"a", True),
        ({"line": b"a"}, b"a", False),
        (float("nan"), None, True),
        ({"x": []}, {}, True),
        ({"x": 0}, {}, False),
        (b"", None, False),
    ],
)
def test_examples(one: Any, other: Any, is_same: bool) -> None:
    assert same(one, other) is is_same


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    texts = {"a": "x\ny\nz\n", "same": "x\ny\nz\n", "other": "x\nY\nz\n", "short": "x\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    a, equal, other, short = [open_files(str(tmp_path / f"{name}.txt")) for name in texts]
    assert first_difference(a, equal) is None
    assert first_difference(a, other) == (
        a.paths[0],
        f"record 1 is not record 1 of {other.paths[0]}: it is b'y', not b'Y'",
    )
    assert first_difference(a, short) == (
        a.paths[0],
        "record 1 is one more than the other files have, which end after 1",
    )
    assert "ends after 1 records, and the other files have more" in first_difference(short, a)[1]  # type: ignore[index]
