"""Models that can't fit into a device's memory are refused before they are made or copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgebench.harness.artifacts import Conversion
from edgebench.harness.device_profiles import find_profile
from edgebench.harness.fit import (
    Room,
    contradiction,
    least_bytes,
    least_of,
    refuse_if_too_large,
)
from edgebench.harness.store.sizes import ToldSize
from edgebench.harness.store.sources import PathSource, PypiSource, SyntheticSource
from edgebench.harness.store.store import AS_PUBLISHED, ModelStore, StoredFile

GIB = 2**30
LLAMA2_7B_Q4_0 = 3_825_807_296
"""Bytes of the published file llama-2-7b.Q4_0.gguf."""


def test_a_model_must_be_smaller_than_the_memory_that_is_left() -> None:
    """3.56 GiB do not fit into 2 GiB; into 4 GiB with 0.3 GiB for the system they do."""
    said = refuse_if_too_large(LLAMA2_7B_Q4_0, find_profile("raspberry-pi-5:2GiB"), None)
    assert said == (
        "the model's 3.6 GiB do not fit into the device's memory, which is 2.0 GiB by the profile "
        "raspberry-pi-5:2GiB, 0.3 GiB of it for the system"
    )
    assert refuse_if_too_large(LLAMA2_7B_Q4_0, find_profile("raspberry-pi-5:4GiB"), None) is None


def test_the_smaller_of_what_profile_and_machine_say_counts() -> None:
    """A profile that claims more than the machine has is not believed, nor the other way round."""
    profile = find_profile("raspberry-pi-5")  # 8 GiB
    said = refuse_if_too_large(LLAMA2_7B_Q4_0, profile, 2 * GIB)
    assert said is not None
    assert "2.0 GiB as it says itself" in said
    said = refuse_if_too_large(9 * GIB, profile, 64 * GIB)
    assert said is not None
    assert "8.0 GiB by the profile raspberry-pi-5" in said


def test_small_sizes_are_told_in_units_that_show_them() -> None:
    """A model of 2 MiB does not fit into a machine of 4 MiB; neither is 0.0 GiB."""
    said = refuse_if_too_large(2 << 20, None, 4 << 20)
    assert said is not None
    assert "the model's 2.0 MiB do not fit" in said
    assert said.endswith(
        "which is 4.0 MiB as it says itself, no more than the 307.2 MiB that a system keeps"
    )


@pytest.mark.parametrize(
    ("needed", "fits"), [(int(0.69 * GIB), True), (int(0.7 * GIB) + 1, False), (GIB, False)]
)
def test_the_border_is_memory_less_what_the_system_keeps(needed: int, fits: bool) -> None:
    """Of 1 GiB, 0.3 GiB are the system's: 0.69 GiB fit and 0.7 GiB do not."""
    assert (refuse_if_too_large(needed, None, GIB) is None) is fits


def test_nothing_is_refused_where_the_memory_is_not_known() -> None:
    """Without a profile and without the machine there is nothing to compare with."""
    assert refuse_if_too_large(10**15, None, None) is None
    assert Room().why_not(10**15) is None
    assert Room(machine_memory_bytes=GIB).why_not(None) is None


@pytest.mark.parametrize(
    ("says", "contradicts"),
    [(7.87, False), (8.0, False), (6.1, False), (3.9, True), (15.7, True)],
)
def test_a_profile_that_the_machine_contradicts_is_told(says: float, contradicts: bool) -> None:
    """A board with 8 GiB says 7.87 of itself; one that says 3.9 or 15.7 is another one."""
    note = contradiction(find_profile("raspberry-pi-5"), int(says * GIB))
    assert (note is not None) is contradicts
    if note is not None:
        assert "8.0 GiB" in note
        assert f"{says:.1f} GiB" in note
        assert "is it the right profile?" in note


def test_what_a_conversion_takes_at_least_is_told_by_names_alone(tmp_path: Path) -> None:
    """The expected size may be twice too large: half of it is certain; without a hint, nothing."""
    wanted = Conversion({}, "made", {}, needed_bytes=1000)

    def source(path: Path) -> StoredFile:
        return StoredFile(path, "abc", 9, path.name, AS_PUBLISHED, None)

    assert least_bytes(source(Path("/m/model.f16.gguf")), wanted) == 500
    assert least_bytes(source(Path("/m/model.gguf")), wanted) is None
    # A folder's floats may be of 32 bits, where 16 were expected.
    assert least_bytes(source(tmp_path), wanted) == 250


def test_a_source_is_refused_by_its_size_before_it_is_read(tmp_path: Path) -> None:
    """A sparse file of 6 GiB: by its name of 4 bits, 8 bits of it take at least 6 GiB again."""
    path, store = tmp_path / "model-Q4_0.gguf", ModelStore(tmp_path / "store")
    with path.open("wb") as file:
        file.truncate(6 * GIB)
    told = store.told_size(PathSource(path))
    assert told == ToldSize("model-Q4_0.gguf", 6 * GIB)
    assert store.told_size(PathSource(tmp_path)) is None
    assert store.told_size(PathSource(tmp_path / "none")) is None
    assert store.told_size(PypiSource("none", "1.0", "none.gguf")) is None
    assert least_of(told, "source") == 6 * GIB
    eight = least_of(told, "Q8_0")
    assert eight is not None
    assert 6 * GIB <= eight <= 12 * GIB
    assert least_of(ToldSize("model.gguf", 6 * GIB), "Q8_0") is None


@pytest.mark.parametrize(
    ("quantization", "published"), [("Q4_0", LLAMA2_7B_Q4_0), ("Q8_0", 7_161_089_728)]
)
def test_made_up_weights_are_as_large_as_the_published_file(
    tmp_path: Path, quantization: str, published: int
) -> None:
    """Scales included: 3.56 GiB of Llama 2 7B in Q4_0, and not four bits a weight."""
    told = ModelStore(tmp_path).told_size(SyntheticSource("llama2-7b", quantization))
    assert told is not None
    assert told.bytes == pytest.approx(published, rel=0.002)
    said = refuse_if_too_large(told.bytes, find_profile("raspberry-pi-5:2GiB"), None)
    assert said is not None
    assert said.startswith(f"the model's {published / GIB:.1f} GiB do not fit")


def test_a_folder_of_float32_is_not_taken_for_twice_as_many_weights() -> None:
    """8 GB of float32 are 2 billion weights, whose 4 bits with scales are 1.125 GB."""
    least = least_of(ToldSize("model", 8_000_000_000, is_folder=True), "int4")
    assert least is not None
    assert least <= 1_125_000_000


def test_nothing_is_asked_where_nothing_is_known_of_the_memory() -> None:
    """A size is worth a request only where there is one to compare it with."""
    assert not Room().is_known
    assert Room(machine_memory_bytes=GIB).is_known
    assert Room(find_profile("vm")).is_known
