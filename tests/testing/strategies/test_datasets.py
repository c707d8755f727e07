# SPDX-License-Identifier: Apache-2.0
"""Random datasets."""

from hypothesis import given, settings

from distinput.data.dataset import Dataset
from distinput.testing.strategies import datasets
from distinput.values.spec import TensorSpec
from tests.depth import cases


@settings(max_examples=cases(5, 100))
@given(datasets(most_ops=1, batched=True))
def test_batched_datasets_can_be_taken_apart(dataset: Dataset) -> None:
    dataset.unbatch().take(2).to_list()


@settings(max_examples=cases(8, 100))
@given(datasets(most_ops=2, tensors=True))
def test_tensors_are_tensors(dataset: Dataset) -> None:
    assert all(isinstance(leaf, TensorSpec) for leaf in dataset.node.spec.leaves)
