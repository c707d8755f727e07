# SPDX-License-Identifier: Apache-2.0
"""Environment variables and their errors."""

import pytest

from distinput.cluster.resolver import current, natural, text


def test_no_mapping_is_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTINPUT_TEST_VARIABLE", "1")
    assert current(None)["DISTINPUT_TEST_VARIABLE"] == "1"
    assert current({}) == {}


def test_an_empty_variable_is_a_missing_one() -> None:
    environ = {"EMPTY": "", "BLANK": "  ", "WORD": " a "}
    assert [text(environ, name) for name in ("EMPTY", "BLANK", "WORD", "MISSING")] == [None, None, "a", None]
    assert [natural(environ, name, "x") for name in ("EMPTY", "BLANK", "MISSING")] == [None] * 3


@pytest.mark.parametrize(
    "value, least", [("-1", 0), ("+1", 0), ("1.0", 0), ("x", 0), ("0", 1), ("\u0663", 0), ("1_0", 0)]
)
def test_what_is_not_a_natural_number_is_named(value: str, least: int) -> None:
    with pytest.raises(ValueError, match=f"^x: N must be an integer, at least {least}, got "):
        natural({"N": value}, "N", "x", least)


def test_a_natural_number() -> None:
    assert (natural({"N": " 07 "}, "N", "x"), natural({"N": "0"}, "N", "x")) == (7, 0)
