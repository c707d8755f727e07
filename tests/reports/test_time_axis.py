# SPDX-License-Identifier: Apache-2.0
"""Ticks are at round times, within the plot, a handful of them."""

from hypothesis import given
from hypothesis import strategies as st

from distinput.reports.plots import WIDTH, round_step, time_axis
from tests.reports.pictures import parsed

SVG = "{http://www.w3.org/2000/svg}"


@given(st.floats(1e-6, 1e6))
def test_ticks(length: float) -> None:
    texts = parsed(f'<svg xmlns="http://www.w3.org/2000/svg">{time_axis(length, 10)}</svg>').findall(f".//{SVG}text")
    assert 3 <= len(texts) <= 9
    assert all(0 <= float(text.attrib["x"]) <= WIDTH + 0.1 for text in texts)


@given(st.floats(1e-9, 1e9))
def test_steps_are_round_and_no_smaller(least: float) -> None:
    step = round_step(least)
    assert least <= step <= 5 * least * (1 + 1e-9)
    assert f"{step:.0e}"[0] in "125"
