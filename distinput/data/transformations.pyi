# SPDX-License-Identifier: Apache-2.0
# Written by docs/make_stub.py from the ops; do not change it by hand.
# `self` is a Dataset, the one class that has these methods, and at run time the only one; faces may overlap, the first that
# fits is taken.
# mypy: disable-error-code="misc, overload-overlap"
# pyright: reportGeneralTypeIssues=false, reportOverlappingOverload=false

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Never, TypeAlias, TypeVar, TypeVarTuple, overload

import numpy as np
from numpy.typing import NDArray

from distinput.values.sparse_tensor import SparseTensor
from distinput.data.dataset import Dataset
from distinput.data.iterator import T_co
from distinput.formats.features import Feature
from distinput.plan.options import Options
from distinput.plan.options import SkipErrors

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
S = TypeVar("S", bound=np.generic)
S1 = TypeVar("S1", bound=np.generic)
S2 = TypeVar("S2", bound=np.generic)
S3 = TypeVar("S3", bound=np.generic)
S4 = TypeVar("S4", bound=np.generic)
U = TypeVar("U")
Ts = TypeVarTuple("Ts")

Leaf: TypeAlias = S | NDArray[S]  # a row of an array: a scalar or an array
Python: TypeAlias = bool | int | float | complex | str | list[Any]  # these become NumPy's
Truth: TypeAlias = bool | np.bool_

class Transformations(Generic[T_co]):
    def as_decimal(
        self,
        columns: Sequence[str] | None = None,
        dtype: str = 'decimal',
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Deliver decimals as `decimal.Decimal`, or as float64.

        A decimal of a file is the text of its digits, at any precision, since NumPy has no type for it. Objects are made where an
        element is handed out, to a loop or to a function, as those of `as_text`; inside, and in `element_spec`, the text stays.
        An array of float64 has the nearest numbers, so most decimals are rounded.

        Shapes: unchanged. Order: unchanged. State: that of the input.

        Args:
          columns: names of components, with dots in them for those of inner dicts; all that are decimals in files when None.
          dtype: "decimal" or "float64".

        Raises:
          InvalidArgumentError: a column is not there or is not a text, or `dtype` is neither; at iteration, a text is no number.

        >>> import distinput as di
        >>> ds = di.data.Dataset.from_tensor_slices({"price": ["1.50", "2.00"], "name": ["a", "b"]})
        >>> ds.as_decimal(["price"]).to_list()
        [{'price': Decimal('1.50'), 'name': b'a'}, {'price': Decimal('2.00'), 'name': b'b'}]
        >>> ds.as_decimal(["price"], dtype="float64").to_list()
        [{'price': 1.5, 'name': b'a'}, {'price': 2.0, 'name': b'b'}]

        Source: distinput's own.
        """

    def as_rows(self, columns: Sequence[str] | None = None, name: str | None = None) -> Dataset[T_co]:
        """Deliver lists of structs as lists of dicts, as Hugging Face does, for chat templates and tokenizers.

        A list of objects in a file, such as the messages of a chat, is a dict of lists. It stays that inside and in `element_spec`.
        Where an element is handed out, a list of dicts is made of it, with Python's numbers; a `Nullable` in it is the value, or
        None. In a batch there is a list of them for each row. In tables and files of tables they are lists of structs.

        Shapes: unchanged. Order: unchanged. State: that of the input.

        Args:
          columns: names of components, at least one; "messages.calls" for lists of structs in lists of structs. None: all that are
            lists of structs in files; a struct of lists stays one.

        Raises:
          InvalidArgumentError: a column is not there, or is not a dict of lists; at iteration, its lists differ in length.

        >>> import distinput as di
        >>> import pathlib
        >>> _ = pathlib.Path("a.jsonl").write_text('{"messages": [{"role": "user", "n": 1}, {"role": "tool", "n": 2}]}')
        >>> ds = di.data.JsonLinesDataset("a.jsonl")
        >>> ds.as_rows(["messages"]).as_text().to_list()
        [{'messages': [{'role': 'user', 'n': 1}, {'role': 'tool', 'n': 2}]}]

        Source: rows of `datasets.Dataset`.
        """

    def as_text(self, columns: Sequence[str] | None = None, name: str | None = None) -> Dataset[T_co]:
        """Deliver text as `str`; arrays of text, in batches and lists, have the dtype `np.dtypes.StringDType`.

        Inside, and in `element_spec`, text stays bytes: it is decoded where an element is handed out, to a loop or to a function.
        What a function returns is bytes again, as everywhere, so call it before the function that wants text, or last.

        Shapes: unchanged. Order: unchanged. State: that of the input.

        Args:
          columns: names of components, with dots in them for those of inner dicts; all text when None.

        Raises:
          InvalidArgumentError: a column is not there or is not a text; at iteration, a text is not UTF-8.

        >>> import distinput as di
        >>> ds = di.data.Dataset.from_tensor_slices({"name": ["Ada", "Zoë"], "age": [30, 41]})
        >>> ds.as_text().to_list()
        [{'name': 'Ada', 'age': 30}, {'name': 'Zoë', 'age': 41}]
        >>> ds.batch(2).as_text()[0]["name"].tolist()
        ['Ada', 'Zoë']

        Source: distinput's own.
        """

    def as_uint8(self, columns: Sequence[str] | None = None, name: str | None = None) -> Dataset[T_co]:
        """Deliver text as uint8 arrays of its bytes, without a Python object for each text, for PyTorch and JAX.

        Behind `batch` a batch of text is a `RaggedTensor`: the bytes of all texts, and where each begins and ends. That is a nested
        tensor of PyTorch, and a pair of values and row splits for JAX. `bytes(row)` is the text again.

        Shapes: text is `[length]`, arrays of text `[n]` are ragged tensors `[n, length]`, of uint8; the rest is unchanged.
        Order: unchanged. State: that of the input.

        Args:
          columns: names of components, with dots in them for those of inner dicts; all text when None.

        Raises:
          InvalidArgumentError: a column is not there or is no text, is part of a sparse tensor, or of rows that `as_rows` makes.

        >>> import distinput as di
        >>> ds = di.data.Dataset.from_tensor_slices({"name": ["Ada", "Zoë"], "age": [30, 41]})
        >>> next(iter(ds.batch(2).as_uint8()))["name"]
        RaggedTensor([[65, 100, 97], [90, 111, 195, 171]], dtype=uint8)

        Source: distinput's own; `tf.io.decode_raw` is for texts of one length.
        """

    @overload
    def batch(
        self: Dataset[Never],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Stack `batch_size` consecutive elements into one.

        Shapes: [...] becomes [batch_size, ...]; the last batch may have fewer rows. Order: unchanged. State: where the first
        element of the next batch stands in the input.

        Args:
          batch_size: elements in a batch, at least 1.
          drop_remainder: leave out a last batch that is not full.
          num_parallel_calls, deterministic: accepted as TensorFlow's; stacking is a view and needs no threads.

        Raises:
          InvalidArgumentError: `batch_size` is below 1; at iteration, elements of one batch differ in shape.

        >>> import distinput as di
        >>> list(di.data.Dataset.range(5).batch(2).as_numpy_iterator())
        [array([0, 1]), array([2, 3]), array([4])]

        Source: `tf.data.Dataset.batch`.
        """
    @overload
    def batch(
        self: Dataset[bytes],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[NDArray[np.object_]]: ...
    @overload
    def batch(
        self: Dataset[tuple[Leaf[S1], Leaf[S2]]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[NDArray[S1], NDArray[S2]]]: ...
    @overload
    def batch(
        self: Dataset[tuple[Leaf[S1], Leaf[S2], Leaf[S3]]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[NDArray[S1], NDArray[S2], NDArray[S3]]]: ...
    @overload
    def batch(
        self: Dataset[tuple[Leaf[S1], Leaf[S2], Leaf[S3], Leaf[S4]]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[NDArray[S1], NDArray[S2], NDArray[S3], NDArray[S4]]]: ...
    @overload
    def batch(
        self: Dataset[Mapping[str, Leaf[S]]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, NDArray[S]]]: ...
    @overload
    def batch(
        self: Dataset[Leaf[S]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[NDArray[S]]: ...
    @overload
    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Any]: ...

    def batch_by_tokens(
        self,
        max_tokens: int,
        layout: str = 'padded',
        length_func: Callable[..., Any] | None = None,
        max_rows: int | None = None,
        on_longer: str = 'raise',
        padding_values: Any = None,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Put as many consecutive elements into a batch as have at most `max_tokens` tokens together.

        A batch ends before the element with which it would have more. Padding counts: a padded batch has as many tokens as its
        elements times the longest of them. To get less padding, let elements of similar length share batches: call it in the
        `reduce_func` of `group_by_window`, with lengths as keys; or take `layout="ragged"`.

        Shapes: [...] becomes [elements, ...], padded to the longest of the batch as by `padded_batch`, or ragged as by
        `ragged_batch`. Order: unchanged. State: where the first element of the next batch stands in the input.

        Args:
          max_tokens: tokens in a batch, from 1 to 2**31 - 1.
          layout: "padded" or "ragged".
          length_func: element -> its tokens. None: the first dimension of the longest component; of those alone whose first
            dimension the element spec leaves open, if there are any.
          max_rows: elements in a batch; None: any number.
          on_longer: what to do with an element that has more than `max_tokens`: "raise" an error, or deliver it "alone", as a batch
            of its own.
          padding_values: for "padded", as for `padded_batch`.

        Raises:
          InvalidArgumentError: an argument is none of these; a component has an unknown rank; without `length_func`, none has
            a first dimension; at iteration, an element has more than `max_tokens`.
          TypeError: `padding_values` do not fit the elements; at iteration, `length_func` returns no whole number.

        >>> import distinput as di
        >>> import numpy as np
        >>> ds = di.data.Dataset.range(1, 6).map(lambda n: np.full(n, n))
        >>> [batch.shape for batch in ds.batch_by_tokens(8)]
        [(2, 2), (2, 4), (1, 5)]
        >>> [batch.to_list() for batch in ds.batch_by_tokens(6, "ragged")]
        [[[1], [2, 2], [3, 3, 3]], [[4, 4, 4, 4]], [[5, 5, 5, 5, 5]]]

        Source: batches by a number of tokens are those of Vaswani and others: Attention is all you need (2017), section 5.1.
        """

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Padded batches of elements of similar length.

        Bucket i takes lengths from `bucket_boundaries[i - 1]` to below `bucket_boundaries[i]`; a bucket that has reached its batch
        size is delivered. At the end the rest follows, buckets of shorter elements first. Shapes: [...] becomes [batch size, ...],
        padded as by `padded_batch`. State: as for `group_by_window`.

        Args:
          element_length_func: element -> its length. The built-in `len` is never called for elements with a first axis, since
            their lengths are known.
          bucket_boundaries: ascending lengths.
          bucket_batch_sizes: a batch size for each bucket, one more than there are boundaries.
          padded_shapes, padding_values, drop_remainder: as for `padded_batch`.
          pad_to_bucket_boundary: pad unknown dimensions to one below the bucket's upper boundary, not to the longest element.
          no_padding: stack the elements as they are.

        Raises:
          InvalidArgumentError: there is not one batch size for each bucket; at iteration, with `pad_to_bucket_boundary`, an
            element reaches the last boundary.

        >>> import distinput as di
        >>> import numpy as np
        >>> ds = di.data.Dataset.range(1, 6).map(lambda n: np.full(n, n))
        >>> ds = ds.bucket_by_sequence_length(lambda x: len(x), [3], [2, 2])
        >>> [batch.shape for batch in ds]
        [(2, 2), (2, 4), (1, 5)]

        Source: `tf.data.Dataset.bucket_by_sequence_length`.
        """

    def cache(
        self,
        filename: str = '',
        name: str | None = None,
        *,
        max_bytes: int | None = None,
        shared: str = '',
    ) -> Dataset[T_co]:
        """Keep the elements of the first complete pass in memory and serve later passes from there.

        Shapes and order: those of the first pass, which later ones make again where it was left before its end, as by `take` behind
        the cache. State: the row, the epoch of the first pass, and the input's state while its elements are made. A restart in a
        new process makes the pass again; so does `skip`, since only a complete pass is kept.
        An op that reads by position (`global_shuffle`) makes all elements before its first one. A worker of a job whose policy
        divides what is below keeps its own part. Elements that failed are not kept: what `ignore_errors` behind the cache left out
        is an error again for those who do not leave it out. A pickled or deeply copied dataset has no elements in its cache yet:
        the other process makes the same ones itself.

        With a `filename` they are kept in a folder of this name, for later programs and other processes too. It holds a whole pass
        or nothing: a pass that ends before all elements are made is not kept, which a warning tells where a step behind the cache,
        such as `take`, ends it: put that before the cache. One pass writes; others that run meanwhile, in any process, make their
        elements themselves. After a process that was killed, the next pass that would make the same elements goes on where it was.

        With `shared` each pipeline has a folder of its own below that one, named by its steps, its files, and what its functions do
        and read from outside: all code of yours that they reach, in other modules too, globals, closures, the attributes of
        objects, and tokenizers of packages. So jobs share what is alike, and one with another function, another tokenizer or
        changed files makes its elements anew, beside the others.

        Args:
          filename: a folder, local or a URL, for a cache on disk; empty: in memory.
          max_bytes: on disk, a pass that needs more is not kept, with a warning; None: no limit.
          shared: a folder, local or a URL, for the caches of many pipelines and jobs.

        Raises:
          InvalidArgumentError: `max_bytes` is less than 1, or given for a cache in memory; `filename` and `shared` are both given;
            at iteration, the folder is a file.
          FailedPreconditionError: at iteration, the folder was written by another pipeline, or with other code of yours that its
            functions reach; the message says how it differs.
          OSError: at iteration, the files could not be written; nothing is left of them.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(3).shuffle(3, seed=1).cache()
        >>> ds.to_list() == ds.to_list()
        True
        >>> di.data.Dataset.range(3).cache("numbers").to_list(), di.data.Dataset.range(3).cache("numbers").to_list()
        ([0, 1, 2], [0, 1, 2])

        >>> kept = [di.data.Dataset.range(3).map(lambda x, n=n: x * n).cache(shared="caches") for n in (2, 3, 2)]
        >>> [ds.to_list() for ds in kept]
        [[0, 2, 4], [0, 3, 6], [0, 2, 4]]
        >>> import os
        >>> len(os.listdir("caches"))
        2

        Source: `tf.data.Dataset.cache`.
        """

    def concatenate(self, dataset: Dataset[T_co], name: str | None = None) -> Dataset[T_co]:
        """The elements of `input`, then those of `dataset`.

        Shapes: where the two differ, the common shape with unknown dimensions. State: which of the two, and its state.

        Args:
          dataset: the dataset that follows; same structure and dtypes.

        Raises:
          TypeError: structures or dtypes differ.

        >>> import distinput as di
        >>> di.data.Dataset.range(2).concatenate(di.data.Dataset.range(5, 7)).to_list()
        [0, 1, 5, 6]

        Source: `tf.data.Dataset.concatenate`.
        """

    def copied(self, name: str | None = None) -> Dataset[T_co]:
        """Elements that share no memory with the input, and may be written to.

        `batch`, `rebatch`, `take` and the cut for replicas deliver views of what they read, which costs nothing; but a view keeps
        its whole source alive, and writing to it writes to the source. This op copies every element once. The memory of elements
        that the consumer has dropped is used again for later ones.

        Shapes and order: unchanged. State: where the next element stands in the input.

        >>> import distinput as di
        >>> import numpy as np
        >>> source = np.zeros(4)
        >>> for batch in di.data.Dataset.from_tensor_slices(source).batch(2).copied():
        ...     batch += 1
        >>> source
        array([0., 0., 0., 0.])

        Source: distinput's own; TensorFlow always delivers copies.
        """

    @overload
    def filter(self: Dataset[Never], predicate: Callable[..., Any], name: str | None = None) -> Dataset[Any]:
        """Keep the elements for which `predicate` is true.

        Shapes and order: unchanged. State: where the next element stands in the input.

        Args:
          predicate: called as `map` calls its function; must return one boolean. Or an expression of pyarrow over the names of
            components, such as `pyarrow.compute.field("x") > 3`: elements stay for which it is true, not null, and row groups of
            Parquet files whose statistics rule it out are not read.

        Raises:
          TypeError: `predicate` cannot be called, or returns anything but a boolean.
          InvalidArgumentError: the expression names a component that is not there, or is not boolean.

        >>> import distinput as di
        >>> di.data.Dataset.range(6).filter(lambda x: x % 2 == 1).to_list()
        [1, 3, 5]
        >>> import pyarrow.compute as pc
        >>> rows = di.data.Dataset.from_tensor_slices({"x": [1, 4, 5], "y": [2.0, 0.5, 3.0]})
        >>> rows.filter((pc.field("x") > 3) & (pc.field("y") > 1)).to_list()
        [{'x': 5, 'y': 3.0}]

        Source: `tf.data.Dataset.filter`.
        """
    @overload
    def filter(
        self: Dataset[tuple[*Ts]],
        predicate: Callable[[*Ts], Truth],
        name: str | None = None,
    ) -> Dataset[tuple[*Ts]]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], Truth], name: str | None = None) -> Dataset[T_co]: ...

    @overload
    def flat_map(self: Dataset[Never], map_func: Callable[..., Dataset[U]], name: str | None = None) -> Dataset[U]:
        """The elements of the datasets that `map_func` makes of each element, one dataset after the other.

        Shapes: those of the elements of these datasets. State: where the current element stands in the input, and the state of its
        dataset.

        Args:
          map_func: called as `map` calls its function; returns a dataset.

        Raises:
          TypeError: `map_func` returns something else.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).flat_map(lambda x: di.data.Dataset.range(x)).to_list()
        [0, 0, 1, 0, 1, 2]

        Source: `tf.data.Dataset.flat_map`.
        """
    @overload
    def flat_map(
        self: Dataset[tuple[*Ts]],
        map_func: Callable[[*Ts], Dataset[U]],
        name: str | None = None,
    ) -> Dataset[U]: ...
    @overload
    def flat_map(self, map_func: Callable[[T_co], Dataset[U]], name: str | None = None) -> Dataset[U]: ...

    def global_shuffle(
        self,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """All elements in a random order, each order as likely as any other, in constant memory.

        Shapes: unchanged. State: seed, epoch and position. The elements are read by position: directly if the input has random
        access (arrays, ranges, local Arrow and npy files, and what is derived from them), otherwise from the nearest position that
        can be reached (Parquet pages; fixed-length records, whose number `assert_cardinality` must state), up to 128 MB at a time,
        or a thirty-second of the free memory up to 512 MB; while they are put in order, three times as much.

        Args:
          seed: any integer; None draws one, which the state remembers.
          reshuffle_each_iteration: False gives the same order in every pass.

        Raises:
          InvalidArgumentError: the input's elements cannot be counted or reached by position.

        >>> import distinput as di
        >>> sorted(di.data.Dataset.range(5).global_shuffle(seed=7).to_list())
        [0, 1, 2, 3, 4]

        Source: a Feistel network over the positions with cycle walking (Black and Rogaway, Ciphers with arbitrary finite
        domains, CT-RSA 2002).
        """

    @overload
    def group_by_window(
        self: Dataset[Never],
        key_func: Callable[..., Any],
        reduce_func: Callable[[np.int64, Dataset[Any]], Dataset[U]],
        window_size: int | None = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset[U]:
        """Collect elements by key; pass a group that has reached its window size to `reduce_func`, and deliver its dataset.

        At the end the remaining groups follow in ascending order of their keys. Shapes: those of the datasets that
        `reduce_func` returns. State: only positions: where the oldest waiting element stands, and up to which row the elements of
        each key have been delivered; a restart calls `key_func` again from there.

        Args:
          key_func: element -> integer.
          reduce_func: (key, dataset of the group's elements) -> dataset.
          window_size: elements in a group.
          window_size_func: key -> elements in a group of that key.

        Raises:
          InvalidArgumentError: not exactly one of the two sizes is given, or a size is below 1.
          TypeError: at iteration, `key_func` returns no integer or `reduce_func` no dataset.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(6).group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), window_size=2)
        >>> [batch.tolist() for batch in ds]
        [[0, 2], [1, 3], [4], [5]]

        Source: `tf.data.Dataset.group_by_window`.
        """
    @overload
    def group_by_window(
        self: Dataset[tuple[*Ts]],
        key_func: Callable[[*Ts], int | np.integer[Any]],
        reduce_func: Callable[[np.int64, Dataset[tuple[*Ts]]], Dataset[U]],
        window_size: int | None = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset[U]: ...
    @overload
    def group_by_window(
        self,
        key_func: Callable[[T_co], int | np.integer[Any]],
        reduce_func: Callable[[np.int64, Dataset[T_co]], Dataset[U]],
        window_size: int | None = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset[U]: ...

    def ignore_errors(
        self,
        log_warning: bool = False,
        name: str | None = None,
        *,
        also: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> Dataset[T_co]:
        """Drop elements that fail in any step before this one, and go on with the next element.

        What is lost with an error is what TensorFlow drops: after `zip` the whole tuple, after `batch` the elements gathered for
        its batch (the whole batch if a `map` comes directly before it), after damage in a file the rest of that file; of CSV and
        JSON Lines a record that cannot be read is dropped alone. A Python generator that has raised yields nothing more, so its
        elements end there. `stats()` tells how many elements were dropped, and the last error.

        AttributeError, ImportError, NameError and SyntaxError, with their subclasses, are raised: they mostly say that the program
        is wrong, so that every element would be dropped. So is the TypeError of a function that takes another number of arguments
        than elements have components, and an error of Python's own, such as IndexError, that a decoder or a parser of this library
        raises within a function: it is a defect of the library, and says nothing of the element.

        Shapes and order: unchanged. State: that of the input.

        Args:
          log_warning: send each error to the logger "distinput".
          also: those of these four classes that are to be dropped as well, a class or a tuple of them.

        Raises:
          TypeError: `also` is no class of errors.
          Exception: an error after which nothing can follow, such as a worker process that has died, or an error of your own op if
            the op is not `tolerant`.

        >>> import distinput as di
        >>> import operator
        >>> ds = di.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
        >>> ds.map(lambda x: operator.truediv(1, float(x))).enumerate().ignore_errors().to_list()
        [(0, 1.0), (1, 0.5), (3, 0.25)]

        Source: `tf.data.Dataset.ignore_errors`.
        """

    @overload
    def interleave(
        self: Dataset[Never],
        map_func: Callable[..., Dataset[U]],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[U]:
        """The elements of the datasets that `map_func` makes of each element, with `cycle_length` of them taking turns.

        A turn is `block_length` elements. When a dataset ends, its turn ends at once; the dataset of the next element takes its
        place when the round comes back to it.

        Shapes: those of the elements of these datasets. State: the elements whose datasets are open, and their states.

        Args:
          map_func: called as `map` calls its function; returns a dataset.
          cycle_length: how many datasets are open at a time. None or AUTOTUNE: as many as the process has cores; a third of that
            with `num_parallel_calls=AUTOTUNE`, and never more than any other `num_parallel_calls`. The order then depends on the
            number of cores, unless the dataset is distributed over several workers.
          block_length: elements in a turn; 1 if None.
          num_parallel_calls: how many of them are read ahead, on threads; at most `cycle_length`, or AUTOTUNE.
          deterministic: accepted as TensorFlow's; the order is kept either way.

        Raises:
          InvalidArgumentError: `cycle_length` or `block_length` below 1, `num_parallel_calls` above `cycle_length`.

        >>> import distinput as di
        >>> di.data.Dataset.range(1, 4).interleave(lambda x: di.data.Dataset.from_tensors(x).repeat(2), cycle_length=2).to_list()
        [1, 2, 1, 2, 3, 3]

        Source: `tf.data.Dataset.interleave`; tensorflow/core/kernels/data/interleave_dataset_op.cc for the turns.
        """
    @overload
    def interleave(
        self: Dataset[tuple[*Ts]],
        map_func: Callable[[*Ts], Dataset[U]],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[U]: ...
    @overload
    def interleave(
        self,
        map_func: Callable[[T_co], Dataset[U]],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[U]: ...

    @overload
    def map(
        self: Dataset[Never],
        map_func: Callable[..., U],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        output_signature: Any = None,
        processes: bool = False,
        on_error: str | SkipErrors | None = None,
        rng: bool = False,
        seed: int | None = None,
        executor: Any = None,
        vectorize: bool | str = 'auto',
    ) -> Dataset[U]:
        """Call `map_func` on every element.

        Shapes: whatever `map_func` returns: any nest; a list becomes a tuple. Order: unchanged.
        State: where the next element stands in the input.

        A function compiled with numba (`njit`) that takes and returns numbers, or tuples of them, is called in compiled code, a
        block at a time; its results have the types that numba infers.

        Args:
          map_func: called with the components of a tuple as arguments, with anything else as one argument.
          num_parallel_calls: threads that call it, useful when `map_func` releases the GIL; AUTOTUNE measures whether they are.
          deterministic: accepted as TensorFlow's; the order is kept either way, so that a state stays one position.
          synchronous: accepted as TensorFlow's, for a map without `num_parallel_calls`: it is called in the iterator's thread.
          use_unbounded_threadpool: accepted as TensorFlow's; there are `num_parallel_calls` threads.
          output_signature: a nest of `TensorSpec` for what it returns. Elements are checked against it, and integers become as wide
            as it says. Without it, the spec is found by calling `map_func`: on the first element if it has text, bytes or unknown
            dimensions, otherwise on some numbers. Elements are checked against that spec too.
          processes: call it in `num_parallel_calls` worker processes (one for each core if that is None or AUTOTUNE) instead of
            threads, for a `map_func` that holds the GIL. It must be picklable: a function at the top level of a module, or
            anything if cloudpickle is installed. Workers are fresh interpreters, started by the first pass and kept for later ones
            until the dataset is dropped; arrays go through shared memory. Another worker takes the place of one that was killed,
            and gets its elements again.
          on_error: what happens when `map_func` raises: "raise" that error; "skip" the element, up to a budget; `SkipErrors(...)`,
            with the budget and a file for what was left out. None: as `Options.on_error` says, or "raise".
          rng: call it with a `numpy.random.Generator` of the element's own as last argument. Its numbers follow from the seed, the
            pass, the step and the position of the element, so they are the same on any number of threads, processes and workers
            and after a restart, and others in each pass. Files are not dealt to workers below this map (policy FILE).
          seed: with `rng`, any integer; None draws one, which a saved state remembers.
          executor: any `concurrent.futures.Executor` that calls it, such as those of Dask, mpi4py and `ProcessPoolExecutor`; or a
            function that makes one, which is called again when one has broken. Results come in order. `num_parallel_calls` parts
            are under way (two for each worker if that is None, as far as the executor tells how many it has). A part whose
            worker was lost is sent again, up to four times. A `ProcessPoolExecutor` that broke is replaced by one like it.
          vectorize: whether a function of NumPy is called once for a whole block where its results stay the same to the bit; what
            the function returns never depends on it. "auto": for small elements, by rules that are exact by construction. True:
            for all elements, also by rules that are found exact when they are measured. False: never. `explain()` says what
            happens, and why.

        Raises:
          InvalidArgumentError: both `synchronous` and `num_parallel_calls` are given.
          TypeError: `map_func` cannot be called, or cannot be sent to worker processes; at iteration, a result does not fit
            `output_signature`, or is of another kind than the other results.
          UnavailableError: at iteration, worker processes died each time that they had the same elements, or `executor` is broken.
          DataLossError: at iteration, more elements failed than `on_error` allows.

        >>> import distinput as di
        >>> list(di.data.Dataset.range(3).map(lambda x: x * 10).as_numpy_iterator())
        [np.int64(0), np.int64(10), np.int64(20)]

        Source: `tf.data.Dataset.map`.
        """
    @overload
    def map(
        self: Dataset[tuple[*Ts]],
        map_func: Callable[[*Ts], Python],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        output_signature: Any = None,
        processes: bool = False,
        on_error: str | SkipErrors | None = None,
        rng: bool = False,
        seed: int | None = None,
        executor: Any = None,
        vectorize: bool | str = 'auto',
    ) -> Dataset[Any]: ...
    @overload
    def map(
        self: Dataset[tuple[*Ts]],
        map_func: Callable[[*Ts], U],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        output_signature: Any = None,
        processes: bool = False,
        on_error: str | SkipErrors | None = None,
        rng: bool = False,
        seed: int | None = None,
        executor: Any = None,
        vectorize: bool | str = 'auto',
    ) -> Dataset[U]: ...
    @overload
    def map(
        self,
        map_func: Callable[[T_co], Python],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        output_signature: Any = None,
        processes: bool = False,
        on_error: str | SkipErrors | None = None,
        rng: bool = False,
        seed: int | None = None,
        executor: Any = None,
        vectorize: bool | str = 'auto',
    ) -> Dataset[Any]: ...
    @overload
    def map(
        self,
        map_func: Callable[[T_co], U],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        output_signature: Any = None,
        processes: bool = False,
        on_error: str | SkipErrors | None = None,
        rng: bool = False,
        seed: int | None = None,
        executor: Any = None,
        vectorize: bool | str = 'auto',
    ) -> Dataset[U]: ...

    def map_rows(
        self,
        map_func: Callable[..., Any],
        output_signature: Any = None,
        name: str | None = None,
        *,
        on_error: str | SkipErrors | None = None,
    ) -> Dataset[Any]:
        """Call `map_func` on many elements at once: every leaf has a first axis of rows, in its arguments and its results.

        Shapes: elements [...] are passed as [n, ...], and a result [n, ...] is n elements [...]. How many rows are passed at once
        is not defined; the function must treat rows independently. Rows that differ in length are passed as a `RaggedTensor`, and
        may be returned as one; rows that differ otherwise are passed as a list of arrays. State: where the next element stands in
        the input.

        Args:
          map_func: called with the components of a tuple as arguments, with anything else as one argument.
          output_signature: a nest of `TensorSpec` for one element that it returns; elements are checked against it, and integers
            become as wide as it says.
          on_error: what happens when `map_func` raises for an element, alone or among others: "raise" that error; "skip" the
            element, up to a budget; `SkipErrors(...)`, with the budget and a file for what was left out. None: as
            `Options.on_error` says, or "raise".

        Raises:
          TypeError: at iteration, a result does not fit `output_signature`.
          DataLossError: at iteration, more elements failed than `on_error` allows.
          InvalidArgumentError: at iteration, `map_func` returns another number of rows than it was given.

        >>> import distinput as di
        >>> di.data.Dataset.range(5).map_rows(lambda x: x * 2 + 1).to_list()
        [1, 3, 5, 7, 9]

        Source: the idea of `datasets.Dataset.map(batched=True)`; TensorFlow writes `batch(n).map(f).unbatch()`.
        """

    def on_workers(
        self,
        service: Any,
        max_outstanding_requests: int | None = None,
        shared_bytes: int = 0,
        target_workers: str = 'ANY',
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Run the steps before this one on input workers, and deliver their elements in exact order.

        The steps that call functions, and depend on single elements alone (`map`, `map_rows`, `filter`, `parse_example`), run at
        the workers. Each worker gets pieces: elements of the input of these steps, as columns. What depends on more than one
        element (`batch`, `shuffle`, `zip`) stays here, and so does what a shuffle fetches by position. Records of local files that
        can be fetched by number are read at workers that have the same files, others here; `explain` says which, and which steps go
        to workers. What a killed process had to do is done again by another one. Where nobody knows what a function returns, the
        first element of a pass is made here, and decides what the others must look like.

        Shapes and order: unchanged. State: that of the input: a state that was saved with this step restores without it, and the
        other way round.

        Args:
          service: "threads:4" for threads of this process, "processes:4" for worker processes of this machine. For a running
            cluster, the address of a Dask scheduler ("tcp://host:8786") or of Ray ("ray://host:10001"; "ray" for the one of this
            program), a `distributed.Client`, or a `concurrent.futures.Executor`.
          max_outstanding_requests: how many pieces may be under way or wait to be used; None: four for each worker. Never more
            than hold 256 MiB with their results.
          shared_bytes: of the last results, that other jobs get which send the same pieces to the same Dask cluster or executor:
            those with the same pipeline, at the same place; at Ray to those of the same program. 0: none.
          target_workers: "ANY": all pieces go to workers. "AUTO": those stay here whose way to a worker and back would cost this
            program more than their work, as measured; not where results are shared.

        Raises:
          InvalidArgumentError: `service` names no workers, `max_outstanding_requests` is less than 1, `shared_bytes` is negative
            or given with workers that no other job reaches, or `target_workers` is neither "ANY" nor "AUTO".
          TypeError: `service` is nothing of these, or at iteration, a function cannot be sent to a process.
          EngineMissing: at iteration, the package of the cluster is not installed.
          FailedPreconditionError: at iteration, a worker of a cluster has another version of the code.
          UnavailableError: at iteration, there is no cluster at the address, or workers end each time that they have the same
            work.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(6).map(lambda x: x * x).batch(2)
        >>> [batch.tolist() for batch in ds.on_workers("threads:2")]
        [[0, 1], [4, 9], [16, 25]]

        Source: the idea of `tf.data.experimental.service`, which gives up order and state.
        """

    def pack(
        self,
        length: int,
        strategy: str = 'best_fit',
        on_longer: str = 'raise',
        window: int | None = None,
        padding_values: Any = None,
        cu_seqlens: bool = False,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Put sequences side by side into rows of `length` tokens, so that little of a row is padding.

        Consecutive sequences are planned together, as many as fill about `window` rows: the longest first, each into a row that
        has room for it. Rows are delivered in the order of their first sequences, and a row holds its sequences in their order.
        Every sequence is in exactly one row, and moves by less than a window. A sequence without tokens takes no place.

        Shapes: each component [n, ...] becomes [length, ...]. A dict gets two more components, `segment_ids` and `positions`,
        int32 [length]; anything else becomes a tuple (packed, segment_ids, positions). `segment_ids` numbers the sequences of a row
        from 1, and is 0 where there is padding; `positions` counts the tokens of each sequence from 0. With `cu_seqlens=True`
        another component of that name follows, int32 [sequences + 1]: where each sequence begins, and `length`; padding counts as
        the last one. Kernels of attention over sequences of many lengths take it as it is (`flash_attn_varlen_func`). State: where
        the first sequence of the window stands, and how many of its rows were sent; a restart plans the window again.

        Args:
          length: tokens in a row.
          strategy: "best_fit" puts a sequence into the row with the least room that suffices, "first_fit" into the first row with
            room. They fill rows equally well; best fit plans faster.
          on_longer: what to do with a sequence longer than a row: "raise" an error, "split" it into several sequences of `length`
            tokens and a rest, whose positions each begin at 0, or "truncate" it.
          window: rows planned together, at least 1; None: about a million tokens, from 64 to 512 rows. More rows leave less
            padding and need more memory.
          padding_values: a nest of scalars, or one for all components; None, for all or for a part of the nest, stands for 0,
            or NaT in dates and times.
          cu_seqlens: also give the places in each row at which its sequences begin and the last one ends.

        Raises:
          InvalidArgumentError: an argument is none of these; a component has no first dimension, or other unknown dimensions; at
            iteration, the components of an element differ in length, or a sequence is longer than a row.
          TypeError: a component is text or a dataset.

        >>> import distinput as di
        >>> import numpy as np
        >>> ds = di.data.Dataset.range(1, 5).map(lambda n: np.full(n, n))
        >>> for tokens, segment_ids, positions in ds.pack(6):
        ...     print(tokens, segment_ids, positions)
        [1 3 3 3 0 0] [1 2 2 2 0 0] [0 0 1 2 0 0]
        [2 2 4 4 4 4] [1 1 2 2 2 2] [0 1 0 1 2 3]
        >>> [cu_seqlens.tolist() for *_, cu_seqlens in ds.pack(6, cu_seqlens=True)]
        [[0, 1, 4, 6], [0, 2, 6]]

        Source: the rule is that of Johnson, Demers, Ullman, Garey and Graham (SIAM Journal on Computing 3, 1974); segment ids and
        positions are those of T5X and Grain.
        """

    @overload
    def padded_batch(
        self: Dataset[Never],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Pad `batch_size` consecutive elements to one shape and stack them.

        Shapes: [...] becomes [batch_size, ...]; a dimension that `padded_shapes` leaves open (None or -1) is that of the longest
        element of the batch. State: where the first element of the next batch stands in the input.

        Args:
          batch_size: elements in a batch, at least 1.
          padded_shapes: a nest of shapes; None: those of the element spec.
          padding_values: a nest of scalars, or one for all components; None, for all or for a part of the nest, stands for 0,
            an empty string, or NaT in dates and times.
          drop_remainder: leave out a last batch that is not full.

        Raises:
          InvalidArgumentError: a shape or value does not go with the elements.
          TypeError: a padding value has another dtype than its component.
          DataLossError: at iteration, an element is longer than its padded shape.

        >>> import distinput as di
        >>> import numpy as np
        >>> ds = di.data.Dataset.range(1, 4).map(lambda x: np.full(x, x)).padded_batch(3)
        >>> next(iter(ds)).tolist()
        [[1, 0, 0], [2, 2, 0], [3, 3, 3]]

        Source: `tf.data.Dataset.padded_batch`.
        """
    @overload
    def padded_batch(
        self: Dataset[bytes],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[NDArray[np.object_]]: ...
    @overload
    def padded_batch(
        self: Dataset[tuple[Leaf[S1], Leaf[S2]]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[NDArray[S1], NDArray[S2]]]: ...
    @overload
    def padded_batch(
        self: Dataset[tuple[Leaf[S1], Leaf[S2], Leaf[S3]]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[NDArray[S1], NDArray[S2], NDArray[S3]]]: ...
    @overload
    def padded_batch(
        self: Dataset[tuple[Leaf[S1], Leaf[S2], Leaf[S3], Leaf[S4]]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[NDArray[S1], NDArray[S2], NDArray[S3], NDArray[S4]]]: ...
    @overload
    def padded_batch(
        self: Dataset[Mapping[str, Leaf[S]]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[dict[str, NDArray[S]]]: ...
    @overload
    def padded_batch(
        self: Dataset[Leaf[S]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[NDArray[S]]: ...
    @overload
    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]: ...

    @overload
    def parse_example(
        self: Dataset[bytes],
        features: Mapping[str, Feature],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        on_error: str | SkipErrors | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Parse serialized Examples into dicts from feature name to value.

        Shapes: a string becomes one value for each feature: [*shape] for `FixedLenFeature`, [number of values] for `VarLenFeature`;
        a vector of k strings becomes k of each, [k, *shape], with a `RaggedTensor` of k rows for `VarLenFeature` and
        `RaggedFeature`, and sequences padded to the longest for `FixedLenSequenceFeature`. A `SparseFeature` becomes a
        `SparseTensor`, a `RaggedFeature` with partitions a `RaggedTensor` of rows of rows. Order: unchanged. State: where the
        next element stands in the input. All records of a block are parsed by one call of compiled code.

        Args:
          features: dict from name to `FixedLenFeature`, `VarLenFeature` or another feature of `distinput.io`.
          num_parallel_calls, deterministic: accepted as TensorFlow's.
          on_error: what happens when a record cannot be parsed: "raise" that error; "skip" the element (a vector of records as a
            whole), up to a budget; `SkipErrors(...)`, with the budget and a file for what was left out. None: as
            `Options.on_error` says, or "raise".

        Raises:
          TypeError: elements are not strings.
          InvalidArgumentError: at iteration, a record is malformed or lacks a feature; the message names record and feature.
          DataLossError: at iteration, more elements failed than `on_error` allows.

        >>> import distinput as di
        >>> record = di.io.encode_example({"x": [1, 2], "y": [0.5]})
        >>> ds = di.data.Dataset.from_tensors(record)
        >>> list(ds.parse_example({"x": di.io.VarLenFeature("int64"), "y": di.io.FixedLenFeature([], "float32")}))
        [{'x': array([1, 2]), 'y': np.float32(0.5)}]

        Source: `tf.data.experimental.parse_example_dataset`; TensorFlow's `tf.io.parse_single_example` for the rules.
        """
    @overload
    def parse_example(
        self: Dataset[NDArray[np.object_]],
        features: Mapping[str, Feature],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        on_error: str | SkipErrors | None = None,
    ) -> Dataset[dict[str, Any]]: ...

    def parse_sequence_example(
        self,
        context_features: Mapping[str, Any] | None = None,
        sequence_features: Mapping[str, Any] | None = None,
        name: str | None = None,
        *,
        on_error: str | SkipErrors | None = None,
    ) -> Dataset[T_co]:
        """Parse serialized SequenceExamples into tuples of a dict of the context and a dict of the sequences.

        Shapes: a string becomes (context, sequences). In the context, [*shape] for `FixedLenFeature` and [number of values] for
        `VarLenFeature` and `RaggedFeature`; in the sequences, [steps, *shape] for `FixedLenSequenceFeature` and a `RaggedTensor`
        [steps, values] for the others. Order: unchanged. State: where the next element stands in the input. `padded_batch` and
        `ragged_batch` make batches of them.

        Args:
          context_features: features of the whole, by key; None: none.
          sequence_features: features of each step, by key: `FixedLenSequenceFeature`, `VarLenFeature` or `RaggedFeature`.
          on_error: "raise", "skip" or `SkipErrors(...)`, for a record that cannot be parsed. None: as `Options.on_error` says, or
            "raise".

        Raises:
          TypeError: elements are not strings.
          InvalidArgumentError: there are no features, or one is of a class that does not fit its place; at iteration, a record is
            malformed or lacks a feature; the message names record and feature.

        >>> import distinput as di
        >>> record = di.io.encode_sequence_example({"id": 7}, {"x": [[1, 2], [3, 4], [5, 6]]})
        >>> steps = {"x": di.io.FixedLenSequenceFeature([2], "int64")}
        >>> di.data.Dataset.from_tensors(record).parse_sequence_example({"id": di.io.FixedLenFeature([], "int64")}, steps).to_list()
        [({'id': 7}, {'x': [[1, 2], [3, 4], [5, 6]]})]

        Source: `tf.io.parse_single_sequence_example` for the rules.
        """

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> Dataset[T_co]:
        """Make up to `buffer_size` elements ahead, on a thread.

        Shapes and order: unchanged. State: that of the input, since it travels with each block; elements that were made ahead and
        not delivered are made again after a restart. The thread hands over whole blocks and ends with the iteration.

        Args:
          buffer_size: how many elements ahead; 0 does nothing. AUTOTUNE or None measures whether a thread pays, since handing over
            costs more than making cheap elements, and how many blocks ahead are enough, within `Options.autotune.ram_budget`;
            `stats()` shows what it chose, and the next pass begins with that.

        Raises:
          InvalidArgumentError: `buffer_size` is negative and not AUTOTUNE.

        >>> import distinput as di
        >>> di.data.Dataset.range(3).prefetch(2).to_list()
        [0, 1, 2]

        Source: `tf.data.Dataset.prefetch`.
        """

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: Any = 'int64',
        name: str | None = None,
    ) -> Dataset[Any]:
        """Stack `batch_size` consecutive elements, which may differ in shape, into one.

        The element spec decides, never the data: a component whose shape is known is stacked as `batch` does. One with unknown
        dimensions becomes a `RaggedTensor`, which is ragged up to the last unknown dimension. One that is a `RaggedTensor` already
        becomes a ragged tensor of one more dimension.

        Shapes: [...] becomes [batch_size, ...]; the last batch may have fewer rows. Order: unchanged. State: where the first
        element of the next batch stands in the input. No value is copied where rows lie one after the other.

        Args:
          batch_size: elements in a batch, at least 1.
          drop_remainder: leave out a last batch that is not full.
          row_splits_dtype: accepted as TensorFlow's, int32 or int64; row splits are int64.

        Raises:
          InvalidArgumentError: `batch_size` is below 1, or another `row_splits_dtype`; at iteration, elements of a batch differ in
            a dimension that is not ragged, or in rank.

        >>> import distinput as di
        >>> import numpy as np
        >>> ds = di.data.Dataset.range(4).map(lambda n: np.arange(n), output_signature=di.TensorSpec([None], "int64"))
        >>> for batch in ds.ragged_batch(2):
        ...     print(batch)
        RaggedTensor([[], [0]], dtype=int64)
        RaggedTensor([[0, 1], [0, 1, 2]], dtype=int64)

        Source: `tf.data.Dataset.ragged_batch`.
        """

    def rebatch(
        self,
        batch_size: int | Sequence[int],
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Batches whose sizes cycle through `batch_size`, filled across the borders of the input's batches.

        Shapes: [b, ...] becomes [batch_size, ...]; the last batch may have fewer rows. A size of 0 gives an empty batch, without
        a look at the input. Only the rows of batches that cross a border are copied. State: where the next row stands in the rows
        of the input, and which size is next.

        Args:
          batch_size: one size, or a list of sizes that is repeated.
          drop_remainder: leave out a last batch that is not full.

        Raises:
          InvalidArgumentError: a size is negative, all are 0, or the input has components without a first axis.
          FailedPreconditionError: at iteration, rows of one batch differ in shape.

        >>> import distinput as di
        >>> list(di.data.Dataset.range(6).batch(4).rebatch([1, 2]).as_numpy_iterator())
        [array([0]), array([1, 2]), array([3]), array([4, 5])]

        Source: `tf.data.Dataset.rebatch`.
        """

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Leave out elements at random so that the classes of those that stay are distributed as `target_dist` says.

        An element stays with the probability `target_dist[c] / initial_dist[c]` of its class `c`, divided by the largest such
        ratio. Whether it does is a function of the seed, the pass, and its position. No element is delivered twice; TensorFlow may
        repeat elements, and delivers others for the same seed.

        Shapes: (class, element), as many as stay. Order: unchanged. State: where the next element stands, its position, and,
        without `initial_dist`, how many elements of each class there were.

        Args:
          class_func: element -> its class, an integer from 0 to `len(target_dist) - 1`.
          target_dist: the wanted share of each class.
          initial_dist: the share that each class has; None: estimated from the elements so far.
          seed: any integer; None draws one, which a saved state remembers.

        Raises:
          InvalidArgumentError: a distribution is no vector of numbers from 0 on, or its sum is 0; they differ in length; a wanted
            class does not occur; at iteration, `class_func` returns a number that is no class.
          TypeError: `class_func` is not callable; at iteration, it returns no integer.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(1000).rejection_resample(lambda x: np.int32(x % 4 == 0), [0.5, 0.5], [0.75, 0.25], seed=1)
        >>> classes = [int(c) for c, _ in ds]
        >>> 0.45 < sum(classes) / len(classes) < 0.55
        True

        Source: `tf.data.Dataset.rejection_resample`; ADR 0054 says what differs.
        """

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset[T_co]:
        """The elements `count` times; without end if `count` is None or negative, unless a pass has no element.

        Shapes and order: unchanged; a shuffle before it makes a new order for each pass. State: the pass, and the input's state.

        Args:
          count: how many times.

        >>> import distinput as di
        >>> di.data.Dataset.range(2).repeat(2).to_list()
        [0, 1, 0, 1]

        Source: `tf.data.Dataset.repeat`.
        """

    def scan(
        self,
        initial_state: Any,
        scan_func: Callable[[Any, T_co], tuple[Any, U]],
        name: str | None = None,
    ) -> Dataset[U]:
        """Call `scan_func(state, element)` on every element; it returns the next state and an output.

        Shapes: those of the outputs. Order: unchanged. State: the carried value, and where the next element stands.

        Args:
          initial_state: the first value of the state, any nest; a list becomes an array.
          scan_func: (state, element) -> (state, output); a tuple element is one argument. A list in its result becomes an array.

        Raises:
          TypeError: at iteration, the state changes its structure or a dtype.
          StateError: at iteration, a restored value of another shape gives outputs that are unlike the others.

        >>> import distinput as di
        >>> import numpy as np
        >>> di.data.Dataset.range(4).scan(np.int64(0), lambda s, x: (s + x, s + x)).to_list()
        [0, 1, 3, 6]

        Source: `tf.data.Dataset.scan`.
        """

    def select(self, columns: Sequence[str], name: str | None = None) -> Dataset[T_co]:
        """Keep these components of elements that are dicts, in this order.

        Parquet and Arrow files are read without the other columns, whose nulls and damage are then no errors. "messages.role" keeps
        of the dict "messages" its component "role" alone.

        Where a dict or a map may be null, the mark stays with what is kept of it, and "m.value" is the part of this name, as it is
        without nulls. Where nothing in it has this name, that is the value of a `Nullable`, without the mark.

        Shapes: dicts with these keys. Order: unchanged. State: that of the input.

        Args:
          columns: names of components, at least one, with dots in them for parts of inner dicts.

        Raises:
          InvalidArgumentError: elements have no such component, or `columns` is one name, empty, or names one twice.
          TypeError: elements are not dicts.

        >>> import distinput as di
        >>> ds = di.data.Dataset.from_tensor_slices({"x": [1, 2], "y": [3, 4], "z": [5, 6]})
        >>> ds.select(["z", "x"]).to_list()
        [{'z': 5, 'x': 1}, {'z': 6, 'x': 2}]
        >>> ds.map(lambda row: {"all": row, "x": row["x"]}).select(["all.y"]).to_list()
        [{'all': {'y': 3}}, {'all': {'y': 4}}]

        Source: `datasets.Dataset.select_columns`.
        """

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset[T_co]:
        """Keep the elements whose position is `index` modulo `num_shards`.

        Shapes and order: unchanged. State: how many rows to skip before the next one that is kept.

        Args:
          num_shards: how many workers share the elements, at least 1.
          index: which of them this worker is, from 0.

        Raises:
          InvalidArgumentError: `num_shards` is not positive, or `index` is not one of the shards.

        Warns:
          InputWarning: the order of the elements is random and was given no seed, so that it differs between processes.

        >>> import distinput as di
        >>> di.data.Dataset.range(10).shard(num_shards=3, index=1).to_list()
        [1, 4, 7]

        Source: `tf.data.Dataset.shard`.
        """

    def shard_batches(self, num_shards: int, index: int, name: str | None = None) -> Dataset[T_co]:
        """The rows of worker `index` in each batch: consecutive rows, whose number differs by at most one between workers.

        For training loops without a strategy: every worker has the same number of steps, the rows of all workers together are the
        batch, and a worker may get no row of a short batch. Shapes: [b, ...] becomes [b / num_shards rounded up or down, ...], as
        views. State: where the input stands, and after how many batches, -1 if that is not known; it resumes on any number of
        workers, and so does that of a process that iterated the batches without this step.

        Args:
          num_shards: how many workers share each batch, at least 1.
          index: which of them this worker is, from 0.

        Raises:
          InvalidArgumentError: `index` is not one of the shards, elements have no batch axis, or their order is random and was
            given no seed, so that each process would cut other batches.

        >>> import distinput as di
        >>> di.data.Dataset.range(7).batch(5).shard_batches(num_shards=2, index=1).to_list()
        [[3, 4], [6]]

        Source: distinput's own; the balanced cut of `InputOptions(balanced_split=True)`.
        """

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Deliver a random one of `buffer_size` waiting elements, and let the next element of the input take its place.

        Shapes: unchanged. State: seed, epoch and position; for inputs without random access also where the oldest row of the
        buffer stands, but never a row. If the input has random access, only row numbers are shuffled.

        Args:
          buffer_size: how many elements wait, at least 1; 1 changes nothing. UNKNOWN_CARDINALITY: all elements.
          seed: any integer; None draws one, which the state remembers.
          reshuffle_each_iteration: False gives the same order in every pass.

        Raises:
          InvalidArgumentError: `buffer_size` is below 1, or UNKNOWN_CARDINALITY for an infinite input.

        >>> import distinput as di
        >>> sorted(di.data.Dataset.range(5).shuffle(3, seed=7).to_list())
        [0, 1, 2, 3, 4]

        Source: the meaning of `tf.data.Dataset.shuffle`; the orders are distinput's own.
        """

    def skip(self, count: int, name: str | None = None) -> Dataset[T_co]:
        """All but the first `count` elements; none if `count` is negative.

        Shapes and order: unchanged. State: that of the input, and how many elements are still to be skipped. If the rows of the
        input can be counted, skipped rows are not read.

        Args:
          count: how many elements to skip.

        >>> import distinput as di
        >>> di.data.Dataset.range(5).skip(3).to_list()
        [3, 4]

        Source: `tf.data.Dataset.skip`.
        """

    def snapshot(
        self,
        path: str,
        compression: str | None = 'AUTO',
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Keep the elements of the first complete pass in a folder; later passes, here and in other processes, read them there.

        As `cache(filename)` does, but below `path` each pipeline has a folder of its own, named by its fingerprint: a pipeline that
        changed is written anew beside the old one, which stays until you remove it.

        Shapes: unchanged. Order: that of the first pass, or that of `reader_func`. State: as for a cache on disk.

        Args:
          path: the folder of the snapshots, local or a URL.
          compression: None, "LZ4" or "ZSTD"; "SNAPPY" and "GZIP" stand for these two, and "AUTO" for None.
          reader_func: a dataset with a dataset for each file -> the dataset that later passes give; None: one file after the other.
          shard_func: element -> the number of its file, an integer from 0 on; None: files of 256 MiB, in order.
            Where a function deals, the elements are also kept in order until the pass ends, which takes the space twice: from there
            the pass after one that was killed goes on.

        Raises:
          InvalidArgumentError: the compression is unknown; at iteration, `path` is a file, or `shard_func` returns no number.
          OSError: at iteration, the files could not be written; nothing is left of them.

        >>> import distinput as di
        >>> shuffled = di.data.Dataset.range(100).shuffle(100).snapshot("shuffled")
        >>> shuffled.to_list() == shuffled.to_list()
        True

        Source: `tf.data.Dataset.snapshot`.
        """

    def sparse_batch(self, batch_size: int, row_shape: Any, name: str | None = None) -> Dataset[SparseTensor]:
        """Collect `batch_size` consecutive elements, arrays of one rank, in a `SparseTensor` of all their values.

        Shapes: arrays [...] become a sparse tensor [batch_size, ...]; the last batch may have fewer rows. Order: unchanged, values
        in the order of rows. State: where the first element of the next batch stands in the input.

        Args:
          batch_size: elements in a batch, at least 1.
          row_shape: the shape of each row, at least that of every element; None or -1 in a dimension: the largest of the batch.

        Raises:
          TypeError: elements are not single arrays.
          InvalidArgumentError: `batch_size` is below 1; an element has another rank than `row_shape`.
          DataLossError: at iteration, an element is larger than `row_shape`.

        >>> import distinput as di
        >>> import numpy as np
        >>> ds = di.data.Dataset.range(1, 3).map(lambda n: np.full(n, n), output_signature=di.TensorSpec([None], "int64"))
        >>> batch, = ds.sparse_batch(2, row_shape=[4])
        >>> batch.indices.tolist(), batch.values.tolist(), batch.dense_shape.tolist()
        ([[0, 0], [1, 0], [1, 1]], [1, 2, 2], [2, 4])

        Source: `tf.data.Dataset.sparse_batch`.
        """

    def take(self, count: int, name: str | None = None) -> Dataset[T_co]:
        """The first `count` elements, or all if `count` is negative.

        Shapes and order: unchanged. State: how many are left.

        Args:
          count: how many elements.

        >>> import distinput as di
        >>> di.data.Dataset.range(10).take(3).to_list()
        [0, 1, 2]

        Source: `tf.data.Dataset.take`.
        """

    @overload
    def take_while(self: Dataset[Never], predicate: Callable[..., Any], name: str | None = None) -> Dataset[Any]:
        """Elements up to the first one for which `predicate` is false.

        Shapes and order: unchanged. State: where the next element stands in the input.

        Args:
          predicate: called as `map` calls its function; must return one boolean.

        >>> import distinput as di
        >>> di.data.Dataset.range(10).take_while(lambda x: x < 4).to_list()
        [0, 1, 2, 3]

        Source: `tf.data.Dataset.take_while`.
        """
    @overload
    def take_while(
        self: Dataset[tuple[*Ts]],
        predicate: Callable[[*Ts], Truth],
        name: str | None = None,
    ) -> Dataset[tuple[*Ts]]: ...
    @overload
    def take_while(self, predicate: Callable[[T_co], Truth], name: str | None = None) -> Dataset[T_co]: ...

    @overload
    def unbatch(self: Dataset[Never], name: str | None = None) -> Dataset[Any]:
        """Split every element along its first axis.

        Shapes: [b, ...] becomes b elements [...]. Order: unchanged. State: that of the input, and how many rows of its next
        element to skip.

        Raises:
          InvalidArgumentError: a component is a scalar, or first dimensions differ (at iteration if the spec does not tell).

        >>> import distinput as di
        >>> di.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch().to_list()
        [1, 2, 3, 4]

        Source: `tf.data.Dataset.unbatch`.
        """
    @overload
    def unbatch(self: Dataset[tuple[A, B]], name: str | None = None) -> Dataset[tuple[Any, Any]]: ...
    @overload
    def unbatch(self: Dataset[tuple[A, B, C]], name: str | None = None) -> Dataset[tuple[Any, Any, Any]]: ...
    @overload
    def unbatch(self: Dataset[Mapping[str, Any]], name: str | None = None) -> Dataset[dict[str, Any]]: ...
    @overload
    def unbatch(self, name: str | None = None) -> Dataset[Any]: ...

    def unique(self, name: str | None = None) -> Dataset[T_co]:
        """Elements that have not occurred before; elements must have one component.

        Shapes: unchanged. Order: that of first occurrences. State: how many elements of the input have been read; a restart
        reads them again, since a state holds no data.

        Raises:
          TypeError: the element has several components, or is neither int32, int64 nor a string.

        >>> import distinput as di
        >>> di.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique().to_list()
        [1, 37, 2]

        Source: `tf.data.Dataset.unique`.
        """

    @overload
    def window(
        self: Dataset[Never],
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Windows of `size` elements as datasets; every component of the element becomes a dataset of its own.

        Rows of `as_rows` are one component, and text of `as_text` is `str` in windows too.

        Shapes: a leaf [...] becomes a dataset of up to `size` elements [...]. State: where the first element of the next
        window stands in the input.

        Args:
          size: elements in a window, at least 1.
          shift: elements from the beginning of one window to that of the next; `size` if None.
          stride: take every `stride`-th element.
          drop_remainder: leave out windows at the end that are not full.

        >>> import distinput as di
        >>> [list(w.as_numpy_iterator()) for w in di.data.Dataset.range(4).window(3, shift=2)]
        [[np.int64(0), np.int64(1), np.int64(2)], [np.int64(2), np.int64(3)]]

        Source: `tf.data.Dataset.window`.
        """
    @overload
    def window(
        self: Dataset[bytes],
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Dataset[bytes]]: ...
    @overload
    def window(
        self: Dataset[NDArray[S]],
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Dataset[NDArray[S]]]: ...
    @overload
    def window(
        self: Dataset[S],
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Dataset[S]]: ...
    @overload
    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]: ...

    def with_options(self, options: Options, name: str | None = None) -> Dataset[T_co]:
        """The same elements, with options for the whole pipeline.

        Args:
          options: settings; they take precedence over those made earlier.

        Raises:
          TypeError: `options` is not an `Options` object.

        >>> import distinput as di
        >>> di.data.Dataset.range(2).with_options(di.data.Options()).to_list()
        [0, 1]

        Source: `tf.data.Dataset.with_options`.
        """
