# SPDX-License-Identifier: Apache-2.0
"""What a function changes itself is told from what it reads."""

from typing import Any

import pytest

from distinput.plan.code import changed_names

CASES = [
    ("x + table[x]", [], []),
    ("seen.append(x)", ["seen"], []),
    ("seen.add(x) or table[x]", ["seen"], []),
    ("log.seen.append(x)", ["log"], ["seen"]),
    ("counts[x] += 1", ["counts"], []),
    ("counts[len(table[x])] += table[x]", ["counts"], []),
    ("out[g(x)] = table[x]", ["out"], []),
    ("out[x][y] = 1", ["out"], []),
    ("out[x].append(table)", ["out"], []),
    ("del out[x]", ["out"], []),
    ("obj.n = table", ["obj"], ["n"]),
    ("obj.n += table[x]", ["obj"], ["n"]),
    ("del obj.n", ["obj"], ["n"]),
    ("[seen.append(i) for i in table]", ["seen"], []),
    ("y = table[x]; y.append(1)", [], []),
    ("np.take(table, x).tolist()", [], []),
    ("f(table, *x, key=table).get(x)", [], []),
    ("'a'.join(table)", [], []),
]


@pytest.mark.parametrize("source, names, attributes", CASES)
def test_what_a_line_changes(source: str, names: list[str], attributes: list[str]) -> None:
    space: dict[str, Any] = {}
    exec(f"def f(x):\n  if x:\n    {source}\n  return x", space)
    found: list[set[str]] = [set(), set()]
    codes = [space["f"].__code__]
    for code in codes:
        codes += [inner for inner in code.co_consts if hasattr(inner, "co_consts")]
        for whole, part in zip(found, changed_names(code), strict=True):
            whole |= part
    assert [sorted(each) for each in found] == [names, attributes]


def test_variables_of_functions_around_count_too() -> None:
    seen: list[int] = []
    table = [1]

    def function(x: int) -> int:
        seen.append(table[x])
        return x

    assert changed_names(function.__code__)[0] == {"seen"}
