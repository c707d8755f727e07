# SPDX-License-Identifier: Apache-2.0
"""`distinput graph`: a picture of a pipeline."""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from distinput.cli.arguments import suggest
from distinput.cli.exit_status import FINE
from distinput.cli.loading import add_dataset, load_dataset, user_code
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.reports import Graph, graph_of, mermaid_of, svg_of

__all__ = ["add_arguments", "run"]

_KINDS = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "markdown", ".json": "json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput graph`."""
    add_dataset(parser)
    suggest(
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="FILE",
            help=f"where to write; the end of its name says what: {', '.join(_KINDS)} (default: Mermaid, to standard output)",
        ),
        files=("*",),
    )
    parser.add_argument(
        "--kind", choices=sorted(set(_KINDS.values())), help="what to write, whatever the name of the file"
    )
    parser.add_argument(
        "--running", action="store_true", help="the steps that run, which rules made of those described"
    )
    parser.add_argument("--json", action="store_const", dest="kind", const="json", help="the same as --kind json")


def run(given: argparse.Namespace) -> int:
    """Draw."""
    dataset = load_dataset(given.dataset)
    with user_code(given.dataset):
        graph = graph_of(dataset, running=given.running)
    kind = given.kind or ("mermaid" if given.output is None else _kind_of(given.output))
    text = _WRITERS[kind](graph)
    if given.output is None:
        print(text)
    else:
        with Sink(str(given.output)) as sink:
            sink.write(f"{text}\n".encode())
    return FINE


def _kind_of(path: Path) -> str:
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise InvalidArgumentError(f"{path}: its name must end in one of {', '.join(_KINDS)}, or say --kind")
    return kind


_WRITERS: dict[str, Callable[[Graph], str]] = {
    "json": lambda graph: json.dumps(asdict(graph)),
    "markdown": lambda graph: f"```mermaid\n{mermaid_of(graph)}\n```",
    "mermaid": mermaid_of,
    "svg": svg_of,
}
