# SPDX-License-Identifier: Apache-2.0
import pytest

import distinput as di


def test_embedding_is_declined_with_a_reason() -> None:
    with pytest.raises(
        AttributeError, match=r"no attribute 'embedding': keep the table in a di\.Variable .*docs/tensorflow"
    ):
        di.tpu.experimental.embedding  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'Topologi'; did you mean Topology"):
        di.tpu.experimental.Topologi  # type: ignore[attr-defined] # noqa: B018
    assert not hasattr(di.tpu.experimental, "__wrapped__")
