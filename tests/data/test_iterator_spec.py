# SPDX-License-Identifier: Apache-2.0
"""The specs of iterators and of optional values."""

import distinput as di

NUMBER = di.TensorSpec([], "int64")
RANGE = di.data.Dataset.range(3)


def test_they_are_made_of_values() -> None:
    iterator = iter(RANGE)
    assert di.data.IteratorSpec.from_value(iterator) == di.data.IteratorSpec(NUMBER)
    assert di.OptionalSpec.from_value(iterator.get_next_as_optional()) == di.OptionalSpec(NUMBER)
    assert (di.data.IteratorSpec.value_type, di.OptionalSpec.value_type) == (
        di.data.Iterator,
        di.data.experimental.Optional,
    )


def test_they_are_compared_by_their_elements() -> None:
    spec = di.data.IteratorSpec(NUMBER)
    assert spec.is_compatible_with(iter(RANGE))
    assert not spec.is_compatible_with(iter(RANGE.batch(2)))
    assert not spec.is_compatible_with(RANGE)
    assert not spec.is_compatible_with(di.OptionalSpec(NUMBER))
    assert spec.is_subtype_of(spec)
    vector = di.data.IteratorSpec(di.TensorSpec([2], "int64"))
    both = vector.most_specific_common_supertype([di.data.IteratorSpec(di.TensorSpec([3], "int64"))])
    assert both == di.data.IteratorSpec(di.TensorSpec([None], "int64"))
    assert vector.most_specific_common_supertype([di.OptionalSpec(NUMBER)]) is None
