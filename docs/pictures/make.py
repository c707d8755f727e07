# SPDX-License-Identifier: Apache-2.0
"""Writes the pictures of the pages, each a file `docs/pictures/<name>.svg`: python docs/pictures/make.py [name ...].

A picture is one module with a function `draw` that returns the text of the file, and one line in PICTURES.
"""

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PICTURES = ("cut", "peers")


def draw(name: str) -> str:
    """The text of a picture's file, from `pictures/<name>.py`."""
    if str(FOLDER.parent) not in sys.path:
        sys.path[:0] = [str(FOLDER.parent), str(FOLDER.parents[1])]
    text: str = import_module(f"pictures.{name}").draw()
    return text


if __name__ == "__main__":
    for picture in sys.argv[1:] or PICTURES:
        (FOLDER / f"{picture}.svg").write_text(draw(picture), encoding="utf-8")
        print(FOLDER / f"{picture}.svg")
