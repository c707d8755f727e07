# SPDX-License-Identifier: Apache-2.0
import pytest

from distinput.distribute.input.comparison import NameList, names_said


def said(here: list[str], there: list[str], sizes: tuple[list[int], list[int]] | None = None) -> list[str]:
    mine, theirs = sizes or ([1] * len(here), [1] * len(there))
    return list(names_said(NameList(here, mine, len(here)), NameList(there, theirs, len(there)), "worker 0"))


def test_a_file_that_one_worker_lacks() -> None:
    assert said(["/data/a", "/data/c"], ["/data/a", "/data/b", "/data/c"]) == [
        "2 files, worker 0: 3 files: b is missing"
    ]


def test_a_file_that_only_one_worker_has() -> None:
    assert said(["/data/a", "/data/b"], ["/data/a"]) == ["2 files, worker 0: 1 file: b is not there on worker 0"]


def test_of_many_missing_files_some_are_named() -> None:
    (text,) = said(["/data/a0"], [f"/data/a{i}" for i in range(6)])
    assert text == "1 file, worker 0: 6 files: a1, a2, a3 and 2 more are missing"


def test_folders_in_which_the_machines_have_them_do_not_count() -> None:
    here, there = ["/one/disk/set/x/1", "/one/disk/set/x/2"], ["/mnt/set/x/1", "/mnt/set/y/3"]
    assert said(here, there) == ["2 files, worker 0: 2 files: y/3 is missing, x/2 is not there on worker 0"]
    assert said(here, ["/mnt/set/x/2", "/mnt/set/x/1"])[0].startswith("the same 2 files in another order")


def test_another_order_names_the_first_file_in_another_place() -> None:
    assert said(["/a/1", "/a/3", "/a/2"], ["/b/1", "/b/2", "/b/3"]) == [
        "the same 3 files in another order: file 2 is 3, worker 0: 2; sort them on every worker"
    ]


@pytest.mark.parametrize(
    "mine, theirs, text",
    [(5, 7, "2 has 5 bytes, worker 0: has 7 bytes"), (-1, 7, "2 cannot be read, worker 0: has 7 bytes")],
)
def test_a_file_of_another_size(mine: int, theirs: int, text: str) -> None:
    assert said(["/a/1", "/a/2"], ["/a/1", "/a/2"], ([1, mine], [1, theirs])) == [text]


def test_equal_names_and_sizes_leave_the_contents() -> None:
    assert said(["/a/1"], ["/a/1"]) == ["its files are others than those of worker 0, or are being written"]
