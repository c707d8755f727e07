# SPDX-License-Identifier: Apache-2.0
"""A moment of the timeline has the colour of the step that had most of it."""

from distinput.reports.timeline import CONSUMER, TIMELINE_STYLE, Stretch, colour_class, timeline
from tests.reports.pictures import attribute_numbers, parsed, words_of

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_to_scale_and_named() -> None:
    stretches = [
        Stretch("0:a", False, 10.0, 12.5),
        Stretch("1:b", True, 12.5, 15.0),
        Stretch(CONSUMER, False, 17.5, 20.0),
    ]
    root = parsed(timeline({7: stretches}, {7: "Main<Thread"}, ["0:a", "1:b"], 10.0, 20.0))
    drawn = [
        (rect.attrib["class"], *(round(x) for x in attribute_numbers(rect, "x", "width")))
        for rect in root.iter(f"{SVG}rect")
    ]
    assert drawn == [("di-0", 0, 226), ("di-waits", 226, 224), ("di-consumer", 674, 226)]
    assert "Main<Thread" in words_of(root)
    assert "1:b waits" in words_of(root)


def test_a_picture_of_many_stretches_stays_small() -> None:
    many = [Stretch(f"{i % 2}:a", False, i / 1000, (i + 0.9) / 1000) for i in range(20_000)]
    assert len(timeline({1: many}, {}, ["0:a", "1:a"], 0.0, 20.0)) < 100_000


def test_steps_have_colours_that_the_style_knows() -> None:
    steps = [str(i) for i in range(30)]
    classes = {colour_class(step, steps) for step in (*steps, CONSUMER)}
    assert all(f".{name} {{" in TIMELINE_STYLE for name in (*classes, "di-waits"))
    assert len({colour_class(step, steps) for step in steps[:10]}) == 10
    assert timeline({}, {}, [], 0.0, 0.0).startswith("<svg")
