# SPDX-License-Identifier: Apache-2.0
"""Pipelines, specs and numbers of elements as text."""

from distinput.plan.node import INFINITE, UNKNOWN, Node, cardinality_bounds, given, walk
from distinput.values.leaves import STRING
from distinput.values.spec import ElementsSpec, LeafSpec, Spec

# ----------------------------------------------------------------------------
# Specs and numbers of elements in a few characters, for lines that people read.
# ----------------------------------------------------------------------------


def spec_text(spec: Spec, comma: str = ", ") -> str:
    """A nest of dtypes and shapes.

    Args:
      spec: what an element looks like.
      comma: between the sizes of a shape.

    >>> import distinput as di
    >>> spec_text(di.data.Dataset.from_tensors({"x": [[1.0, 2.0]], "n": 3}).batch(2).node.spec)
    "{'x': float32[?, 1, 2], 'n': int32[?]}"
    """
    spec = spec.folded
    return str(spec.structure.build([_Word(_leaf_text(leaf, comma)) for leaf in spec.leaves]))


def spec_text_of(node: Node) -> str:
    """The spec of a node, or which error its function raised while the spec was inferred."""
    try:
        return spec_text(node.spec)
    except Exception as error:  # noqa: BLE001 - the spec of an opaque function may need data that is not there yet
        return f"<{type(error).__name__} while inferring the spec>"


def count_text(cardinality: int) -> str:
    """A number of elements.

    >>> [count_text(n) for n in (7, INFINITE, UNKNOWN)]
    ['x7', 'endless', 'x?']
    """
    return {INFINITE: "endless", UNKNOWN: "x?"}.get(cardinality, f"x{cardinality}")


def bounds_text(node: Node) -> str:
    """How many elements, or between which bounds, with a multiplication sign; "" if it cannot be found out now.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(2000)
    >>> [bounds_text(each.node) for each in (ds, ds.filter(lambda x: x > 3), ds.repeat())]
    ['× 2,000', '× 0…2,000', '× ∞']
    """
    try:
        endless = node.cardinality == INFINITE
        low, high = cardinality_bounds(node)
    except Exception:  # noqa: BLE001 - a file may be missing, which iterating the dataset reports
        return ""
    if endless:
        return "× ∞"
    if high is None:
        return "× ?" if low == 0 else f"× {low:,} or more"
    return f"× {low:,}" if low == high else f"× {low:,}…{high:,}"


class _Word(str):
    """Text that prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _leaf_text(leaf: LeafSpec, comma: str) -> str:
    if isinstance(leaf, ElementsSpec):
        return leaf.called.rpartition(" ")[2]
    dtype = ("sparse " if leaf.is_sparse else "") + ("string" if leaf.dtype == STRING else leaf.dtype.name)
    if leaf.shape is None:
        return f"{dtype}[...]"
    return dtype + (f"[{comma.join('?' if d is None else str(d) for d in leaf.shape)}]" if leaf.shape else "")


# ----------------------------------------------------------------------------
# A pipeline as text: one line a node, the last op first, its inputs indented below it.
# ----------------------------------------------------------------------------


def render(node: Node) -> str:
    """The tree below `node`.

    >>> import distinput as di
    >>> print(render(di.data.Dataset.range(10).batch(4).node))
    batch(batch_size=4)  int64[?]  x3
      range(first=0, stop=10)  int64  x10
    """
    return "\n".join(_lines(node, ""))


def _lines(node: Node, indent: str) -> list[str]:
    lines = [f"{indent}{node}  {spec_text_of(node)}  {count_text(node.cardinality)}"]
    for source in node.inputs:
        lines += _lines(source, indent + "  ")
    return lines


# ----------------------------------------------------------------------------
# A pipeline in one line: its last step, what its elements look like, and how many there are.
# ----------------------------------------------------------------------------


def summary(node: Node) -> str:
    """What is known of a pipeline without calling a function or opening a file; what is not known yet is said in words.

    >>> import distinput as di
    >>> summary(di.data.Dataset.from_tensor_slices({"x": [[1.0, 2.0]] * 6}).batch(4).node)
    "batch(4): 2 elements of {'x': float32[?,2]}"
    >>> summary(di.data.ParquetDataset(["gone.parquet"]).batch(4).node)
    'batch(4): its elements are not known yet'
    """
    label = "" if node.name is None else f"[{node.name}]"
    told = given(node)
    arguments = [*told.values()] if len(told) == 1 else [f"{name}={text}" for name, text in told.items()]
    elements = _elements(_spec(node), _number(node))
    return f"{node.op}{label}({_cut(', '.join(arguments), _TWO_LINES - len(elements))}): {elements}"


def _elements(spec: str | None, number: str | None) -> str:
    """What elements look like, and how many there are, in words; None: it is not known yet."""
    if number is None and spec is None:
        return "its elements are not known yet"
    counted = "1 element" if number == "1" else f"{number} elements" if number else "elements"
    told_spec = ", of which the spec is not known yet" if spec is None else f" of {spec}"
    told_number = {None: ", not counted yet", "": ", nobody knows how many"}.get(number, "")
    return f"{counted}{told_spec}{told_number}"


def leaving_out(step: Node) -> str:
    """Why nobody knows how many elements there are behind a step that leaves out what fails.

    >>> import distinput as di
    >>> leaving_out(di.data.Dataset.range(9).ignore_errors().node).partition(";")[0]
    ': ignore_errors leaves out what fails'
    """
    return (
        f": {step.op} leaves out what fails; `cardinality_bounds()` has the most that there can be, `assert_cardinality(n)` "
        "says how many there are"
    )


def _spec(node: Node) -> str | None:
    try:
        spec = _known(node)
    except Exception:  # noqa: BLE001 - whoever iterates the dataset gets the error
        return None
    return None if spec is None else short_spec_text(spec)


def _known(node: Node) -> Spec | None:
    """The spec, if it was asked for before, or follows from specs that were."""
    spec: Spec | None = vars(node).get("spec")  # a cached property
    if spec is not None or node._asks or any(_known(source) is None for source in node.inputs):
        return spec
    return node.spec


def _number(node: Node) -> str | None:
    """How many elements there are, in words; None: they were not counted yet; "": it is known at the end."""
    if any((step.reads_files and "counts" not in vars(step)) or step.counting_calls for step in walk(node)):
        return None
    text = bounds_text(node).removeprefix("× ").replace("…", " to ")
    return {"?": "", "∞": "endless"}.get(text, text or None)


# ----------------------------------------------------------------------------
# What is too long for a line is cut.
# ----------------------------------------------------------------------------


_LONGEST, _TWO_LINES = 72, 124


def short_spec_text(spec: Spec) -> str:
    """The text of a spec, of which the first components are told where it is long.

    >>> import distinput as di
    >>> short_spec_text(di.data.Dataset.from_tensors({f"column_{i}": i for i in range(30)}).node.spec)
    "{'column_0': int32, 'column_1': int32, 'column_2': int32, ... 27 more}"
    """
    spec = spec.folded
    nest = spec.structure.build([_Word(_leaf_text(leaf, ",")) for leaf in spec.leaves])
    text = str(nest)
    if len(text) <= _LONGEST or type(nest) not in (dict, tuple):
        return _cut(text, _LONGEST)
    items = (
        [f"{name!r}: {inner}" for name, inner in nest.items()] if type(nest) is dict else [str(each) for each in nest]
    )
    kept, room = [_cut(items[0], _LONGEST - 16)], _LONGEST - 16
    while len(kept) < len(items) and len(", ".join([*kept, items[len(kept)]])) <= room:
        kept.append(items[len(kept)])
    more = [f"... {len(items) - len(kept)} more"] if len(items) > len(kept) else []
    inside = ", ".join([*kept, *more])
    return f"({inside})" if type(nest) is tuple else f"{{{inside}}}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
