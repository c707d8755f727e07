# SPDX-License-Identifier: Apache-2.0
"""The commands: their names, the modules that have them, and a line of help each; and their exit statuses.

A new command is two functions in a module, and a line here.
"""

from typing import NamedTuple

FINE = 0
"""All went well."""

FAILED = 1
"""Something failed: a file is missing or damaged, a dataset raised an error. The message is on standard error."""

USAGE = 2
"""The words are wrong; nothing was done. argparse uses the same number."""

FOUND = 3
"""The command did its work, and what it checks does not hold: `verify` has found a difference, say."""

INTERRUPTED = 130
"""Ctrl-C, as shells have it."""


class Command(NamedTuple):
    """One word after `distinput`.

    Attributes:
      name: the word.
      module: below `distinput.cli`; the command `count` is its functions `count_arguments(parser)` and `count_command(given)`,
        which returns the exit status. It is imported when the word is given, so that `--help` waits for no command.
      group: the heading it stands under in `distinput --help`, one of `GROUPS`.
      help: what it does, in a line.
    """

    name: str
    module: str
    group: str
    help: str


GROUPS = ("files", "datasets", "processes", "this machine")

_FILES, _DATASETS, _HERE = ("file_commands", "files"), ("dataset_commands", "datasets"), ("tools", "this machine")

COMMANDS = (
    Command("head", *_FILES, "show the first records of files of any format"),
    Command("sample", *_FILES, "show records at random"),
    Command("info", *_FILES, "say what files are, and what a record looks like"),
    Command("schema", *_FILES, "print the columns or features of records"),
    Command("count", *_FILES, "count records"),
    Command("stats", *_FILES, "print lengths, missing values, ranges and histograms of columns"),
    Command("verify", *_FILES, "check files against their manifest, to the last record and for all workers"),
    Command("index", *_FILES, "write the indices by which records are counted and reached at once"),
    Command("convert", *_FILES, "write files of one format as files of another"),
    Command("plan", *_DATASETS, "who reads what, for W workers of R replicas, before any job runs"),
    Command("explain", *_DATASETS, "a pipeline as described, the rules that changed it, and as it runs"),
    Command("bench", *_DATASETS, "how fast a dataset is, what it waits for, and what would change that"),
    Command("simulate", "simulate", "datasets", "how fast a job of many workers would be, and what would limit it"),
    Command("locate", *_DATASETS, "the file and the record of every row of a step; or the steps that hold a record"),
    Command("replay", *_DATASETS, "the very batches of a step again, without the job"),
    Command(
        "judge", "tools", "datasets", "does a loader of any library deliver each record once, also after a restart?"
    ),
    Command("graph", *_DATASETS, "a picture of a pipeline, as SVG or in Mermaid's language"),
    Command(
        "cluster", "cluster", "processes", "start workers and parameter servers, or input workers, on this machine"
    ),
    Command("worker", "cluster", "processes", "be a worker or a parameter server of a cluster of several machines"),
    Command(
        "input-worker", "cluster", "processes", "call functions of pipelines for `on_workers`, at a Dask scheduler"
    ),
    Command("kernels", *_HERE, "the loops that are compiled here; with `build`, compile them all"),
    Command("doctor", *_HERE, "versions, engines, cores, compiled kernels, and what would make it faster"),
    Command("completion", *_HERE, "a script that completes words of this command in your shell"),
    Command("demo", "demo", "this machine", "train and evaluate on real files, and check every promise on the way"),
)
