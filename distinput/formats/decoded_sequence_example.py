# SPDX-License-Identifier: Apache-2.0
"""Looking into `tf.train.SequenceExample` messages without knowing their features."""

from typing import Any

from distinput.errors import InvalidArgumentError
from distinput.formats.decoded_example import message_of, values_of
from distinput.formats.example_encoding import fields_of, list_of, lists_of
from distinput.kernels.protobuf import MalformedError

__all__ = ["decode_sequence_example"]


def decode_sequence_example(serialized: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """All features of one SequenceExample, as they are: for a look into an unknown file.

    Args:
      serialized: the message.

    Returns:
      The features of the whole, as `decode_example` has them, and by key a list with an array for each step.

    Raises:
      InvalidArgumentError: it is no such message.

    >>> import distinput as di
    >>> decode_sequence_example(di.io.encode_sequence_example({"id": 7}, {"words": [["a", "b"], ["c"]]}))
    ({'id': array([7])}, {'words': [array([b'a', b'b'], dtype=object), array([b'c'], dtype=object)]})
    """
    try:
        content = message_of(serialized)
        context, lists = lists_of(content), _feature_lists(content)
        return (
            {key.decode(errors="replace"): values_of(*context[key]) for key in sorted(context)},
            {key.decode(errors="replace"): [values_of(*each) for each in lists[key]] for key in sorted(lists)},
        )
    except MalformedError as error:
        raise InvalidArgumentError(
            f"decode_sequence_example: serialized must be a tf.train.SequenceExample message, got {serialized!r:.60}"
        ) from error


def _feature_lists(message: bytes) -> dict[bytes, list[tuple[int, bytes]]]:
    """The kind and the list of each step, by key; the last entry of a key wins."""
    by_name: dict[bytes, list[tuple[int, bytes]]] = {}
    for number, form, lists in fields_of(message):
        for number2, form2, entry in fields_of(lists) if (number, form) == (2, 2) else ():
            if (number2, form2) != (1, 2):
                continue
            key, steps = b"", list[bytes]()
            for number3, form3, content in fields_of(entry):
                if (number3, form3) == (1, 2):
                    key = content
                elif (number3, form3) == (2, 2):
                    steps += [step for number4, form4, step in fields_of(content) if (number4, form4) == (1, 2)]
            by_name[key] = [list_of(step) for step in steps]
    return by_name
