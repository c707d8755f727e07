# SPDX-License-Identifier: Apache-2.0
"""Keep states of this version for ever: `python -m tests.states.keep` writes what is missing, and changes no state.

Run it after `VERSION` was raised (in `columns/state.py`), and after a pipeline was added to the corpus. Tests restore every
file from then on, in every later version. `layouts/v<VERSION>.json` says what states of this version look like.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from distinput.columns.state import VERSION
from distinput.plan.fingerprint import layout
from distinput.rewrite import Running
from distinput.rewrite.rules import FIRST, RULES
from tests.distribute.workers import on_workers
from tests.states.corpus import DISTRIBUTED, PIPELINES, put_data, shown

__all__ = ["HERE", "MOST", "form", "layouts", "places", "rule_names", "trace"]

HERE = Path(__file__).parent
MOST = 60
"""Elements kept of a pass."""


def places(count: int, number: int) -> list[int]:
    """Where states are kept of a pass of so many elements."""
    wanted = (0, 1, 2, 5, count // 2, count - 1, count) if number == 0 else (3,)
    return sorted({place for place in wanted if 0 <= place <= count})


def trace(dataset: Any, number: int) -> dict[str, Any]:
    """The elements of a pass, and states at some places of it."""
    states, elements = [], []
    with iter(dataset) as iterator:
        states.append(iterator.state())
        for element in iterator:
            elements.append(shown(element))
            states.append(iterator.state())
            if len(elements) == MOST:
                break
    kept = [{"after": place, "state": states[place]} for place in places(len(elements), number)]
    return {"elements": elements, "states": kept}


def _of_pipeline(name: str) -> list[list[dict[str, Any]]]:
    dataset = PIPELINES[name]()
    return [[trace(dataset, number) for number in range(2)]]


def _of_workers(name: str) -> list[list[dict[str, Any]]]:
    """For each worker, its passes."""
    replicas, make = DISTRIBUTED[name]

    def body(strategy: Any, _: int) -> list[dict[str, Any]]:
        dataset = make(strategy)
        return [trace(dataset, number) for number in range(2)]

    made = on_workers(replicas, body, timeout=60.0)
    for found in made:
        if isinstance(found, Exception):
            raise found
    return made


def form(values: list[Any]) -> Any:
    """What several states of one pipeline look like: their keys, and the types of what is below them."""
    dicts = [value for value in values if isinstance(value, dict)]
    made: Any = {key: form([d[key] for d in dicts if key in d]) for key in sorted({key for d in dicts for key in d})}
    parts = [part for value in values if isinstance(value, list) for part in value]
    kinds = sorted({type(value).__name__ for value in values if value is not None} - {"dict", "list"})
    shown = ([made] if made else []) + ([[form(parts)]] if parts else []) + kinds
    return shown[0] if len(shown) == 1 else shown


def rule_names() -> list[str]:
    """The rewrite rules that there are."""
    return sorted([rule.__name__ for rule in (*FIRST, *RULES)])


def layouts() -> dict[str, Any]:
    """For each pipeline: the running tree as far as states tell it, the rules that made it, and the form of its states."""
    found = {}
    for name, make in PIPELINES.items():
        dataset = make()
        running = Running.of(dataset.node)
        places = []
        with iter(dataset) as iterator:
            places.append(iterator.place())
            places.extend([iterator.place() for _ in islice(iterator, MOST)])
        found[name] = {"runs": layout(running.node), "rules": list(running.rules), "state": form(places)}
    return found


def main() -> None:
    """Write the files that are missing, and the layouts of pipelines that have none."""
    folder = HERE / f"v{VERSION}"
    folder.mkdir(exist_ok=True)
    kinds: list[tuple[Any, Callable[[str], Any]]] = [(PIPELINES, _of_pipeline), (DISTRIBUTED, _of_workers)]
    (HERE / "layouts").mkdir(exist_ok=True)
    golden = HERE / "layouts" / f"v{VERSION}.json"
    with tempfile.TemporaryDirectory() as data:
        put_data(Path(data))
        os.chdir(data)
        known = json.loads(golden.read_text()) if golden.exists() else {"rules": [], "layouts": {}}
        rules = sorted({*known["rules"], *rule_names()})
        golden.write_text(json.dumps({"rules": rules, "layouts": {**layouts(), **known["layouts"]}}, indent=1) + "\n")
        for names, made in kinds:
            for name in names:
                file = folder / f"{name}.json"
                if not file.exists():
                    kept = {"python": ".".join(map(str, sys.version_info[:2])), "workers": made(name)}
                    file.write_text(json.dumps(kept) + "\n")
                    print(f"kept {file.relative_to(HERE)}")


if __name__ == "__main__":
    main()
