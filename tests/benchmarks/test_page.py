# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.figures import goals
from benchmarks.page import main, page
from benchmarks.plot import Bar, bars, lines

SVG = "{http://www.w3.org/2000/svg}"
MACHINE = {
    "processor": "a processor",
    "cores": 2,
    "memory": 8.0,
    "system": "Linux 6",
    "architecture": "x86_64",
    "python": "3.11",
    "packages": {"numpy": "2.0"},
}


def contender(name: str, kind: str, seconds: float, **more: Any) -> dict[str, Any]:
    usual = {"reach": None, "reach_cpu": None, "most": {}, "facts": {}}
    return {"name": name, "kind": kind, "seconds": [seconds] * 3, "cpu": [seconds] * 3, **usual, **more}


def result(name: str, *cases: tuple[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "benchmark": name,
        "question": f"the question of {name}",
        "notes": f"What limits {name}.\n",
        "date": "2024-06-13T10:00+00:00",
        "command": f"python benchmarks/run.py {name}",
        "machine": MACHINE,
        "results": [
            {"case": case, "units": {"element": 1000}, "rounds": 3, "load": [0.1, 0.3], "contenders": contenders}
            for case, contenders in cases
        ],
    }


SHUFFLE = result(
    "shuffle",
    (
        "buffer",
        [
            contender("distinput", "ours", 1.0, facts={"bytes": 2000.0}, most={"bytes": 1024, "seconds": 0.01}),
            contender("take", "limit", 0.5, reach=0.9),
            contender("take, cold", "limit", 0.6),
            contender("tf.data", "peer", 30.0, reach=20.0, reach_cpu=40.0),
            contender("torch", "peer", 8.0, reach=20.0),
            contender("grain", "peer", 15.0, reach=16.0),
        ],
    ),
)
GROWTH = result(
    "growth",
    (
        "elements: range & batch",
        [
            contender("10,000 elements", "ours", 1.0),
            contender("1,000 elements", "limit", 2.0),
            contender("100 elements", "limit", 4.0),
        ],
    ),
    ("place: range", [contender("last tenth", "ours", 1.0), contender("first tenth", "limit", 1.0)]),
)


def test_a_page_has_the_machine_the_commands_and_the_tables() -> None:
    text, plots = page([SHUFFLE, GROWTH])
    assert "Machine: a processor, 2 cores, 8.0 GiB of memory, Linux 6 (x86_64), Python 3.11; numpy 2.0." in text
    assert "```\npython benchmarks/run.py shuffle\n```\n\n2024-06-13 10:00 UTC, load of the machine 0.1 to 0.3" in text
    assert (
        "| buffer | 1 ms/element | tf.data (peer) | 30 ms/element | 30x | 30x .. 30x | 30x | 20x yes, 40x of cpu **no** |"
        in text
    )
    assert "* buffer: ours bytes 2,000, to reach at most 1,024 **no**" in text
    assert "* buffer: ours 1 ms/element, to reach at most 10 ms/element yes" in text
    assert "\n\nWhat limits shuffle.\n\n## growth\n" in text
    assert list(plots) == ["shuffle.svg", "growth.svg"]
    assert all(f"](performance/{name})" in text for name in plots)


def test_what_is_reached_comes_first_and_then_what_falls_short() -> None:
    text, _ = page([SHUFFLE])
    reached, short = text.index("## What is reached"), text.index("## What falls short")
    assert reached < short < text.index("## shuffle")
    assert "Of 7 targets, 2 are reached in this run." in text[reached:short]
    assert [line for line in text[reached:short].splitlines() if line.startswith("| [")] == [
        "| [shuffle](#shuffle) | tf.data | 1 | 30x |",
        "| [shuffle](#shuffle) | torch | 1 | 8x |",
        "| [shuffle](#shuffle) | grain | 1 | 15x |",
    ]
    assert "5 targets are missed; in 2 of them the fastest limit replaces the target." in text[short:]
    overview = text[text.index("| benchmark | case") : text.index("## shuffle")]
    assert [line.split(" | ")[2:] for line in overview.splitlines()[2:] if line] == [
        ["take", "0.5x", "the limit, 0.833x (for 0.9x)", "take, cold: 0.833x |"],
        ["tf.data", "30x of cpu", "40x of cpu", "take: 60x; take, cold: 50x |"],
        ["torch", "8x", "the limit, 16x (for 20x)", "take: 16x; take, cold: 13.3x |"],
        ["grain", "15x", "16x", "take: 30x; take, cold: 25x |"],
        ["ours", "bytes 2,000", "at most 1,024", " |"],
    ]


def test_a_target_beyond_the_fastest_limit_is_reached_with_the_limit() -> None:
    def reached(seconds: float) -> tuple[bool, str]:
        contenders = [
            contender("distinput", "ours", seconds),
            contender("take", "limit", 1.0),
            contender("torch", "peer", 4.0, reach=5.0),
        ]
        (goal,) = goals(result("batch", ("few", contenders))["results"][0])
        return goal.reached, goal.wanted

    assert reached(1.0) == (True, "the limit, 4x (for 5x)")
    assert reached(1.25) == (False, "the limit, 4x (for 5x)")


def test_ratios_of_several_cases_are_a_range() -> None:
    ours, fast, slow = (
        contender("distinput", "ours", 1.0),
        contender("torch", "peer", 2.0),
        contender("torch", "peer", 9.0),
    )
    text, _ = page([result("batch", ("few", [ours, fast]), ("many", [ours, slow]))])
    assert "| [batch](#batch) | torch | 2 | 2x to 9x |" in text
    assert "## What falls short" not in text


def test_the_plot_of_growth_has_a_line_for_each_work() -> None:
    _, plots = page([GROWTH])
    root = ET.fromstring(plots["growth.svg"])
    (line,) = root.iter(f"{SVG}polyline")
    places = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert places == sorted(places)  # from few elements to many, and from expensive to cheap, which is further down
    assert "range & batch" in [text.text for text in root.iter(f"{SVG}text")]


def test_a_bar_goes_from_one_to_the_ratio() -> None:
    drawn = ET.fromstring(bars("title", [Bar("a", "peer", 10, 9, 11), Bar("b", "limit", 0.1, 0.1, 0.1, 0.5)]))
    _, right, left = drawn.iter(f"{SVG}rect")
    one = float(right.attrib["x"])
    assert float(left.attrib["x"]) + float(left.attrib["width"]) == pytest.approx(one)
    assert float(left.attrib["width"]) == pytest.approx(
        float(right.attrib["width"]), abs=0.2
    )  # a tenth is as far as ten times


def test_names_of_lines_do_not_cover_each_other() -> None:
    drawn = ET.fromstring(lines("title", {"a": [(1, 1), (10, 1)], "b": [(1, 1), (10, 1)]}, "x", "y"))
    heights = [float(text.attrib["y"]) for text in drawn.iter(f"{SVG}text") if text.text in ("a", "b")]
    assert abs(heights[0] - heights[1]) >= 12


def test_the_command_writes_the_page_and_its_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shuffle.json").write_text(json.dumps(SHUFFLE), encoding="utf-8")
    made = tmp_path / "docs" / "page.md"
    assert main(["--results", str(tmp_path), "--page", str(made)]) == 0
    assert "1 plots, from 1 of" in capsys.readouterr().out
    assert made.read_text(encoding="utf-8").startswith("# Performance\n")
    assert ET.fromstring((tmp_path / "docs" / "performance" / "shuffle.svg").read_text(encoding="utf-8")).tag


def test_without_results_the_command_says_how_to_make_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--results", str(tmp_path)])
    assert "`python benchmarks/run.py` makes them" in capsys.readouterr().err
