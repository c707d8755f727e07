# SPDX-License-Identifier: Apache-2.0
"""Features of the messages of files: found as if each were decoded, and the record that does not fit is named."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError
from distinput.inspect import statistics
from distinput.inspect.examples import FeatureFound, features_of
from distinput.inspect.files import open_files
from tests.depth import cases


def features_in(messages: list[dict[str, Any]]) -> dict[str, FeatureFound]:
    """The features of decoded messages, looked at one by one."""
    found = {}
    for key in sorted(set().union(*messages)):
        values = [message[key] for message in messages if message.get(key) is not None]
        dtypes = [str(each.dtype) for place, each in enumerate(values) if len(each) or not place]
        sizes = [len(each) for each in values]
        dtype = dtypes[0] if len(set(dtypes)) == 1 else "mixed" if dtypes else "none"
        found[key] = FeatureFound(dtype, len(values), min(sizes, default=0), max(sizes, default=0))
    return found


lists = st.none() | st.lists(st.integers(0, 9), max_size=2) | st.lists(st.floats(0, 1, width=32), max_size=2)


@settings(max_examples=cases(20, 300))
@given(st.lists(st.dictionaries(st.sampled_from("ab"), lists), min_size=1, max_size=9), st.integers(1, 10) | st.none())
def test_features_are_those_of_decoded_messages(
    tmp_path_factory: pytest.TempPathFactory, given: list, most: int
) -> None:
    path = str(tmp_path_factory.mktemp("examples") / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        for message in given:
            writer.write(di.io.encode_example(message))
    looked = [di.io.decode_example(di.io.encode_example(message)) for message in given[:most]]
    assert features_of(open_files(path), most) == (features_in(looked), len(looked))


@pytest.mark.parametrize("fast", [True, False])
def test_a_record_that_is_no_message_is_named(tmp_path: Path, fast: bool) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        for number in range(20):
            writer.write(di.io.encode_example({"n": number}))
        writer.write(b"no message")
    with pytest.raises(DataLossError, match=r"a\.tfrecord: record 20 is not an Example: .*records='bytes'"):
        features_of(open_files(path), None if fast else 100)


def test_a_feature_that_changes_its_kind_is_named_with_its_record(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        for number in range(3000):
            writer.write(di.io.encode_example({"n": number if number < 2500 else float(number)}))
    with pytest.raises(DataLossError, match="record 2500: feature 'n' is float32, and int64 in a record before"):
        statistics(path)
