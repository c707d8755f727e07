# SPDX-License-Identifier: Apache-2.0
import pytest

import distinput as di
from distinput.errors import UnimplementedError

RANGE = di.data.Dataset.range


def test_the_input_is_read_once() -> None:
    seen = []

    def see(x: int) -> int:
        seen.append(int(x))
        return x

    dataset = RANGE(3).map(see, output_signature=di.TensorSpec([], "int64")).cache()
    assert dataset.to_list() == dataset.to_list() == [0, 1, 2]
    assert seen == [0, 1, 2]


def test_an_incomplete_pass_is_not_kept() -> None:
    dataset = RANGE(5).shuffle(5).cache()
    with iter(dataset) as it:
        next(it)
    assert sorted(dataset.to_list()) == [0, 1, 2, 3, 4]


def test_later_passes_keep_the_first_order() -> None:
    dataset = RANGE(50).shuffle(50, seed=1).cache()
    assert dataset.to_list() == dataset.to_list()


def test_a_file_name_is_refused() -> None:
    with pytest.raises(
        UnimplementedError, match=r"cache: a cache on disk \('x'\) does not exist yet; leave the name out"
    ):
        RANGE(3).cache("x")
