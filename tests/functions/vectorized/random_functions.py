# SPDX-License-Identifier: Apache-2.0
"""Random functions of one element, as text, and elements of which the first ones hide what rare ones show."""

from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np

DTYPES: dict[str, float] = {
    "bool": 2,
    "int8": 2,
    "uint8": 3,
    "int32": 2,
    "int64": 4,
    "uint64": 3,
    "float16": 2,
    "float32": 4,
    "float64": 4,
}
DTYPES |= {"complex64": 0.1, "S2": 0.1, "U2": 0.1, "M8[D]": 0.1}
SHAPES: list[tuple[int, ...]] = [(), (), (), (3,), (3,), (2, 3), (0,), (1,)]
_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -7.25, 127.5, 255.9, 300.0, 6e-5, 65504.0, 3e38, 1e300, 2.0**31, 2.0**53]
_FLOATS += [2.0**63, -(2.0**63), float("nan"), float("inf"), -float("inf")]
_SMALL = [0, 1, 2, 3, -1, -2, 5, 100]
_INTEGERS = [*_SMALL, 127, 128, 255, 300, 2**31 - 1, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]

ROWS, USUAL = 40, 8
"""Elements of a block, and how far the usual ones are from each other; between them there may be anything."""


def rows_of(random: Random, dtype: str, shape: tuple[int, ...]) -> Any:
    """Elements, nearly all of them usual ones or hardly any."""
    rows = np.empty((ROWS, int(np.prod(shape))), dtype)
    rows[:] = np.array([random.choice([1, 2, 3]) for _ in range(rows.shape[1])]).astype(dtype)
    rare = random.choice([0.1, 0.5, 0.9])
    for row in range(ROWS):
        if row % USUAL and random.random() < rare:
            rows[row] = [_value(random, rows.dtype) for _ in range(rows.shape[1])]
    return rows.reshape(ROWS, *shape)


def _value(random: Random, dtype: Any) -> Any:
    if dtype.kind in "fc":
        with np.errstate(all="ignore"):
            return np.array(random.choice(_FLOATS)).astype(dtype)
    numbers = random.choice([_SMALL, _INTEGERS]) if dtype.kind in "iu" else [0, 1, 2, 3]
    return np.array(random.choice(numbers) % 2**64, np.uint64).astype(np.int64).astype(dtype)


SPACE: dict[str, Any] = {
    "np": np,
    "TABLE": np.arange(6) * 3 - 4,
    "PLANE": np.arange(6.0).reshape(3, 2),
    "WEIGHTS": np.array([0.5, -0.0, np.nan], np.float32),
    "EDGES": np.array([0.0, 1.0, 2.5]),
    "SMALL": np.array([1, 2, 250], np.uint8),
    "SCALE": np.float64(0.1),
}
_CONSTANTS = str.split("""
    0 1 2 3 -1 5 7 0.0 -0.0 0.5 2.5 1e5 100 255 -128 300 (2**53) True None np.nan np.inf SCALE np.float32(0.1) np.int64(7)
    np.uint8(9) np.int8(-3) np.uint64(2**63) (1,2,3) [1,2,3] WEIGHTS SMALL EDGES
""")
_OPERATORS = str.split("+ + + + - - - - * * * * / / // % & | ^ << >> < < <= > > >= == == != ** @")
_IN_PLACE = str.split("+= += += -= -= *= *= /= //= %= |= &= <<= **=")
_BOUNDED = {"**": "0.5 2 3 -1", "**=": "2", "<<": "1 7 70 x", "<<=": "1 7 70", ">>": "1 7 70 x"}
"""What stands on the right of an operator that makes large integers of Python."""

_ARRAYS = str.split("np.zeros((3,2)) np.arange(6.0) np.ones(3) np.full(3,2) np.eye(3) np.where(TABLE>1,1.0,0.0)")
_PLACES = str.split("0 -1 1: ... : () [0,1] [[0]] {0}>1 {0}")
_CALLS = str.split("""
    abs({0}) -{0} +{0} ~{0} not({0}>{1}) {1}<{0}<3 {0}[0] {0}[-1] {0}[1:] {0}[::-1] {0}[...] {0}[()] {0}[:2] {0}[None]
    {0}[:] {0}[[0,1]] {0}[np.array(0)] {0}[1,...] {0}[np.array([True,False,True])] {0}[{1}] {0}[{0}>{1}] {0}[{1}:]
    [{0},{1}][{0}>{1}] {0}.T {0}.sum() {0}.max() {0}.min() {0}.mean() {0}.var() {0}.prod() {0}.all() {0}.any()
    {0}.argmax() {0}.argmin() {0}.cumsum() {0}.max(0) {0}.sum(-1) {0}.max(axis=()) {0}.copy() {0}.ravel()
    {0}.flatten() {0}.squeeze() {0}.transpose() {0}.reshape(-1) {0}.reshape(()) {0}.clip(0,1) {0}.clip(-1,{1})
    {0}.round() {0}.round(1) {0}.take(0) {0}.take([0,1]) {0}.size {0}.ndim {0}.shape[0] {0}.astype(np.uint8)
    {0}.astype(np.int64) {0}.astype(bool) {0}.astype(np.float16) {0}.astype(np.float32) {0}.astype({1}.dtype)
    {0}.astype({0}.dtype,copy=False) {0}.dtype.type({0}) np.float32({0}) bool({0}) int({0}) float({0}) str({0})
    round({0}) len({0}) sum({0}) max({0}) min({0}) any({0}) all({0}) list({0}) tuple({0}) [1]*{0} (1,2)*{0}
    max({0},{1}) min({0},{1}) max({0},{1},{0}) max([{0},{1}],key=abs) sum([{0},{1}]) sum([v*2for(v)in({0})])
    ({0}and({1})) ({0}or({1})) {0}in({1},1) {0}in({1},{0}) ({0},)==({1},) [{0},{1}].index({1}) [{0},{1}].count({0})
    {{"a":{0},"b":{1}}}["a"] {{0:{0},1:{1}}}[1] {{1:2}}.get({0},{1}) (lambda(v):v+{0})({1}) (lambda*v:v[0])({0},{1})
    (lambda(a,b={0}):a+b)({1}) np.abs({0}) np.sqrt(np.abs({0})) np.square({0}) np.sign({0}) np.floor({0}) np.ceil({0})
    np.rint({0}) np.trunc({0}) np.fabs({0}) np.isnan({0}) np.isinf({0}) np.isfinite({0}) np.signbit({0})
    np.logical_not({0}) np.negative({0}) np.positive({0}) np.invert({0}) np.exp({0}) np.reciprocal({0}) np.copy({0})
    np.array({0}) np.asarray({0}) np.zeros_like({0}) np.ones_like({0}) np.full_like({0},2) np.full_like({0},{1})
    np.array([{0},1]) np.array([{0},{1}]) np.sort({0}) np.argsort({0}) np.median({0}) np.diff({0}) np.diff({0},0)
    np.cumsum({0}) np.nan_to_num({0}) np.nan_to_num({0},nan={1}) np.round({0}) np.round({0},2) np.flip({0})
    np.fliplr({0}) np.flipud({0}) np.rot90({0}) np.roll({0},1) np.roll({0},{1}) np.tile({0},2) np.tile({0},())
    np.repeat({0},2) np.repeat({0},{1}) np.pad({0},1) np.pad({0},1,constant_values={1}) np.squeeze({0})
    np.expand_dims({0},0) np.ravel({0}) np.reshape({0},(-1,1)) np.reshape({0},{1}.shape) np.transpose({0})
    np.moveaxis({0},0,-1) np.swapaxes({0},0,-1) np.broadcast_to({0},(2,3)) np.broadcast_to({0},{1}.shape)
    np.take({0},0) np.take({0},{1}) np.take(TABLE,{0}) np.take(PLANE,{0},axis=0) TABLE[{0}] PLANE[{0}] PLANE[{0},1]
    np.eye(3)[{0}] np.searchsorted(EDGES,{0}) np.searchsorted(TABLE,{0}) np.searchsorted({0},{1})
    np.digitize({0},EDGES) np.digitize({0},[2,1,0]) np.concatenate([{0},{1}]) np.stack([{0},{1}]) np.outer({0},{1})
    np.add.reduce({0}) np.maximum.reduce({0}) np.multiply.reduce({0}) np.logical_or.reduce({0})
    np.add.reduce({0},dtype=np.int8) np.all({0}) np.any({0}) np.max({0}) np.min({0},axis=0) np.sum({0},keepdims=True)
    np.mean({0}) np.argmax({0}) np.std({0}) np.linalg.norm({0}) np.dot({0},{1}) np.matmul({0},{1}) np.arange({0})
    np.zeros({0}) np.maximum({0},{1}) np.minimum({0},{1}) np.fmax({0},{1}) np.fmin({0},{1}) np.where({0}>{1},{0},{1})
    np.where({0},{1},0) np.where({0}>1,{0},-{0}) np.clip({0},0,1) np.clip({0},None,2) np.clip({0},-0.0,0)
    np.clip({0},{1},5) np.clip(1,{0},{1}) np.add({0},{1}) np.add({0},1,where={1}) np.add({0},{1},out={0})
    np.multiply({0},2,out={1}) np.add({0},1,dtype=np.float64) np.multiply({0},{1}) np.subtract({0},{1})
    np.divide({0},{1}) np.floor_divide({0},{1}) np.remainder({0},{1}) np.fmod({0},{1}) np.power({0},{1})
    np.float_power({0},2) np.copysign({0},{1}) np.hypot({0},{1}) np.arctan2({0},{1}) np.logical_and({0},{1})
    np.logical_xor({0},{1}) np.equal({0},{1}) np.less({0},{1}) np.greater_equal({0},{1}) np.left_shift({0},{1})
    np.left_shift(1,{0}) np.bitwise_and({0},{1}) np.atleast_1d({0}) divmod({0},{1})[0]
""")
_SPACED = {
    "for(v)in(": " for v in (",
    "lambda(v)": "lambda v",
    "lambda(a,b={0})": "lambda a, b={0}",
    "lambda*": "lambda *",
}
_SPACED |= {"}in(": "} in (", "}and(": "} and (", "}or(": "} or (", "not(": "not (", "{0:": "{0: "}


class Writer:
    """Writes a function.

    Args:
      random: makes all choices.
      arguments: their names.
    """

    def __init__(self, random: Random, arguments: list[str]) -> None:
        self._random, self._arguments = random, arguments
        self.names = list(arguments)
        self.lines: list[str] = []
        self._made = 0

    def text(self, result: str) -> str:
        """The function that returns this."""
        return "\n".join([f"def function({', '.join(self._arguments)}):", *self.lines, f"    return {result}"])

    def grow(self, works: Callable[[str], bool]) -> str:
        """The function, of statements that work."""
        random, wanted = self._random, self._random.randint(1, 9)
        for _ in range(40):
            names, lines = list(self.names), list(self.lines)
            self.lines += self._statement("    ", 2)
            if self.lines != lines and works(self.text(f"{self.names[-1]}, 1")):
                wanted -= 1
            else:
                self.names, self.lines = names, lines
            if not wanted:
                break
        names = random.choice([self.names, random.choices(self.names, k=random.randint(1, 3))])
        return self.text(names[0] if len(names) == 1 else random.choice(["({},)", "[{}]"]).format(", ".join(names)))

    def _new(self) -> str:
        self._made += 1
        return f"t{self._made}"

    def _operand(self, depth: int) -> str:
        if depth and self._random.random() < 0.45:
            return f"({self._expression(depth - 1)})"
        return self._random.choice(self.names if self._random.random() < 0.75 else _CONSTANTS)

    def _right(self, operator: str) -> str:
        return self._random.choice(_BOUNDED[operator].split()) if operator in _BOUNDED else self._operand(1)

    def _expression(self, depth: int) -> str:
        if self._random.random() < 0.35:
            operator = self._random.choice(_OPERATORS)
            return f"{self._operand(depth)} {operator} {self._right(operator)}"
        text = self._random.choice(_CALLS)
        for old, new in _SPACED.items():
            text = text.replace(old, new)
        return text.format(self._operand(depth), self._operand(depth))

    def _condition(self) -> str:
        name = self._random.choice(self.names)
        return self._random.choice(
            [name, f"not {name}", f"{name} {self._random.choice(['<', '>', '=='])} {self._operand(1)}"]
        )

    def _statement(self, indent: str, depth: int) -> list[str]:
        random, name = self._random, self._random.choice(self.names)
        form = random.random()
        if form < 0.55:
            texts = [self._expression(2)] if form < 0.42 else [name] if form < 0.5 else _ARRAYS
            self.names.append(self._new())
            return [f"{indent}{self.names[-1]} = {random.choice(texts)}"]
        if form < 0.68:
            operator = random.choice(_IN_PLACE)
            return [f"{indent}{name} {operator} {self._right(operator)}"]
        if form < 0.8 or not depth:
            place = random.choice(_PLACES).format(random.choice(self.names))
            return [f"{indent}{name}[{place}] = {self._operand(1)}"]
        return self._compound(indent, depth, name)

    def _compound(self, indent: str, depth: int, name: str) -> list[str]:
        random, known, below, counter = self._random, list(self.names), indent + "    ", self._new()
        inner = [line for _ in range(random.randint(1, 2)) for line in self._statement(below, depth - 1)]
        inner.append(f"{below}{name} = {self._operand(1)}")
        self.names = known  # what is named inside may not be there afterwards
        form = random.randrange(4)
        if form == 0:
            return [f"{indent}if {self._condition()}:", *inner]
        if form == 1:
            return [
                f"{indent}if {self._condition()}:",
                *inner,
                f"{indent}else:",
                f"{below}{name} = {self._expression(1)}",
            ]
        if form == 2:
            head = f"{indent}while {self._condition()} and {counter} < 3:"
            return [f"{indent}{counter} = 0", head, *inner, f"{below}{counter} += 1"]
        return [f"{indent}for {counter} in {random.choice([name, '(1, 2)', f'zip({name}, {name})'])}:", *inner]


@lru_cache(maxsize=16)
def function_of(text: str) -> Callable[..., Any]:
    """The function of a text."""
    space = dict(SPACE)
    exec(text, space)
    function: Callable[..., Any] = space["function"]
    return function
