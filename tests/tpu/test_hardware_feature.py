# SPDX-License-Identifier: Apache-2.0
import pytest

from distinput.tpu.topology import HardwareFeature, HardwareFeatures


@pytest.mark.parametrize("number, word", [(0, "UNSUPPORTED"), (1, "V1"), (2, "V2"), (9, "UNSUPPORTED")])
def test_a_version_has_a_name(number: int, word: str) -> None:
    feature = HardwareFeature(HardwareFeatures(number, 4))
    assert feature.embedding_feature is HardwareFeature.EmbeddingFeature(word)
    assert feature.num_embedding_devices_per_chip == 4


def test_an_object_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r"such as TPUClusterResolver\.tpu_hardware_feature, got None"):
        HardwareFeature(None)
