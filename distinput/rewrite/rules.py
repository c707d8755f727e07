# SPDX-License-Identifier: Apache-2.0
"""The rewrites, the table of them, and their application.

A rule is a plain function `Node -> Node | None`, in most cases one pattern of a `match` and its replacement: it returns the
better node, or None where it does not apply. Rules change how a pipeline runs, never its elements.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, TypeGuard

from distinput import ops
from distinput.columns.state import Digest
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass, later
from distinput.plan.check import AUTOTUNE
from distinput.plan.families import Batching, placed
from distinput.plan.node import Node, Origin, walk
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

if TYPE_CHECKING:
    from distinput.functions import claim as claims
    from distinput.plan import fingerprint as fingerprints
    from distinput.sharding import own_rows
else:
    claims = later("distinput.functions.claim")  # for functions that make datasets
    fingerprints = later("distinput.plan.fingerprint")  # layouts are for states
    own_rows = later("distinput.sharding.own_rows")  # for workers

Rule = Callable[[Node], Node | None]


def _about(op: str) -> Callable[[Rule], Rule]:
    """A rule that can only fire where an op of this file of `ops/` is: one that was never loaded is in no tree.

    So a rule names ops as `ops.take.Take`, and loads none for a tree that has none of them.
    """
    file = f"distinput.ops.{op}"

    def marked(rule: Rule) -> Rule:
        @wraps(rule)
        def tried(node: Node) -> Node | None:
            return rule(node) if file in sys.modules else None

        return tried

    return marked


# ----------------------------------------------------------------------------
# Batches, and workers, tell what reads for them.
# ----------------------------------------------------------------------------


def read_for_batches(node: Node) -> Node | None:
    """What reads or gathers rows is told how many of them make a batch, so that batches are views of its blocks."""
    match node:
        case Batching():
            source = node.input.for_groups(int(node.batch_size))
            return None if source is None else node.with_inputs((source,))
    return None


@_about("shard_batches")
def own_shares(node: Node) -> Node | None:
    """`shard_batches` reads only its own rows, where rows can be reached by position."""
    match node:
        case ops.shard_batches.ShardBatches() if node.num_shards > 1:
            own = own_rows.own_steps(node, 0, 1)
            return None if own is None else ops.shard_batches.OwnShares(node, own, origin=node.origin)
    return None


# ----------------------------------------------------------------------------
# Long chains become flat trees, so that a block passes through few steps.
# ----------------------------------------------------------------------------


_LONGEST = 32
"""Shorter chains stay as they were described."""


@_about("concatenate")
def balanced_concatenations(node: Node) -> Node | None:
    """A long chain of concatenations, as a loop makes one, is a tree of the same datasets in the same order."""
    datasets: list[Node] = []
    first = node
    while isinstance(first, ops.concatenate.Concatenate) and first.name is None:
        datasets.append(first.dataset)
        first = first.input
    if len(datasets) <= _LONGEST:
        return None
    return _tree([first, *reversed(datasets)], node.origin)


def _tree(leaves: Sequence[Node], origin: Origin) -> Node:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    return ops.concatenate.Concatenate(_tree(leaves[:middle], origin), _tree(leaves[middle:], origin), origin=origin)


# ----------------------------------------------------------------------------
# Neighbouring steps run as one.
# ----------------------------------------------------------------------------


@_about("map")
def map_of_map(node: Node) -> Node | None:
    """Each element passes through both functions before the next one starts, with no block in between."""
    match node:
        case ops.map.Map(ops.map.Map() | ops.map.FusedMap() as first):
            return ops.map.fused(first, node)
    return None


@_about("map_rows")
def map_rows_of_map_rows(node: Node) -> Node | None:
    """Each block passes through both functions before the next one is made."""
    match node:
        case ops.map_rows.MapRows(ops.map_rows.MapRows() | ops.map_rows.FusedMapRows() as first):
            return ops.map_rows.fused(first, node)
    return None


@_about("zip")
def zip_of_zip(node: Node) -> Node | None:
    """A zip of zips is one zip; `enumerate` is a zip, too."""
    match node:
        case ops.zip.Zip(nest, sources) if any(isinstance(source, ops.zip.Zip) for source in sources):
            inner = [(x.nest, x.sources) if isinstance(x, ops.zip.Zip) else (LEAF, (x,)) for x in sources]
            flat = tuple([x for _, members in inner for x in members])
            return ops.zip.Zip(nest.graft([shape for shape, _ in inner]), flat, origin=node.origin)
    return None


@_about("concatenate")
def concatenate_of_slices(node: Node) -> Node | None:
    """Any number of arrays, one after the other, in one step."""
    match node:
        case ops.concatenate.Concatenate():
            sources: list[ops.slices.Slices] = []
            for part in node.inputs:
                if not isinstance(part, ops.slices.Slices | ops.slices.SlicesInTurn):
                    return None
                sources += part.sources if isinstance(part, ops.slices.SlicesInTurn) else (part,)
            return ops.slices.SlicesInTurn(tuple(sources), node.spec, origin=node.origin)
    return None


# ----------------------------------------------------------------------------
# Steps that do nothing, alone or together, are left out.
# ----------------------------------------------------------------------------


@_about("take")
def take_everything(node: Node) -> Node | None:
    """A take with a negative count takes everything."""
    match node:
        case ops.take.Take(x, count) if count < 0:
            return x
    return None


@_about("take")
def take_of_take(node: Node) -> Node | None:
    """The shorter of two takes."""
    match node:
        case ops.take.Take(ops.take.Take(x, a), b) if a >= 0 and b >= 0:
            return ops.take.Take(x, min(a, b), origin=node.origin)
    return None


@_about("take")
def skip_nothing(node: Node) -> Node | None:
    """A skip of no element."""
    match node:
        case ops.take.Skip(x, 0):
            return x
    return None


@_about("take")
def skip_of_skip(node: Node) -> Node | None:
    """Two skips are one, of the sum of their counts."""
    match node:
        case ops.take.Skip(ops.take.Skip(x, a), b) if a >= 0 and b >= 0:
            return ops.take.Skip(x, a + b, origin=node.origin)
    return None


@_about("shard")
def shard_of_one(node: Node) -> Node | None:
    """The only worker keeps everything."""
    match node:
        case ops.shard.Shard(x, 1, 0):
            return x
    return None


@_about("shuffle")
def shuffle_of_one(node: Node) -> Node | None:
    """A buffer of one element keeps the order."""
    match node:
        case ops.shuffle.Shuffle(x, 1):
            return x
    return None


@_about("rebatch")
def batch_then_unbatch(node: Node) -> Node | None:
    """Rows that are stacked and taken apart again; only if no batch can be an error, as by rows that differ in shape."""
    match node:
        case ops.rebatch.Unbatch(ops.batch.Batch(x, _, False) as batch) if not batch.may_fail:
            return x
    return None


@_about("prefetch")
def prefetch_of_views(node: Node) -> Node | None:
    """Views of memory are available at once, and a copy is best made by the thread that uses it, in the cache of its core."""
    match node:
        case ops.prefetch.Prefetch(x) if all(step.view_only for step in walk(x)):
            return x
    return None


@_about("prefetch")
def prefetch_of_prefetch(node: Node) -> Node | None:
    """Two prefetches in a row are one with the larger buffer."""
    match node:
        case ops.prefetch.Prefetch(ops.prefetch.Prefetch(x, int(a)), int(b)):
            return ops.prefetch.Prefetch(x, AUTOTUNE if AUTOTUNE in (a, b) else max(a, b), origin=node.origin)
    return None


# ----------------------------------------------------------------------------
# Parts of a range are ranges.
# ----------------------------------------------------------------------------


@_about("take")
def part_of_range(node: Node) -> Node | None:
    """The first numbers of a range, or all but the first, are a range with another end or another start."""
    match node:
        case ops.take.Take(ops.range.Range() as numbers, count) if count >= 0:
            return replace(numbers, stop=numbers.first + min(numbers.size, int(count)) * numbers.step)
        case ops.take.Skip(ops.range.Range() as numbers, count) if count >= 0:
            return replace(numbers, first=numbers.first + min(numbers.size, int(count)) * numbers.step)
    return None


# ----------------------------------------------------------------------------
# Steps that are cheaper in another order.
# ----------------------------------------------------------------------------


@_about("take")
def skip_before_take(node: Node) -> Node | None:
    """Skips go first, so that skips meet skips and takes meet takes, and become one.

    `take` does not count errors but `skip` does, so they stay if there may be errors, unless the skip goes by position.
    """
    match node:
        case ops.take.Skip(ops.take.Take(x, a) as taken, b) if (
            a >= 0 and b > 0 and not (x.may_fail and x.start_at(0, 0) is None)
        ):
            return ops.take.Take(ops.take.Skip(x, b, origin=node.origin), max(0, a - b), origin=taken.origin)
    return None


# ----------------------------------------------------------------------------
# Columns and rows that nobody wants are not read from files.
# ----------------------------------------------------------------------------


@_about("select")
def select_in_files(node: Node) -> Node | None:
    """The reader leaves out the other columns; the states are the reader's either way."""
    match node:
        case ops.select.Select(reader, columns) if _reads(reader):
            chosen = reader.format.with_columns(node.whole)
            if chosen is None or node.whole == columns:
                return None if chosen is None else reader.reading_as(chosen)
            return replace(node, input=reader.reading_as(chosen)) if _fewer(node.whole, reader) else None
    return None


@_about("select")
def select_in_made(node: Node) -> Node | None:
    """The selection is made in each dataset that the function returns, where readers of files may leave out columns.

    Which rows there are, and whose turn it is, does not depend on columns, and a selection has no state of its own.
    """
    match node:
        case ops.select.Select(made, columns) if _is_made(made) and made.through is None and node.whole == columns:
            return replace(made, through=_Selected(node, tuple(columns)), claim=claims.Claim())
    return None


@dataclass(frozen=True)
class _Selected:
    """A selection from a dataset that a function made, as far down as it goes.

    Args:
      outside: the same selection, where the user wrote it.
      columns: what stays.
    """

    outside: Node
    columns: tuple[str, ...]

    @property
    def spec(self) -> Spec:
        return self.outside.spec

    def __call__(self, made: Node) -> Node:
        selected = ops.select.Select(made, self.columns, origin=self.outside.origin)
        if not _leaves_out(made, self.columns):
            return selected
        _ = selected.spec  # so that a column which is not there is no fault of the file
        rules = (select_before_filter, select_before_order, select_in_files, filter_in_files)
        return rewrite(selected, rules)[0]


@_about("select")
def select_before_filter(node: Node) -> Node | None:
    """Only the columns that stay, and those that the condition reads, go into the filter."""
    match node:
        case ops.select.Select(ops.filter.Where(source) as where) if where.fields is not None:
            if not (_is_made(source) or _hands_out(source) or isinstance(source, ops.reader.Reader)):
                return None
            wanted = (*node.whole, *sorted(where.fields - set(node.whole)))
            if not _leaves_out(source, wanted) or not _fewer(wanted, source):
                return None
            below = replace(where, input=ops.select.Select(source, wanted, origin=node.origin))
            return replace(node, input=below)
    return None


@_about("select")
def select_before_order(node: Node) -> Node | None:
    """Rows are shuffled, and made ahead, with the columns that stay, so that a reader below need not read the others.

    Neither looks at the rows, and a selection has no state of its own: order and states are the same.
    """
    match node:
        case ops.select.Select(moved) if _is_moved(moved) and _leaves_out(moved.input, node.whole):
            return replace(moved, input=replace(node, input=moved.input))
    return None


@_about("as_python")
def select_before_handing_out(node: Node) -> Node | None:
    """Of the columns that stay, text becomes `str`, and so on, so that a reader below need not read the others."""
    match node:
        case ops.select.Select(handed, columns) if _hands_out(handed) and node.whole == columns:
            if _leaves_out(handed, columns):
                return replace(handed, input=replace(node, input=handed.input))
    return None


@_about("as_python")
def filter_before_handing_out(node: Node) -> Node | None:
    """Conditions are of columns, also of those that become `str`, rows or decimals when they are handed out."""
    match node:
        case ops.filter.Where(handed) if _hands_out(handed) and _is_read(handed) and node.fields is not None:
            if not (isinstance(handed, ops.as_python.AsDecimal) and handed.dtype == "float64"):
                return replace(handed, input=replace(node, input=handed.input))
    return None


def _leaves_out(node: Node, columns: Sequence[str]) -> bool:
    """Whether a selection would come down to a reader that can leave out columns, or may, in datasets that a function makes."""
    while _is_moved(node) or _hands_out(node) or (isinstance(node, ops.filter.Where) and node.fields is not None):
        node = node.input
    if _is_made(node):
        return node.through is None
    return _reads(node) and node.format.with_columns(columns) is not None


def _fewer(wanted: tuple[str, ...], source: Node) -> bool:
    """Whether the reader has not been told yet to read these columns alone."""
    while _hands_out(source):
        source = source.input
    known = getattr(source.format, "columns", None) if _reads(source) else None
    return known is None or set(wanted) < set(known)


def _is_made(node: Node) -> "TypeGuard[ops.flat_map.MakesDatasets]":
    """Whether a function makes the datasets of its elements."""
    return isinstance(node, ops.flat_map.MakesDatasets)


def _is_moved(node: Node) -> "TypeGuard[ops.prefetch.Prefetch | ops.shuffle.Shuffle]":
    """Whether its elements are those of its input, in another order or made ahead."""
    return isinstance(node, ops.prefetch.Prefetch | ops.shuffle.Shuffle)


def _hands_out(node: Node) -> "TypeGuard[ops.as_python.AsText | ops.as_python.AsRows | ops.as_python.AsDecimal]":
    """Whether something else becomes of all values of some kind, and it is no matter which other columns there are."""
    return (
        isinstance(node, ops.as_python.AsText | ops.as_python.AsRows | ops.as_python.AsDecimal) and node.columns is None
    )


def _is_read(node: Node) -> bool:
    """Whether it hands out what a reader of files reads."""
    while _hands_out(node):
        node = node.input
    return _reads(node)


def _reads(node: Node) -> "TypeGuard[ops.reader.Reader | ops.fragment_reader.FragmentReader]":
    """Whether it reads files."""
    return isinstance(node, ops.reader.Reader | ops.fragment_reader.FragmentReader)


@_about("filter")
def filter_in_files(node: Node) -> Node | None:
    """The reader leaves out parts of files that cannot satisfy the condition; the filter stays, for the rows of the others."""
    match node:
        case ops.filter.Where(ops.reader.Reader() as reader) if node.term is not None:
            pruned = reader.format.where(node.term)
            if pruned is not None:
                return replace(node, input=reader.reading_as(pruned).same_as(reader))
    return None


# ----------------------------------------------------------------------------
# Positions are shuffled before something is done for each row, which then happens in the new order, and several at a time.
# ----------------------------------------------------------------------------


@_about("source")
def read_after_shuffle(node: Node) -> Node | None:
    """Positions are shuffled before their items are read, so that threads and processes read ahead in the new order."""
    match node:
        case ops.global_shuffle.GlobalShuffle(ops.source.Source() as source):
            return source.with_inputs((replace(node, input=source.input),))
    return None


@_about("map")
@_about("global_shuffle")
def call_after_global_shuffle(node: Node) -> Node | None:
    """What fetches rows by their positions waits for one call after the other; a step has threads, processes and blocks."""
    match node:
        case ops.global_shuffle.GlobalShuffle():
            return _called_after(node)
    return None


@_about("map")
@_about("shuffle")
def call_after_shuffle(node: Node) -> Node | None:
    """The same, unless the buffer holds elements. Not below what drops errors, which leave their positions to others there."""
    match node:
        case ops.shuffle.Shuffle(rows) if rows.random_access:
            return _called_after(node)
    return None


def _called_after(shuffle: Node) -> Node | None:
    """The steps that choose rows by position, down to a map, as steps below it."""
    path, below = [shuffle], shuffle.inputs[0]
    while below.by_position and len(below.inputs) == 1 and not below.keeps:
        path.append(below)
        below = below.inputs[0]
    if not isinstance(below, ops.map.MapCalls):
        return None
    rows = below.inputs[0]
    for step in reversed(path):
        rows = step.with_inputs((rows,))
    return below.moved_over(rows)


# ----------------------------------------------------------------------------
# The table.
# ----------------------------------------------------------------------------


FIRST: list[Rule] = [own_shares, balanced_concatenations]
"""Tried once, from the root down, on the tree as it was described: they look through many ops, before others fuse these."""

RULES: list[Rule] = [
    concatenate_of_slices,
    map_of_map,
    map_rows_of_map_rows,
    zip_of_zip,
    read_for_batches,
    batch_then_unbatch,
    prefetch_of_prefetch,
    prefetch_of_views,
    shard_of_one,
    shuffle_of_one,
    skip_nothing,
    skip_of_skip,
    take_everything,
    take_of_take,
    select_before_filter,
    select_before_order,
    select_in_files,
    select_in_made,
    select_before_handing_out,
    filter_before_handing_out,
    filter_in_files,
    part_of_range,
    skip_before_take,
    read_after_shuffle,
    call_after_global_shuffle,
    call_after_shuffle,
]
"""Tried at each node, inputs before what reads them, until none fires."""


def register_rule(rule: Rule, *, first: bool = False) -> Rule:
    """Add a rule of your own to those that are tried on every pipeline; may be used as a decorator.

    A state tells which rules fired, by their names: whoever restores it must have registered them. `check_rewrites` of
    `distinput.testing` checks that all rules change neither elements nor states.

    Args:
      rule: a named function from a node to a better one, or to None.
      first: it looks through many ops, so it is tried once, from the root down, before the others change the tree.

    Returns:
      The rule.

    Raises:
      TypeError: it is not a function with a name.
      InvalidArgumentError: another rule has that name.

    >>> from distinput.ops.shuffle import Shuffle
    >>> @register_rule
    ... def shuffle_of_none(node):
    ...     match node:
    ...         case Shuffle(source) if source.cardinality == 0:
    ...             return source
    ...     return None
    >>> import distinput as di
    >>> rewrite(di.data.Dataset.range(0).shuffle(5).node)[1]
    ['shuffle_of_none']
    """
    name = getattr(rule, "__name__", None)
    if not callable(rule) or not isinstance(name, str) or not name.isidentifier():
        raise TypeError(f"register_rule: a rule must be a function with a name, got {rule!r}")
    table = FIRST if first else RULES
    for known in (*FIRST, *RULES):
        if known.__name__ != name:
            continue
        if (known.__module__, known.__qualname__) != (rule.__module__, rule.__qualname__):
            raise InvalidArgumentError(
                f"register_rule: there is a rule {name!r} already, of {known.__module__}; choose another name"
            )
        (FIRST if known in FIRST else RULES).remove(known)  # a cell of a notebook that was run again
    table.append(rule)
    return rule


# ----------------------------------------------------------------------------
# Rules are tried until none fires.
# ----------------------------------------------------------------------------


def rewrite(
    node: Node, rules: Sequence[Rule] | None = None, only: Collection[str] | None = None
) -> tuple[Node, list[str]]:
    """The tree that runs for `node`, and the names of the rules that fired, in order.

    Args:
      node: the tree as the user described it.
      rules: what is tried; None: `FIRST` and `RULES`.
      only: names of the rules of these that may fire; None: all.
    """
    fired: list[str] = []
    if rules is not None:
        return _rewritten(node, _named(rules, only), fired), fired
    running = _rewritten(_first(node, _named(FIRST, only), fired), _named(RULES, only), fired)
    if "distinput.ops.on_workers" in sys.modules:  # without which no tree has such a step
        return ops.on_workers.as_without(node, running, fired, partial(rewrite, only=only))
    return running, fired


def _named(rules: Sequence[Rule], names: Collection[str] | None) -> Sequence[Rule]:
    return rules if names is None else tuple([rule for rule in rules if rule.__name__ in names])


def _first(node: Node, rules: Sequence[Rule], fired: list[str]) -> Node:
    if node.skips_failures and node.inputs[0].may_fail:
        return node  # a worker that reads its own rows only would not know of the errors of others
    for rule in rules:
        better = rule(node)
        if better is not None:
            fired.append(rule.__name__)
            return better.same_as(node)
    return node.with_changed_inputs(lambda source: _first(source, rules, fired)).same_as(node)


def _rewritten(node: Node, rules: Sequence[Rule], fired: list[str]) -> Node:
    below = rules
    if node.skips_failures and node.inputs[0].may_fail:
        below = [rule for rule in rules if rule is not call_after_shuffle]
    node = node.with_changed_inputs(lambda source: _rewritten(source, below, fired)).same_as(node)
    for rule in rules:
        better = rule(node)
        if better is not None:
            fired.append(rule.__name__)
            return _rewritten(better.same_as(node), rules, fired)
    return node


# ----------------------------------------------------------------------------
# The tree that runs, and which rules made it: what a state has to say so that another process builds the same one.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Running:
    """What runs for a described tree.

    Args:
      node: the tree.
      rules: the names of the rules that fired, each once, in alphabetical order.

    >>> import distinput as di
    >>> Running.of(di.data.Dataset.range(9).map(abs).map(abs).node).rules
    ('map_of_map',)
    """

    node: Node
    rules: tuple[str, ...] = ()

    @staticmethod
    def of(plan: Node, only: Collection[str] | None = None) -> "Running":
        """The rewritten tree.

        Rules that did not fire had no effect, so with those that did as `only` the same tree is built again, also by a release
        that has more rules.

        Args:
          plan: the tree as the user described it.
          only: names of the rules that may fire; None: all.
        """
        if any(step.differs_by_place for step in walk(plan)):
            plan = placed(plan)
        node, fired = rewrite(plan, only=only)
        return Running(node, tuple(sorted(set(fired))))

    @cached_property
    def layout(self) -> str:
        """A hash of the layout of the states."""
        return Digest(6).add(fingerprints.layout(self.node)).word
