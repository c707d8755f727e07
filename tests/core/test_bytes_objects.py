# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.column import Strings, bytes_objects


def spans(between: list[bytes], texts: list[bytes]) -> tuple[Any, Any, Any]:
    """The texts with something before each, as bytes, starts and sizes."""
    data, starts = b"", []
    for before, text in zip(between, texts, strict=True):
        starts.append(len(data) + len(before))
        data += before + text
    return np.frombuffer(data, np.uint8), np.array(starts, np.int64), np.array(list(map(len, texts)), np.int64)


TEXTS = st.lists(st.tuples(st.sampled_from([b"", b"\n", b"\r\n", b"---"]), st.binary(max_size=5)), max_size=20)


@given(TEXTS, st.booleans(), st.randoms())
def test_the_objects_are_those_of_slicing(parts: list[tuple[bytes, bytes]], mixed: bool, random: Any) -> None:
    texts = [text for _, text in parts] * 40  # many, for few are sliced in Python
    data, starts, sizes = spans([between for between, _ in parts] * 40, texts)
    order = np.arange(len(texts))
    if mixed:
        order = np.array(random.sample(range(len(texts)), len(texts)), np.int64)
    column = Strings(data, starts[order], sizes[order])
    want = [texts[i] for i in order]
    assert column.objects().tolist() == want
    assert list(column.rows(1, len(want), 3).values()) == want[1::3]
    if not mixed and b"---" not in [between for between, _ in parts]:
        made = bytes_objects(data, starts, sizes)
        assert made is not None
        assert made.tolist() == want


def test_what_lies_outside_or_apart_is_left_to_others() -> None:
    data = np.zeros(4, np.uint8)
    for starts, sizes in (([-1], [2]), ([3], [2]), ([1], [-1]), ([0, 3], [0, 1]), ([1, 0], [1, 1])):
        assert bytes_objects(data, np.array(starts), np.array(sizes)) is None
