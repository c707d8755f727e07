# SPDX-License-Identifier: Apache-2.0
"""What is shown of a text has nothing that a terminal obeys."""

import json

from hypothesis import given
from hypothesis import strategies as st

from distinput.cli.visible import visible, visible_json


@given(st.text())
def test_no_letter_is_obeyed(text: str) -> None:
    shown = visible(text)
    assert not any(letter < " " or "\x7f" <= letter < "\xa0" or "\u202a" <= letter <= "\u202e" for letter in shown)
    assert visible(f"a\n{text}", lines=True).startswith("a\n")


@given(st.dictionaries(st.text(), st.text()))
def test_json_means_the_same(value: dict[str, str]) -> None:
    shown = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    assert not any("\x7f" <= letter < "\xa0" or "\u2066" <= letter <= "\u2069" for letter in shown)
