# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError, NoMatchError
from distinput.files.paths import expand_braces, list_matching


@pytest.mark.parametrize(
    "pattern, names",
    [
        ("a", ["a"]),
        ("", [""]),
        ("{a,b}", ["a", "b"]),
        ("{a,}x", ["ax", "x"]),
        ("{0..3}", ["0", "1", "2", "3"]),
        ("{3..0..2}", ["3", "1"]),
        ("{-1..1}", ["-1", "0", "1"]),
        ("{-01..1}", ["-01", "000", "001"]),
        ("{098..101}", ["098", "099", "100", "101"]),
        ("{a,b{0..1}}-{x,y}", ["a-x", "a-y", "b0-x", "b0-y", "b1-x", "b1-y"]),
        ("{}{a}{1..}{", ["{}{a}{1..}{"]),
        ("{a,b", ["{a,b"]),
        ("a}b", ["a}b"]),
        ("x{1,2}/**/*.t{ar,gz}", ["x1/**/*.tar", "x1/**/*.tgz", "x2/**/*.tar", "x2/**/*.tgz"]),
    ],
)
def test_braces_expand_to_names(pattern: str, names: list[str]) -> None:
    assert expand_braces(pattern) == names


@given(st.text("ab{},.0", max_size=12))
def test_any_text_stands_for_something(pattern: str) -> None:
    names = expand_braces(pattern)
    assert names
    if "{" not in pattern:
        assert names == [pattern]


@pytest.mark.parametrize("pattern", ["{0..9999999}", "{0..999}{0..999}{0..999}", "{0..5..0}"])
def test_too_many_names_and_steps_of_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"more than 1000000 names|must not be 0"):
        expand_braces(pattern)


def test_files_that_braces_name_must_all_be_there(tmp_path: Path) -> None:
    for n in (0, 1, 3):
        (tmp_path / f"part-{n:02d}.txt").write_text(f"{n}\n")
    names = list_matching(f"{tmp_path}/part-{{00..01}}.txt")
    assert di.data.TextLineDataset(names).to_list() == [b"0", b"1"]
    with pytest.raises(NoMatchError, match=r"part-02.txt, one of 1 missing of .*part-\{00\.\.03\}.txt"):
        list_matching(f"{tmp_path}/part-{{00..03}}.txt")
    assert len(list_matching(f"{tmp_path}/part-{{00..03}}.t*")) == 3  # patterns match what is there


def test_a_file_that_has_braces_in_its_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "a{0..1}.txt").write_text("x")
    (tmp_path / "a0.txt").write_text("y")
    assert list_matching(f"{tmp_path}/a{{0..1}}.txt") == [f"{tmp_path}/a{{0..1}}.txt"]


def test_files_of_a_store_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    system = fsspec.filesystem("memory")
    for n in range(6):
        system.pipe(f"/braces/{n}.txt", b"x")
    asked = []
    monkeypatch.setattr(type(system), "exists", lambda self, path, **_: asked.append(path) or True)
    assert list_matching("memory://braces/{0..5}.txt") == [f"memory://braces/{n}.txt" for n in range(6)]
    assert asked == []
    with pytest.raises(NoMatchError, match=r"memory://braces/6.txt, one of 2 missing"):
        list_matching("memory://braces/{0..7}.txt")
