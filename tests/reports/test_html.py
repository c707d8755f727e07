# SPDX-License-Identifier: Apache-2.0
"""A report is one well-formed page that names every step, and its numbers are those of the pass."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from hypothesis import given, settings

import distinput as di
from distinput.data.recording import Recording, recorded
from distinput.plan.node import walk
from distinput.reports.html import page
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases
from tests.reports.pictures import HOSTILE, parsed, words_of

HTML, SVG = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2000/svg}"
RANGE = di.data.Dataset.range


def read(recording: Recording, num_workers: int = 2) -> Element:
    text = page(recording, num_workers)
    assert text.startswith("<!DOCTYPE html>\n")
    root = parsed(text.removeprefix("<!DOCTYPE html>\n"))
    assert root.tag == f"{HTML}html"
    return root


def numbers(root: Element) -> dict[str, Any]:
    script = root.find(f".//{HTML}script")
    assert script is not None
    assert script.attrib == {"type": "application/json", "id": "distinput"}
    found: dict[str, Any] = json.loads(script.text or "")
    return found


@settings(max_examples=cases(8, 200), deadline=None)
@given(pipelines())
def test_a_report_names_every_step_and_its_numbers_add_up(pipeline: Pipeline) -> None:
    recording = recorded(pipeline.build())
    root = read(recording)
    steps = list(walk(recording.dataset._runs().node))
    boxes = [words_of(box) for box in root.findall(f".//{SVG}svg[@class='di-graph']/{SVG}g")]
    for number, step in enumerate(steps):
        assert any(f" {box}".lstrip().startswith(f"{number}:{step.op} ") for box in boxes) or any(
            step is other for other in steps[:number]
        )
    told = numbers(root)
    assert told["delivered"] == recording.delivered == len(pipeline.elements)
    last = f"{len(steps) - 1}:{steps[-1].op}"
    if recording.delivered:
        assert told["steps"][last]["rows"] == recording.delivered
    for key, each in told["steps"].items():
        assert key.startswith("inner:") or each["seconds"] <= told["seconds"] + 1e-3, (
            "no step takes longer than the pass"
        )
    cells = {cell.text for cell in root.iter(f"{HTML}td")}
    assert {f"{each['rows']:,}" for each in told["steps"].values()} <= cells


@settings(max_examples=cases(12, 300), deadline=None)
@given(HOSTILE)
def test_names_cannot_break_out(name: str) -> None:
    def function(x: Any) -> Any:
        return x

    function.__qualname__ = name.encode("utf-8", "replace").decode()
    root = read(recorded(RANGE(4).map(function, name=name)))
    assert [element.attrib["type"] for element in root.iter(f"{HTML}script")] == ["application/json"]
    assert not any(key.startswith("on") for element in root.iter() for key in element.attrib)
    assert numbers(root)["delivered"] == 4


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = page(recorded(RANGE(100).shuffle(10).batch(4).prefetch(2)))
    root = parsed(text.removeprefix("<!DOCTYPE html>\n"))
    assert not any(key.split("}")[-1] in ("src", "href") for element in root.iter() for key in element.attrib)
    assert not re.search(r"url\(|@import", text)
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) == {
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/2000/svg",
    }


def test_it_says_what_is_slow_and_what_was_chosen() -> None:
    recording = recorded(RANGE(1000).map(lambda x: sum(range(300)) + x).batch(8))
    text = words_of(read(recording))
    assert recording.stats().bottleneck in text
    for heading in ("Steps", "Threads", "Memory", "Shards of 2 workers", "Pipeline"):
        assert heading in text
    assert "Shuffle" not in text
    assert "Shards" not in words_of(read(recording, num_workers=1))


@pytest.mark.parametrize("seconds, short", [(0.9, True), (1.1, False)])
def test_a_short_pass_says_little(monkeypatch: pytest.MonkeyPatch, seconds: float, short: bool) -> None:
    recording = recorded(RANGE(10))
    monkeypatch.setattr(type(recording), "seconds", seconds)
    assert ("A pass as short as this says little" in words_of(read(recording))) == short


def test_a_dataset_that_cannot_be_divided_says_why() -> None:
    dataset = di.data.Dataset.from_tensor_slices(np.zeros((4, 2))).window(2)
    text = words_of(read(recorded(dataset)))
    assert "Shards of 2 workers" in text


def test_a_dataset_writes_its_report(tmp_path: Path) -> None:
    recording = RANGE(1000).shuffle(50, seed=1).report(tmp_path / "report.html", elements=7)
    root = parsed((tmp_path / "report.html").read_text(encoding="utf-8").removeprefix("<!DOCTYPE html>\n"))
    assert recording.delivered == numbers(root)["delivered"] == 7
    assert "Rows travel" in words_of(root)


def test_a_pass_that_has_not_begun_has_a_report_too() -> None:
    assert numbers(read(Recording(RANGE(3))))["delivered"] == 0
