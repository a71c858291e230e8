"""Saved baselines: what is kept, and what can't be read."""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from baseline_sample import (
    CRASH,
    large_side,
    machine,
    samples,
    side,
    side_run,
    small_side,
    variants,
    workloads,
)
from hypothesis import given, settings
from hypothesis import strategies as some

from edgebench.harness.compare.baseline_cells import MOST_BYTES
from edgebench.harness.compare.baseline_format import baseline_schema, checksum
from edgebench.harness.compare.baselines import (
    baseline_bytes,
    baseline_files,
    find_baseline,
    is_baseline,
    machine_of,
    read_baseline,
    save_baseline,
)
from edgebench.harness.compare.model import Samples, Side, SideCell
from edgebench.harness.errors import BaselineError, ExitStatus, OutputError
from edgebench.harness.results.quality import QualityRecord, QualityReference, WindowRecord
from edgebench.harness.results.sameness import Sameness

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent / "data" / "baseline-1.json"


def saved(tmp_path: Path, one: Side) -> Path:
    path = tmp_path / "baselines" / "name" / "machine.json"
    save_baseline(one, path)
    return path


def changed(tmp_path: Path, change: Callable[[Any], object]) -> Path:
    """The small baseline with a change in its JSON."""
    path = saved(tmp_path, small_side())
    tree = json.loads(path.read_bytes())
    change(tree)
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def resealed(cell: dict[str, Any], held: Any) -> None:
    """Put other samples into a cell, with a checksum that fits them."""
    packed = held if isinstance(held, bytes) else zlib.compress(json.dumps(held).encode())
    cell["samples"] = base64.b64encode(packed).decode()
    cell["checksum"] = checksum(cell)


def unpacked(cell: dict[str, Any]) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(cell["samples"])))


def problem(path: Path) -> str:
    with pytest.raises(BaselineError) as caught:
        read_baseline(path)
    assert caught.value.exit_status == ExitStatus.NOT_COMPARABLE == 5
    assert caught.value.remedy
    return str(caught.value)


def rated_side() -> Side:
    """A cell that rated two windows of a text, against a reference."""
    windows = [WindowRecord(tokens=10, bytes=40, log_likelihood=-20.5, kl_divergence=0.1, top1=9)]
    windows.append(WindowRecord(tokens=7, log_likelihood=-1 / 3, duration_s=0.5))
    quality = QualityRecord(
        text="builtin:prose",
        text_sha256="0" * 64,
        text_bytes=400,
        protocol="sliding",
        window=512,
        stride=256,
        score_from=256,
        bos="model",
        tokenizer="t",
        ids_sha256="1" * 64,
        vocabulary_size=100,
        metrics=["perplexity"],
        windows_planned=2,
        windows=2,
        scored_tokens=17,
        reference=QualityReference(
            name="model.gguf",
            sha256="2" * 64,
            perplexity=8.0,
            windows=windows,
            candidates=64,
            covered=0.99,
            stored_bytes=1000,
            duration_s=2.0,
        ),
    )
    workload = workloads()[0].model_copy(
        update={"name": "prose", "text": "builtin:prose", "quality": quality}
    )
    return side(
        [
            SideCell(
                variants()[0],
                workload,
                "ok",
                {"perplexity": samples([8.25], "1")},
                windows=tuple(windows),
            )
        ]
    )


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    """Every sample with its block, every failure, reason and flag; to the last bit."""
    one = small_side()
    again = read_baseline(saved(tmp_path, one))
    assert again.runs == one.runs
    assert again.label == one.label
    assert (again.model_name, again.model_source) == (one.model_name, one.model_source)
    assert again.hashes == one.hashes
    assert list(again.cells) == list(one.cells)
    for key, cell in one.cells.items():
        assert again.cells[key].metrics == cell.metrics
        assert again.cells[key].status == cell.status
        assert again.cells[key].flags == cell.flags
        assert again.cells[key].failure == cell.failure
        assert again.cells[key].variant == cell.variant
    measured, failed = again.cells.values()
    assert measured.metrics["decode_rate"].values[0] == 1 / 3
    assert measured.metrics["energy_per_token_j"].reason == "no sensor is readable"
    assert failed.failure == CRASH


@settings(max_examples=40, deadline=None)
@given(
    some.lists(
        some.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=12
    ),
    some.integers(1, 4),
)
def test_any_number_comes_back_as_it_was(values: list[float], per_block: int) -> None:
    """Zeros, the smallest and the largest numbers included."""
    import tempfile

    cell = SideCell(
        variants()[0], workloads()[0], "ok", {"ttft_s": samples(values, per_block=per_block)}
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.json"
        save_baseline(side([cell]), path)
        again = read_baseline(path).cells[cell.key].metrics["ttft_s"]
    assert [each.hex() for each in again.values] == [each.hex() for each in map(float, values)]
    assert again.blocks == cell.metrics["ttft_s"].blocks


def test_samples_of_several_runs_keep_their_sessions(tmp_path: Path) -> None:
    """Blocks of equal number in two runs stay two blocks."""
    one, other = samples([1.0, 2.0]), samples([3.0, 4.0], session="session-2")
    both = Samples(one.values + other.values, one.blocks + other.blocks, "s", "observed")
    cell = SideCell(variants()[0], workloads()[0], "ok", {"ttft_s": both})
    runs = (side_run(), side_run(id="later", session="session-2"))
    again = read_baseline(saved(tmp_path, side([cell], runs=runs)))
    assert again.cells[cell.key].metrics["ttft_s"] == both
    assert [run.session for run in again.runs] == ["session-1", "session-2"]


def test_windows_of_rated_texts_are_kept(tmp_path: Path) -> None:
    """The variant's, which are compared one by one; not the reference's."""
    one = rated_side()
    (cell,) = read_baseline(saved(tmp_path, one)).cells.values()
    (original,) = one.cells.values()
    assert cell.windows == original.windows
    assert cell.metrics == original.metrics
    quality = cell.workload.quality
    assert quality is not None
    assert quality.reference is not None
    assert quality.reference.sha256 == "2" * 64
    assert quality.reference.windows == []


def test_what_is_long_and_not_compared_is_left_out(tmp_path: Path) -> None:
    """Prompts, how variants compare with the reference, metrics without a better direction."""
    cell = SideCell(
        variants()[0].model_copy(update={"sameness": Sameness(verdict="agrees")}),
        workloads()[0],
        "ok",
        {"ttft_s": samples([1.0]), "cpu_clock_hz": samples([3e9], "Hz")},
    )
    path = saved(tmp_path, side([cell]))
    text = path.read_text(encoding="utf-8")
    assert "Why is the sky blue" not in text
    again = read_baseline(path).cells[cell.key]
    assert again.variant.sameness is None
    assert again.workload.prompt_text is None
    assert again.workload.prompt_sha256 == cell.workload.prompt_sha256
    assert set(again.metrics) == {"ttft_s"}


def test_a_units_or_sources_own_way_is_kept(tmp_path: Path) -> None:
    """A cell whose unit, source, reason, variant or workload is not that of the others."""
    one, other = variants()[:2]
    workload = workloads()[0]
    retried = one.model_copy(update={"engine_version": "b7000"})
    cells = [
        SideCell(one, workload, "ok", {"ttft_s": samples([1.0])}),
        SideCell(other, workload, "ok", {"ttft_s": Samples((5.0,), (("s", 1),), "ms", "engine")}),
        SideCell(
            retried,
            workloads()[1],
            "ok",
            {"ttft_s": Samples((), (), "s", "observed", "it was not told")},
        ),
    ]
    again = read_baseline(saved(tmp_path, side(cells)))
    assert [each.metrics for each in again.cells.values()] == [each.metrics for each in cells]
    assert [each.variant for each in again.cells.values()] == [one, other, retried]


def test_the_same_side_gives_the_same_bytes() -> None:
    """Whatever the order of metrics and hashes; so a diff shows what was measured and no more."""
    one = small_side()
    turned = replace(
        one,
        hashes=dict(reversed(one.hashes.items())),
        cells={
            key: replace(cell, metrics=dict(reversed(cell.metrics.items())))
            for key, cell in one.cells.items()
        },
    )
    assert baseline_bytes(one) == baseline_bytes(turned)


def test_a_diff_is_local() -> None:
    """Another value in one cell changes its summary, its samples and its checksum: three lines."""
    one = small_side()
    key, cell = next(iter(one.cells.items()))
    other = replace(cell, metrics={**cell.metrics, "load_s": samples([0.5, 0.35], per_block=1)})
    before = baseline_bytes(one).decode().splitlines()
    after = baseline_bytes(replace(one, cells={**one.cells, key: other})).decode().splitlines()
    assert len(before) == len(after)
    differing = [b.strip() for a, b in zip(before, after, strict=True) if a != b]
    assert [line.split(":")[0] for line in differing] == ['"load_s"', '"samples"', '"checksum"']
    assert differing[0] == '"load_s": {"median": 0.425, "n": 2},'


def test_people_can_read_the_medians() -> None:
    """Median, interval and count of each metric stand in one line, with the digits that count."""
    text = baseline_bytes(small_side()).decode()
    # By hand: the two middle ones of ten values are 0.20 and 0.21.
    assert '"ttft_s": {"median": 0.205, "low": ' in text
    assert '"decode_rate": {"median": 90.5, "n": 3},' in text
    # Bytes are whole, however many digits they have.
    assert '"peak_rss_bytes": {"median": 104857600.0,' in text
    assert '"reason": "no sensor is readable"' in text


def test_a_run_of_the_usual_size_stays_small() -> None:
    """24 cells of 20 repetitions: as git packs it, some tens of kB."""
    data = baseline_bytes(large_side())
    assert len(data) < 130_000
    assert len(zlib.compress(data)) < 65_000


def test_a_baseline_of_format_1_is_read() -> None:
    """A file that the first version wrote, with the numbers that it was written with."""
    one = read_baseline(GOLDEN)
    assert one.label == "smollm2-135m"
    assert one.runs[0].commit is not None
    assert one.runs[0].commit.sha == "5d41402abc4b2a76b9719d911017c592aabbccdd"
    assert one.machine.fingerprint == "bc020a35b7f9cb13"
    measured, failed = one.cells.values()
    assert measured.metrics["decode_rate"] == Samples(
        (1 / 3, 90.5, 91.0),
        (("session-1", 0), ("session-1", 1), ("session-1", 2)),
        "token/s",
        "observed",
    )
    assert measured.metrics["load_s"].values == (0.5, 0.25)
    assert measured.flags == ("noisy",)
    assert failed.failure == CRASH


def test_a_baseline_of_format_1_is_what_the_schema_says() -> None:
    """The file, and one with a field of a later version."""
    schema = jsonschema.Draft202012Validator(baseline_schema())
    tree = json.loads(GOLDEN.read_bytes())
    schema.validate(tree)
    schema.validate({**tree, "a_later_field": 1})
    assert not schema.is_valid({**tree, "runs": []})


def test_unknown_fields_are_kept_out_of_the_way(tmp_path: Path) -> None:
    """A field that a later edgebench of the same format adds is no damage."""
    path = changed(tmp_path, lambda tree: tree.update(later=1))
    assert len(read_baseline(path).cells) == 2


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    """With what to do."""
    said = problem(changed(tmp_path, lambda tree: tree.update(schema_version=2)))
    assert "newer edgebench, in format 2" in said
    assert "Upgrade edgebench." in said


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """Not as damage, with the command that makes one."""
    said = problem(tmp_path / "none.json")
    assert "There is no baseline" in said
    assert "edgebench baseline save" in said
    with pytest.raises(BaselineError, match="can't be read"):
        read_baseline(tmp_path)


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.999])
def test_a_cut_off_file_is_refused(tmp_path: Path, share: float) -> None:
    """Wherever it was cut."""
    path = saved(tmp_path, small_side())
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert "cut off or damaged" in problem(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "not a saved baseline"),
        ("[]", "not a saved baseline"),
        ("null", "not a saved baseline"),
        ("[" * 100_000, "cut off or damaged"),
        ("\x80", "cut off or damaged"),
        ('{"format": "edgebench baseline"}', "schema_version: Field required"),
        (
            '{"format": "edgebench baseline", "schema_version": 1}',
            "name: Field required (and 6 more)",
        ),
        ("<<<<<<< HEAD\n{}\n=======\n", "git left a conflict"),
        ('{"format": "edgebench baseline", "schema_version": NaN}', "NaN is no number"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """By what is wrong with them."""
    path = tmp_path / "b.json"
    path.write_text(text, encoding="latin-1")
    assert said in problem(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda cell: cell["metrics"]["ttft_s"].update(median=0.5),
        lambda cell: cell["metrics"].pop("ttft_s"),
        lambda cell: cell.update(status="failed"),
        lambda cell: cell.update(samples=cell["samples"][:-8]),
        lambda cell: cell.update(checksum="0" * 16),
        lambda cell: cell.update(variant="llama.cpp Q8_0 threads=1"),
    ],
)
def test_a_cell_edited_by_hand_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    """Its checksum tells; the message names the cell."""
    said = problem(changed(tmp_path, lambda tree: change(tree["cells"][0])))
    assert "/ chat" in said
    assert "its checksum is another one" in said


def _held(change: Callable[[Any], object]) -> Callable[[dict[str, Any]], None]:
    def apply(cell: dict[str, Any]) -> None:
        held = unpacked(cell)
        change(held)
        resealed(cell, held)

    return apply


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_held(lambda held: held["metrics"]["load_s"]["values"].append(1.0)), "has 3 samples"),
        (_held(lambda held: held["metrics"].pop("load_s")), "0 samples, and is said to have 2"),
        (_held(lambda held: held["metrics"]["load_s"].update(values=[math.nan, 1])), "finite"),
        (_held(lambda held: held["metrics"]["load_s"].update(values=[math.inf, 1])), "finite"),
        (_held(lambda held: held["metrics"]["load_s"].update(values=["x", 1])), "finite"),
        (_held(lambda held: held["metrics"]["load_s"].update(blocks=9)), "not a block each"),
        (_held(lambda held: held["blocks"].clear()), "not a block each"),
        (_held(lambda held: held["blocks"][0].pop()), "not a block each"),
        (_held(lambda held: held["blocks"][0].append([7, 0])), "a session that it does not name"),
        (_held(lambda held: held["metrics"].update(x={"blocks": 0, "values": []})), "samples of x"),
        (lambda cell: resealed(cell, b"not zlib"), "can't be decompressed"),
        (lambda cell: resealed(cell, zlib.compress(b"[]")), "finite numbers"),
        (lambda cell: resealed(cell, zlib.compress(b"{}" * 999)[:-6]), "cut off"),
    ],
)
def test_samples_that_can_not_be_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    """NaN, wrong lengths, blocks that are not there: even where the checksum fits."""
    assert said in problem(changed(tmp_path, lambda tree: change(tree["cells"][0])))


def test_a_bomb_is_not_decompressed(tmp_path: Path) -> None:
    """A few hundred kB that stand for more than any run holds are refused at the limit."""
    squeezer = zlib.compressobj(9)
    piece = b" " * 2**20
    # After a full flush each piece stands for itself, so that one can be repeated.
    first, again = (squeezer.compress(piece) + squeezer.flush(zlib.Z_FULL_FLUSH) for _ in "12")
    packed = first + again * (MOST_BYTES // 2**20)
    assert len(packed) < 400_000
    path = changed(tmp_path, lambda tree: resealed(tree["cells"][0], packed))
    assert "more room than any run" in problem(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tree: tree["cells"].append(tree["cells"][0]), "twice"),
        (lambda tree: tree["variants"].clear(), "a variant that it does not describe"),
        (lambda tree: tree["workloads"].clear(), "a workload that it does not describe"),
        (lambda tree: tree.update(runs=[]), "runs: List should have at least 1 item"),
        (lambda tree: tree["metrics"].clear(), "unit and the source of"),
        (
            lambda tree: tree["runs"].append(
                {
                    **tree["runs"][0],
                    "machine": {**tree["runs"][0]["machine"], "fingerprint": "other"},
                }
            ),
            "several machines",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    tmp_path: Path, change: Callable[[Any], object], said: str
) -> None:
    """Cells of nothing, twice, of several machines."""
    assert said in problem(changed(tmp_path, change))


def test_a_message_shows_no_control_characters(tmp_path: Path) -> None:
    """Names from a file can't reach into the terminal."""
    path = changed(
        tmp_path,
        lambda tree: tree["cells"][0].update(variant="\x1b[31mred\nline", checksum="x"),
    )
    said = problem(path)
    assert "\x1b" not in said
    assert "\\x1b[31mred\\nline" in said


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A folder that is a file is named; what was there stays."""
    (tmp_path / "name").write_text("a file")
    with pytest.raises(OutputError, match="can't be made a folder"):
        save_baseline(small_side(), tmp_path / "name" / "b.json")
    assert (tmp_path / "name").read_text() == "a file"


def put(folder: Path, name: str, fingerprint: str) -> Path:
    path = folder / name / f"{fingerprint}.json"
    run = side_run(machine=machine(fingerprint=fingerprint, cpu_model=f"CPU {fingerprint}"))
    save_baseline(small_side(label=name, runs=(run,)), path)
    return path


def test_a_machines_own_baseline_is_found(tmp_path: Path) -> None:
    """In the baseline's folder, and in that of all baselines where there is one alone."""
    own = put(tmp_path, "one", "aaaa")
    put(tmp_path, "one", "bbbb")
    assert find_baseline(tmp_path / "one", "aaaa") == own
    assert find_baseline(tmp_path, "aaaa") == own
    other = put(tmp_path, "two", "aaaa")
    assert baseline_files(tmp_path) == [own, tmp_path / "one" / "bbbb.json", other]
    several = r"several baselines of this machine: one/aaaa\.json, two/aaaa\.json\."
    with pytest.raises(BaselineError, match=several):
        find_baseline(tmp_path, "aaaa")


def test_a_baseline_that_was_renamed_is_found(tmp_path: Path) -> None:
    """By the machine that it holds."""
    put(tmp_path, "one", "bbbb")
    renamed = put(tmp_path, "one", "aaaa").rename(tmp_path / "one" / "office.json")
    assert find_baseline(tmp_path / "one", "aaaa") == renamed


def test_no_baseline_of_this_machine_says_which_there_are(tmp_path: Path) -> None:
    """The other machines by name, the command that saves one, and exit status 5."""
    put(tmp_path, "one", "bbbb")
    (tmp_path / "one" / "damaged.json").write_text("{")
    with pytest.raises(BaselineError) as caught:
        find_baseline(tmp_path / "one", "aaaa")
    said = str(caught.value)
    assert "no baseline of this machine, whose fingerprint is aaaa" in said
    assert "bbbb.json: CPU bbbb, 2 CPUs" in said
    assert "damaged.json: can't be read" in said
    assert "edgebench baseline save" in said
    assert caught.value.exit_status == ExitStatus.NOT_COMPARABLE


def test_an_empty_or_missing_folder_is_said(tmp_path: Path) -> None:
    """Each in its own words."""
    with pytest.raises(BaselineError, match="holds none of any machine"):
        find_baseline(tmp_path, "aaaa")
    with pytest.raises(BaselineError, match="does not exist"):
        find_baseline(tmp_path / "none", "aaaa")
    (tmp_path / "file").write_text("")
    with pytest.raises(BaselineError, match="is not a folder"):
        find_baseline(tmp_path / "file", "aaaa")


def test_a_baseline_is_known_by_its_content(tmp_path: Path) -> None:
    """Not by its name, and of whatever version."""
    assert is_baseline(json.loads(baseline_bytes(small_side())))
    assert is_baseline({"format": "edgebench baseline", "schema_version": 99})
    assert not is_baseline({"benchmarks": []})
    assert not is_baseline([])
    assert machine_of(GOLDEN) == "AMD EPYC 9B14, 2 CPUs"
