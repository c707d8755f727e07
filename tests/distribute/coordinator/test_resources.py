# SPDX-License-Identifier: Apache-2.0
"""The table of per-worker values."""

from distinput.distribute.coordinator.closures import Resource, Resources


def test_numbers_are_not_used_again() -> None:
    resources = Resources()
    first = resources.add(Resource("a", None))
    resources.drop(first)
    second = resources.add(Resource("b", None))
    assert first != second
    assert {key: resource.name for key, resource in resources.all().items()} == {second: "b"}


def test_the_version_tells_of_every_change() -> None:
    resources = Resources()
    seen = [resources.version]
    key = resources.add(Resource("a", None))
    seen.append(resources.version)
    resources.drop(key)
    seen.append(resources.version)
    resources.drop(key)
    assert len(set(seen)) == 3


def test_what_was_read_is_a_copy() -> None:
    resources = Resources()
    known = resources.all()
    resources.add(Resource("a", None))
    assert not known
