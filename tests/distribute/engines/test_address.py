# SPDX-License-Identifier: Apache-2.0
"""The place of a worker in a job."""

import pytest

from distinput.distribute.engines.background import check_rank_and_size, local_address, split_address


@pytest.mark.parametrize("address", ["", "host", "host:", ":80", "host:x", "host:70000", "host:-1"])
def test_what_is_not_an_address(address: str) -> None:
    with pytest.raises(ValueError, match="must be host:port"):
        split_address(address)


def test_the_own_address_towards_this_machine() -> None:
    assert local_address("127.0.0.1", 9) == "127.0.0.1"
    assert local_address("no-such-host.invalid", 9) is None


def test_rank_and_size_may_be_left_out_or_equal() -> None:
    check_rank_and_size("mpiexec", (None, None), (1, 3))
    check_rank_and_size("mpiexec", (1, 3), (1, 3))


@pytest.mark.parametrize("given, says", [((0, 3), "with rank 1, got rank 0"), ((1, 2), "with size 3, got size 2")])
def test_another_rank_or_size_is_an_error(given: tuple[int, int], says: str) -> None:
    with pytest.raises(ValueError, match=f"^mpiexec {says}; leave it out$"):
        check_rank_and_size("mpiexec", given, (1, 3))
