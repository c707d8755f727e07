# SPDX-License-Identifier: Apache-2.0
"""The laws of the two shuffles."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distinput.kernels import random_orders

KEYS = st.integers(0, 2**64 - 1)
permute = random_orders.permute.compiled(timeout=300)
slots_at = random_orders.slots_at.compiled(timeout=300)


def replay(key: int, buffer: int, total: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The rows sent, and what is in the buffer before each step, by the definition alone."""
    slots, sent, contents = list(range(min(buffer, total))), [], []
    for position in range(total):
        contents.append(np.array(slots))
        steady = position + buffer < total
        count = buffer if steady else total - position
        slot = int(random_orders.picks_reference(key, np.array([position]), count)[0])
        sent.append(slots[slot])
        if steady:
            slots[slot] = position + buffer
        else:
            slots[slot] = slots[count - 1]
            slots.pop()
    return np.array(sent), [*contents, np.array([])]


def run(key: int, buffer: int, total: int, cuts: list[int]) -> np.ndarray:
    """The rows sent by the kernels, called for a few steps at a time."""
    slots, out, position = np.arange(buffer), np.full(total, -1), 0
    for stop in sorted({*cuts, max(0, total - buffer), total}):
        if stop + buffer <= total:
            incoming = np.arange(position + buffer, stop + buffer)
            random_orders.shuffle_steps.compiled()(slots, key, position, incoming, out[position:stop])
        else:
            sent = random_orders.drain_steps.compiled()(slots, key, position, total - position, out[position:stop])
            assert sent == stop - position
        position = stop
    return out


@settings(max_examples=100, deadline=None)
@given(key=KEYS, buffer=st.integers(1, 40), total=st.integers(0, 90), data=st.data())
def test_a_buffered_shuffle_is_its_definition(key: int, buffer: int, total: int, data: st.DataObject) -> None:
    sent, contents = replay(key, buffer, total)
    cuts = data.draw(st.lists(st.integers(0, total), max_size=5))
    np.testing.assert_array_equal(run(key, buffer, total, cuts), sent)
    assert sorted(sent) == list(range(total))
    assert all(row < position + buffer for position, row in enumerate(sent))
    for position, content in enumerate(contents):
        slots = np.empty(buffer, np.int64)
        assert slots_at(key, position, total, slots) == content.size
        np.testing.assert_array_equal(slots[: content.size], content)
        assert np.all(slots[content.size :] == -1)
        if position + buffer <= total:
            assert slots_at(key, position, -1, slots) == buffer
            np.testing.assert_array_equal(slots, content)


def test_a_buffer_of_one_keeps_the_order() -> None:
    assert run(7, 1, 20, [5]).tolist() == list(range(20))


def test_slots_far_from_the_start_are_found_without_a_replay() -> None:
    slots = np.empty(1000, np.int64)
    position = 2**60
    slots_at(1, position, -1, slots)
    assert slots.min() >= position - 10**5
    assert slots.max() == position + 999
    assert np.unique(slots).size == slots.size


def test_the_picks_are_spread_evenly() -> None:
    picks = random_orders.picks_reference(3, np.arange(200_000), 1000)
    counts = np.bincount(picks, minlength=1000)
    assert 850 < np.sum((counts - 200) ** 2 / 200) < 1150  # chi-square with 999 degrees of freedom: 999 +- 45


def test_picks_take_the_upper_half_of_a_product_exactly() -> None:
    mixed = random_orders.mix_reference(np.uint64(2**64 - 1) + np.arange(50, dtype=np.uint64) * random_orders.STEP)
    for n in (1, 3, 2**31 + 1, 2**40 + 12345, 2**62):
        expected = [int(word) * n >> 64 for word in mixed]
        assert random_orders.picks_reference(2**64 - 1, np.arange(50), n).tolist() == expected


def permuted(n: int, key: int) -> np.ndarray:
    out = np.empty(n, np.int64)
    permute(np.arange(n), key, n, out)
    return out


def test_permute_is_a_permutation_of_every_size() -> None:
    for n in range(2001):
        assert np.array_equal(np.sort(permuted(n, n * 977)), np.arange(n)), n


@pytest.mark.parametrize("n", [2**62, 10**18 + 3, 2**40, 10**12])
def test_permute_of_huge_ranges_stays_inside_and_tells_rows_apart(n: int) -> None:
    rows = np.concatenate((np.arange(5000), n - 1 - np.arange(5000)))
    out = np.empty(rows.size, np.int64)
    permute(rows, 5, n, out)
    assert out.min() >= 0
    assert out.max() < n
    assert np.unique(out).size == rows.size


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_all_small_permutations_are_as_likely(n: int) -> None:
    keys = 12_000
    counts = Counter(tuple(permuted(n, key).tolist()) for key in range(keys))
    assert set(counts) == set(permutations(range(n)))
    expected = keys / len(counts)
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    freedom = len(counts) - 1
    assert chi_square <= freedom + 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("n", [6, 63, 256, 257, 300])
def test_a_row_goes_everywhere_as_likely_and_pairs_are_not_tied(n: int) -> None:
    keys = 20_000
    orders = np.array([permuted(n, key) for key in range(keys)])
    for place in (0, 1, n // 2, n - 1):
        expected = keys / n
        chi_square = np.sum((np.bincount(orders[:, place], minlength=n) - expected) ** 2 / expected)
        assert abs(chi_square - (n - 1)) < 5 * (2 * (n - 1)) ** 0.5
    for other in (1, n // 2, n - 1):
        apart = np.bincount((orders[:, other] - orders[:, 0]) % n, minlength=n)
        assert apart[0] == 0
        chi_square = np.sum((apart[1:] - keys / (n - 1)) ** 2 / (keys / (n - 1)))
        assert abs(chi_square - (n - 2)) < 5 * (2 * (n - 2)) ** 0.5


def test_keys_of_numpy_and_of_python_are_the_same() -> None:
    for key in (0, 5, 2**63, 2**64 - 1):
        out = np.empty(1000, np.int64)
        permute(np.arange(1000), np.uint64(key), 1000, out)
        np.testing.assert_array_equal(out, permuted(1000, key))


def test_orders_never_change() -> None:
    # A saved position would otherwise go on in another order.
    assert permuted(8, 42).tolist() == [2, 3, 5, 4, 7, 0, 6, 1]
    assert permuted(1000, 42)[:6].tolist() == [781, 876, 494, 711, 77, 108]
    assert run(42, 5, 12, []).tolist() == [3, 5, 0, 1, 8, 7, 4, 9, 6, 11, 2, 10]
