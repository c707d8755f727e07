# SPDX-License-Identifier: Apache-2.0
"""What was used last stays, as far as the memory goes."""

from hypothesis import given
from hypothesis import strategies as st

from distinput.formats.tables import LruCache


@given(st.lists(st.tuples(st.sampled_from("pg"), st.integers(0, 5), st.integers(0, 9)), max_size=30))
def test_it_holds_the_latest_that_fit(steps: list[tuple[str, int, int]]) -> None:
    cache: LruCache[int] = LruCache(12)
    latest: list[tuple[int, int]] = []  # keys with their bytes, the latest last
    for kind, key, nbytes in steps:
        known = dict(latest)
        if kind == "g":
            assert cache.get(key) == (key * 10 if key in known else None)
            nbytes = known.get(key, -1)
        else:
            cache.put(key, key * 10, nbytes)
        if nbytes >= 0:
            latest = [each for each in latest if each[0] != key] + [(key, nbytes)]
            while sum(size for _, size in latest) > 12 and len(latest) > 1:
                latest.pop(0)
        assert len(cache) == len(latest)
    assert [cache.get(key) for key, _ in latest] == [key * 10 for key, _ in latest]


def test_a_single_thing_may_take_more() -> None:
    cache: LruCache[str] = LruCache(10)
    cache.put("a", "large", 99)
    assert cache.get("a") == "large"
    cache.put("b", "small", 1)
    assert (cache.get("a"), cache.get("b")) == (None, "small")
