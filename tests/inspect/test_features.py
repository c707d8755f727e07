# SPDX-License-Identifier: Apache-2.0
"""The features that are found are those that parse_example reads."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.inspect.examples import FeatureFound, as_code, declaration, features_of
from distinput.inspect.files import open_files

messages = st.lists(
    st.fixed_dictionaries(
        {}, optional={"a": st.lists(st.integers(0, 9), max_size=3), "b": st.lists(st.binary(), max_size=2)}
    ),
    min_size=1,
    max_size=8,
)


def features_in(folder: Path, serialized: Iterable[bytes]) -> tuple[dict[str, FeatureFound], int]:
    """What is found in a file of these messages."""
    path = str(folder / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        for message in serialized:
            writer.write(message)
    return features_of(open_files(path))


@given(messages)
def test_every_message_can_be_parsed_with_them(
    tmp_path_factory: pytest.TempPathFactory, given: list[dict[str, Any]]
) -> None:
    serialized = [di.io.encode_example(message) for message in given]
    found, number = features_in(tmp_path_factory.mktemp("examples"), serialized)
    assert number == len(given)
    if not found:
        return
    declared = {key: declaration(feature, number) for key, feature in found.items()}
    for message, row in zip(given, [di.io.parse_single_example(one, declared) for one in serialized], strict=True):
        for key in declared:
            assert np.asarray(row[key]).reshape(-1).tolist() == message.get(key, [])


def test_shapes_and_code(tmp_path: Path) -> None:
    one = {"s": np.array([1]), "v": np.array([1.0, 2.0], np.float32), "n": None, "m": np.array([1])}
    two = {"s": np.array([2]), "v": np.array([3.0, 4.0], np.float32), "m": np.array([b"x"], object)}
    found, number = features_in(tmp_path, map(di.io.encode_example, (one, two)))
    assert {key: feature.shape(number) for key, feature in found.items()} == {"m": (), "n": (None,), "s": (), "v": (2,)}
    assert found["m"].dtype == "mixed"
    assert found["n"] == FeatureFound()
    assert as_code(found["v"], number) == 'di.io.FixedLenFeature([2], "float32")'
    assert as_code(found["n"], number) == 'di.io.VarLenFeature("int64")'
    for key in ("s", "v", "n"):
        made = eval(as_code(found[key], number), {"di": di})  # noqa: S307 - it is Python for users to paste
        assert made == declaration(found[key], number)
