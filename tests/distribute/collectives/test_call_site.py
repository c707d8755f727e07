# SPDX-License-Identifier: Apache-2.0
"""Where in a program a call is made, and which paths lead there."""

import runpy
import textwrap
from pathlib import Path
from typing import Any

import pytest

from distinput.distribute.core.rendezvous import UNKNOWN, CallPaths, CallSite, call_site

PROGRAM = """
from distinput.distribute.core.rendezvous import call_site


def metric():
    return call_site()


def step():
    return metric()


def main():
    return [step() for _ in range(2)] + [
        step(),
    ]


sites = main()
again = main()
"""


def sites(folder: Path, program: str = PROGRAM) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    file = folder / "train.py"
    file.write_text(textwrap.dedent(program))
    return runpy.run_path(str(file))


def test_the_path_tells_what_the_near_place_does_not(tmp_path: Path) -> None:
    first, second, third = sites(tmp_path)["sites"]
    assert first == second
    assert first.near == third.near
    assert first.path != third.path
    assert str(first).startswith("train.py:6 in metric, called from train.py:10 in step, called from train.py:14 in ")


def test_a_place_is_the_same_in_another_folder(tmp_path: Path) -> None:
    one, other = sites(tmp_path / "a")["sites"], sites(tmp_path / "b")["sites"]
    assert [(site.near, site.path) for site in one] == [(site.near, site.path) for site in other]
    moved = sites(tmp_path / "b", "\n" + PROGRAM)["sites"]
    assert moved[0].near != one[0].near


def test_at_most_four_places_are_looked_at(tmp_path: Path) -> None:
    deep = "from distinput.distribute.core.rendezvous import call_site\n\n\ndef down(n):\n"
    deep += "    return call_site() if n == 0 else down(n - 1)\n\n\nsite = down(10)\nfurther = down(20)\n"
    found = sites(tmp_path, deep)
    assert len(found["site"].places) == 4
    assert found["site"] == found["further"]


def test_what_was_typed_in_has_no_place() -> None:
    names: dict[str, Any] = {"call_site": call_site}
    exec("def typed():\n    return call_site()\nsite = typed()", names)
    assert names["site"] is UNKNOWN
    assert (UNKNOWN.near, UNKNOWN.path, str(UNKNOWN)) == (0, 0, "")


def test_the_standard_library_is_skipped(tmp_path: Path) -> None:
    program = """
    from functools import reduce
    from distinput.distribute.core.rendezvous import call_site

    def metric(*_):
        return call_site()

    site = reduce(metric, [1, 2])
    import contextlib
    with contextlib.ExitStack() as stack:
        found = []
        stack.callback(lambda: found.append(metric()))
    """
    found = sites(tmp_path, program)
    assert [name for _, name, _ in found["site"].places] == ["metric", "<module>"]
    assert [name for _, name, _ in found["found"][0].places] == ["metric", "<lambda>", "<module>"]


def places(*paths: int, near: int = 1) -> list[tuple[int, int]]:
    return [(near, path) for path in paths]


def test_the_same_workers_may_always_come_by_a_path_of_their_own() -> None:
    paths = CallPaths(one_place=True)
    for _ in range(3):
        assert paths.difference(places(5, 6, 6)) == ""
    assert paths.difference(places(7, 7, 7)) == ""


def test_other_workers_on_a_known_path_are_out_of_step() -> None:
    paths = CallPaths(one_place=False)
    assert paths.difference(places(5, 6)) == ""
    assert "by other paths through the program than before" in paths.difference(places(6, 5))


def test_unequal_places_are_an_error_only_where_one_place_is_asked_for() -> None:
    unequal = [(1, 5), (2, 6)]
    assert "at different places of the program" in CallPaths(one_place=True).difference(unequal)
    assert CallPaths(one_place=False).difference(unequal) == ""


@pytest.mark.parametrize("unknown", [[(0, 0), (0, 0)], [(1, 5), (0, 0)]])
def test_unknown_places_are_not_compared(unknown: list[tuple[int, int]]) -> None:
    paths = CallPaths(one_place=True)
    assert paths.difference(unknown) == ""
    assert paths.difference(unknown[::-1]) == ""


def test_a_site_says_where_it_is() -> None:
    site = CallSite(1, 2, (("/a/train.py", "Model.fit.<locals>.step", 3), ("/b/main.py", "<module>", 9)))
    assert str(site) == "train.py:3 in step, called from main.py:9 in <module>"
