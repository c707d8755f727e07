# SPDX-License-Identifier: Apache-2.0
"""Keys that stand for variables."""

import pytest

import distinput as di


def test_a_reference_is_a_key() -> None:
    v, w = di.Variable(1.0), di.Variable(1.0)
    assert {v.ref(): "v", w.ref(): "w"}[v.ref()] == "v"
    assert v.ref() != w.ref()
    assert v.ref().deref() is v
    assert repr(v.ref()) == f"<Reference wrapping {v!r}>"


def test_a_variable_is_no_key() -> None:
    with pytest.raises(TypeError, match=r"Variable is unhashable. Instead, use variable.ref\(\) as the key."):
        {di.Variable(1.0)}
