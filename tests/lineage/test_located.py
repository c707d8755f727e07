# SPDX-License-Identifier: Apache-2.0
"""`Located`: a sequence of places."""

import json

import numpy as np
import pytest

from distinput.distribute.input.located import Located, Place


def located(files: tuple[str, ...], file: list[int], replica: int, assumes: tuple[str, ...] = ()) -> Located:
    n = len(file)
    return Located(3, 1, files, np.array(file), np.arange(n) + 10, np.full(n, replica), np.arange(n), assumes)


def test_places_are_those_of_the_arrays() -> None:
    found = located(("a", "b"), [0, 1, 1], 2)
    assert list(found) == [Place("a", 10, 2, 0), Place("b", 11, 2, 1), Place("b", 12, 2, 2)]
    assert found[-1] == Place("b", 12, 2, 2)
    assert found[1:] == list(found)[1:]
    with pytest.raises(IndexError):
        found[3]


def test_parts_of_several_workers_are_one_step() -> None:
    first, second = located(("a", "b"), [0, 1], 0, ("it rains",)), located(("b", "c"), [1, 0], 1, ("it rains",))
    whole = Located.joined([first, second])
    assert list(whole) == [*first, *second]
    assert whole.files == ("a", "b", "c")
    assert whole.assumes == ("it rains",)


def test_it_is_printed_shortly_and_told_whole() -> None:
    found = located(("a",), [0] * 20, 0, ("map(f), leaves rows in place",))
    assert str(found).splitlines()[:2] == ["step 3 of epoch 1: 20 records", "  replica 0, row 0: record 10 of a"]
    assert str(found).splitlines()[-2:] == ["  ... and 12 more", "  if map(f), leaves rows in place"]
    told = json.loads(json.dumps(found.to_dict()))
    assert told["rows"][19] == {"file": "a", "record": 29, "replica": 0, "row": 19}
