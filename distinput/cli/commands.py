# SPDX-License-Identifier: Apache-2.0
"""The commands: their names, the modules that have them, and a line of help each. A new one is a module and a line here."""

from typing import NamedTuple

__all__ = ["COMMANDS", "GROUPS", "Command"]


class Command(NamedTuple):
    """One word after `distinput`.

    Attributes:
      name: the word.
      module: below `distinput.cli`; it has `add_arguments(parser)` and `run(given)`, which returns the exit status. It is
        imported when the word is given, so that no command waits for the imports of another.
      group: the heading it stands under in `distinput --help`, one of `GROUPS`.
      help: what it does, in a line.
    """

    name: str
    module: str
    group: str
    help: str


GROUPS = ("files", "datasets", "processes", "this machine")

COMMANDS = (
    Command("head", "head", "files", "show the first records of files of any format"),
    Command("sample", "sample", "files", "show records at random"),
    Command("info", "info", "files", "say what files are, and what a record looks like"),
    Command("schema", "schema", "files", "print the columns or features of records"),
    Command("count", "count", "files", "count records"),
    Command("stats", "stats", "files", "print lengths, missing values, ranges and histograms of columns"),
    Command("verify", "verify", "files", "check files against their manifest, to the last record and for all workers"),
    Command("index", "index", "files", "write the indices by which records are counted and reached at once"),
    Command("convert", "convert", "files", "write files of one format as files of another"),
    Command("plan", "plan", "datasets", "who reads what, for W workers of R replicas, before any job runs"),
    Command("explain", "explain", "datasets", "a pipeline as described, the rules that changed it, and as it runs"),
    Command("bench", "bench", "datasets", "how fast a dataset is, what it waits for, and what would change that"),
    Command(
        "locate",
        "locate",
        "datasets",
        "the file and the record of every row of a step; or the steps that hold a record",
    ),
    Command("replay", "replay", "datasets", "the very batches of a step again, without the job"),
    Command(
        "judge", "judge", "datasets", "does a loader of any library deliver each record once, also after a restart?"
    ),
    Command("graph", "graph", "datasets", "a picture of a pipeline, as SVG or in Mermaid's language"),
    Command("cluster", "cluster.start", "processes", "start workers and parameter servers on this machine"),
    Command(
        "worker", "cluster.worker", "processes", "be a worker or a parameter server of a cluster of several machines"
    ),
    Command(
        "doctor", "doctor", "this machine", "versions, engines, cores, compiled kernels, and what would make it faster"
    ),
    Command("completion", "completion", "this machine", "a script that completes words of this command in your shell"),
    Command("demo", "demo", "this machine", "train and evaluate on real files, and check every promise on the way"),
)
