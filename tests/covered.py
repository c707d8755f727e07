# SPDX-License-Identifier: Apache-2.0
"""Prints which part of the lines and branches of each room tests have run: `python tests/covered.py COVERAGE.json`.

Fails where it is less than 97 %. `make test-deep` makes the file, with coverage.py.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

AT_LEAST = 97.0
"""Per cent of the lines and branches of a room."""


def rooms(files: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Per cent of each folder of the package, its files at the top as one room."""
    run, all_ = Counter[str](), Counter[str]()
    for path, file in files.items():
        parts = Path(path).parts
        inner = parts[parts.index("distinput") + 1 :]
        room = inner[0] if len(inner) > 1 else "distinput"
        counts = file["summary"]
        run[room] += counts["covered_lines"] + counts["covered_branches"]
        all_[room] += counts["num_statements"] + counts["num_branches"]
    return {room: 100.0 * run[room] / all_[room] if all_[room] else 100.0 for room in sorted(all_)}


def main(path: str) -> int:
    """Print the table; 1 if a room has too little."""
    covered = rooms(json.loads(Path(path).read_text(encoding="utf-8"))["files"])
    for room, share in covered.items():
        print(f"{room:16} {share:5.1f} %{'' if share >= AT_LEAST else f', less than {AT_LEAST:g} %'}")
    return int(any(share < AT_LEAST for share in covered.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
