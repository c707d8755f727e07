# SPDX-License-Identifier: Apache-2.0
"""Slurm's hostlists and counts, written out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.cluster.slurm import expand_counts, expand_hostlist


@pytest.mark.parametrize(
    "hostlist, hosts",
    [
        ("", []),
        ("n1", ["n1"]),
        ("n1,n2", ["n1", "n2"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("n[3,1,7-8],login", ["n3", "n1", "n7", "n8", "login"]),
        ("rack[1-2]-n[01-02]", ["rack1-n01", "rack1-n02", "rack2-n01", "rack2-n02"]),
        ("n[1-2]-ib,m[5]", ["n1-ib", "n2-ib", "m5"]),
        ("[1-2][3-4]", ["13", "14", "23", "24"]),
        ("n[1-2].cluster.local", ["n1.cluster.local", "n2.cluster.local"]),
    ],
)
def test_hosts_come_in_slurms_order(hostlist: str, hosts: list[str]) -> None:
    assert expand_hostlist(hostlist) == hosts


texts = st.text("ab-.", max_size=3)
ranges = st.tuples(st.integers(0, 120), st.integers(0, 4), st.integers(0, 4))  # (first, more, leading zeros)
brackets = st.lists(ranges, min_size=1, max_size=3)
names = st.tuples(st.text("ab", min_size=1, max_size=3), st.lists(st.tuples(brackets, texts), max_size=3))


def written(name: tuple[str, list[tuple[list[tuple[int, int, int]], str]]]) -> str:
    prefix, parts = name
    out = prefix
    for inside, suffix in parts:
        pieces = []
        for first, more, zeros in inside:
            width = zeros + len(str(first))
            pieces.append(f"{first:0{width}d}" + (f"-{first + more:0{width}d}" if more else ""))
        out += f"[{','.join(pieces)}]{suffix}"
    return out


def brute_force(name: str) -> list[str]:
    """One host name after the other: the first bracket is replaced by each of its numbers, then the rest is expanded."""
    match = re.search(r"\[([^\]]*)\]", name)
    if match is None:
        return [name]
    hosts = []
    for piece in match[1].split(","):
        first, _, last = piece.partition("-")
        number = int(first)
        while number <= int(last or first):
            hosts += brute_force(name[: match.start()] + str(number).rjust(len(first), "0") + name[match.end() :])
            number += 1
    return hosts


@given(st.lists(names, min_size=1, max_size=4))
def test_expansion_is_that_of_brute_force(
    given_names: list[tuple[str, list[tuple[list[tuple[int, int, int]], str]]]],
) -> None:
    hostlist = ",".join(map(written, given_names))
    assert expand_hostlist(hostlist) == [host for name in given_names for host in brute_force(written(name))]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=5))
def test_counts_are_repeated(runs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in runs)
    assert expand_counts(text) == [count for count, times in runs for _ in range(times)]


@pytest.mark.parametrize(
    "hostlist, says",
    [
        ("n[1-2", "brackets do not match"),
        ("n1]", "brackets do not match"),
        ("n[1[2]]", "brackets do not match"),
        ("n[]", "'' is not a number nor a range"),
        ("n[a-b]", "'a-b' is not a number nor a range"),
        ("n[1-2-3]", "'1-2-3' is not a number nor a range"),
        ("n[3-1]", "the range '3-1' runs backwards"),
        ("n1,,n2", "a name between two commas is empty"),
        ("n1,", "a name between two commas is empty"),
        ("n[1-99999999999]", "more than 1000000 hosts"),
        ("n[1-9999][1-9999]", "more than 1000000 hosts"),
    ],
)
def test_a_wrong_hostlist_is_shown(hostlist: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as error:
        expand_hostlist(hostlist)
    assert repr(hostlist) in str(error.value)


@pytest.mark.parametrize("counts", ["", "2(x", "x", "2,,1", "1(x99999999999)"])
def test_wrong_counts_are_shown(counts: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(counts))):
        expand_counts(counts)
