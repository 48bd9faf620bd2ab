"""The evaluation: what it compares, how it shows errors, and how it keeps results."""

import dataclasses
import pathlib
import tempfile

import jax
import numpy as np
import pytest

from harnesses import models
from harnesses.database import Versions
from harnesses.evaluation import results, written
from harnesses.evaluation.cells import DifferentError, compare
from harnesses.evaluation.converters import CONVERTERS, Converter
from harnesses.evaluation.converters.converter import by_name
from harnesses.evaluation.errors import crop, describe
from harnesses.evaluation.program import Case, Program, trace
from harnesses.evaluation.results import JAX, Evaluated, Journal, Row
from harnesses.evaluation.table import summary, tables
from harnesses.models import symbolic

VERSIONS = Versions("0.10.2", "0.10.2", "2.21.0", "2.3.0", "3.11.7")
NEWER = dataclasses.replace(VERSIONS, jax="0.12.0")
STATIC = Case("small", "cnn", ())
BATCH = Case("small", "cnn", ("batch",))
PIXELS = Case("small", "cnn", ("height", "width"))
ROWS = [
    Row(STATIC, JAX, ok=True),
    Row(STATIC, "tflite", ok=True, seconds=1.25, file_size=41_300, error=1.6e-7),
    Row(STATIC, "onnx", ok=False, message="UnsupportedError: it lacks Foo"),
    Row(BATCH, JAX, ok=True, multiples={"batch": 1}),
    Row(BATCH, "tflite", ok=True, seconds=0.4, file_size=500),
    Row(BATCH, "tflite_chromium", ok=False, message="Error: no", lacks="It has no such sizes"),
    Row(PIXELS, JAX, ok=False, message="TypeError: no"),
]


def keyed(rows):
    return {(row.case, row.converter): row for row in rows}


def test_shapes_of_inputs():
    graphs = models.load("graph_network", "small")
    shapes = symbolic.shapes(graphs, {"batch": 1})
    assert shapes["nodes"] == "(5*batch + 1, 4)"
    assert shapes["senders"] == "(8*batch)"
    unet = models.load("unet", "small")
    assert symbolic.shapes(unet, {"height": 2, "width": 4}) == "(2, 2*height, 4*width, 3)"
    assert symbolic.shapes(unet, {}) == "(2, 8, 8, 3)"


def test_what_jax_can_trace():
    assert trace(Case("small", "unet", ("height", "width"))).multiples == {"height": 2, "width": 2}
    assert trace(BATCH).multiples == {"batch": 1}
    # A dense layer after the last convolution fixes the size of images.
    with pytest.raises(Exception, match=r"kernel|boolean conversion"):
        trace(PIXELS)


def test_samples_have_other_sizes():
    first, second = trace(Case("small", "lstm", ("batch", "length"))).samples()
    assert (first.shape, second.shape) == ((2, 5, 6), (3, 6, 6))


@pytest.mark.parametrize("size", models.SIZES)
@pytest.mark.parametrize("name", models.NAMES)
def test_inputs_depend_on_seed_and_sizes(name, size):
    model = models.load(name, size)
    one, same, other = (jax.tree.leaves(model.make_inputs(seed)) for seed in (1, 1, 2))
    assert all(map(np.array_equal, one, same))
    assert not all(map(np.array_equal, one, other))
    first = next(iter(model.dimensions))
    larger = jax.tree.leaves(model.make_inputs(1, **{first: model.dimensions[first] + 3}))
    assert [x.ndim for x in larger] == [x.ndim for x in one]
    assert [x.shape for x in larger] != [x.shape for x in one]
    with pytest.raises(ValueError, match=rf"has the dimensions {first}.*not colour"):
        model.make_inputs(1, colour=3)


def test_unknown_models():
    with pytest.raises(ValueError, match="unknown model 'alexnet'"):
        models.load("alexnet")
    with pytest.raises(ValueError, match="unknown size 'huge'"):
        models.load("cnn", "huge")


def test_comparison():
    x = np.float32([1, -4])
    assert compare([x], [x + np.float32([0, 2e-6])], 1e-5) == pytest.approx(5e-7, rel=0.2)
    # A runtime without unsigned integers has the same bits in others.
    assert compare([np.uint32([2**32 - 1])], [np.int32([-1])], 0) == 0
    for actual, message in (
        ([x + 1], "output 0 differs by 0.25"),
        ([x * np.nan], "differs by nan"),
        ([x[:1]], r"has the shape \(1,\)"),
        ([x, x], "2 outputs, JAX gives 1"),
    ):
        with pytest.raises(DifferentError, match=message):
            compare([x], actual, 1e-5)
    with pytest.raises(DifferentError, match="1 of the 2 elements"):
        compare([np.int32([1, 2])], [np.int32([1, 3])], 1)


def test_outputs_are_in_order():
    run = by_name(lambda inputs: {"y1": inputs["x0"], "y0": inputs["x1"]})
    assert run([np.int32(3), np.int32(4)]) == [4, 3]


@pytest.mark.parametrize("message", ["", "no way"])
def test_files_are_written_once(tmp_path, message):
    """The size and the error of the first conversion are those of all converters of the files."""
    calls = []

    def write(program, folder):
        calls.append(program)
        if message:
            raise ValueError(message)
        (folder / "model").write_bytes(b"four")

    converter = Converter("made up", "Made up.", load=lambda program, folder: None, write=write)
    first, second = (written.write(Program(STATIC, {}), converter, tmp_path) for _ in range(2))
    assert first == second and len(calls) == 1
    assert (first.file_size, first.message) == (
        (0, f"ValueError: {message}") if message else (4, "")
    )


def test_a_conversion_that_died_is_not_repeated(tmp_path):
    def write(program, folder):
        raise KeyboardInterrupt

    converter = Converter("made up", "Made up.", load=lambda program, folder: None, write=write)
    with pytest.raises(KeyboardInterrupt):
        written.write(Program(STATIC, {}), converter, tmp_path)
    assert "no end" in written.write(Program(STATIC, {}), converter, tmp_path).message


def test_what_runtimes_lack():
    """Only failures that are the runtime's own count as such."""
    cnn, gpt = Program(STATIC, {}), Program(Case("small", "gpt", ()), {})
    differs = "DifferentError: 3 of the 8 elements of output 0 differ"
    litert = CONVERTERS["tflite_chromium"]
    kernel = "RuntimeError: Error: Kernel 'Foo' not registered for backend 'wasm'"
    for name in ("tfjs_node_wasm", "tfjs_chromium_wasm"):
        assert "Foo" in CONVERTERS[name].lacks(cnn, kernel)
        assert not CONVERTERS[name].lacks(cnn, differs)
    assert "UINT32" in litert.lacks(gpt, "Error: Element type UINT32 is not supported.")
    sizes = (
        "TensorBuffer ranked tensor type Int32[2, 7] does not match expected ranked tensor type "
    )
    assert "unknown sizes" in litert.lacks(cnn, sizes + "Int32[-1, 7]")
    assert not litert.lacks(cnn, sizes + "Int32[3, 7]")


def test_errors_are_cropped():
    root = pathlib.Path(results.__file__).parents[2]
    message = "\n".join(
        [
            f'File "{root}/harnesses/x.py", line 3, in f',
            f"{tempfile.gettempdir()}/abc/saved is bad",
            "Some ops in the model are custom ops, See instructions",
            "Custom ops: Foo",
            *(f"line {i} of {root}/a.py" for i in range(20)),
        ]
    )
    cropped = crop(message).splitlines()
    assert cropped[:3] == [
        "Some ops in the model are custom ops, See instructions",
        "Custom ops: Foo",
        "line 0 of a.py",
    ]
    assert cropped[-1] == "... (10 more lines)"
    assert crop(f"{tempfile.gettempdir()}/abc/saved is bad") == "saved is bad"
    assert describe(ValueError("no\n\nway")) == "ValueError: no\nway"
    behind = ValueError('error: loc(callsite("a" at fused["b:", "c"])): it is bad')
    error = TypeError("the converter failed")
    error.__cause__ = behind
    assert describe(error) == "ValueError: error: it is bad"


def test_results_are_kept(tmp_path):
    path = tmp_path / "results.json"
    assert results.read(path) == {}
    older = Evaluated(VERSIONS, keyed(ROWS))
    newer = Evaluated(NEWER, {}).updated(ROWS[:2])
    results.write(path, {NEWER.jax: newer, VERSIONS.jax: older})
    read = results.read(path)
    assert read == {VERSIONS.jax: older, NEWER.jax: newer}
    assert list(read) == ["0.10.2", "0.12.0"]
    replaced = older.updated([dataclasses.replace(ROWS[2], ok=True, message="")])
    assert replaced.rows[STATIC, "onnx"].ok and replaced.rows[STATIC, "tflite"] == ROWS[1]


def test_a_journal_is_continued(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path, VERSIONS, "sources", fresh=False)
    for row in ROWS[:3]:
        journal.add(row)
    path.write_text(path.read_text() + '{"size": "sm')
    assert Journal(path, VERSIONS, "sources", fresh=False).rows == ROWS[:3]
    assert Journal(path, VERSIONS, "sources", fresh=False).rows == ROWS[:3]
    assert Journal(path, NEWER, "sources", fresh=False).rows == []
    journal = Journal(path, VERSIONS, "sources", fresh=True)
    assert journal.rows == []
    journal.end()
    assert not path.exists()


def test_one_answer_has_one_link():
    """Versions of JAX word their errors differently."""
    other = [
        dataclasses.replace(row, message=f"{row.message}, newly") for row in ROWS if not row.ok
    ]
    newer = Evaluated(NEWER, {}).updated(other)
    made = tables({VERSIONS.jax: Evaluated(VERSIONS, keyed(ROWS)), NEWER.jax: newer})
    pixels = made.lines["small"][-1]
    newest = next(f.anchor for f in made.failures if f.message == "TypeError: no, newly")
    assert set(pixels.cells) == {f"[NO (JAX)](#{newest})"}


def test_tables():
    newer = Evaluated(NEWER, {}).updated([*ROWS[:2], dataclasses.replace(ROWS[2], ok=True)])
    made = tables({VERSIONS.jax: Evaluated(VERSIONS, keyed(ROWS)), NEWER.jax: newer})
    assert made.lines["realistic"] == []
    static, batch, pixels = made.lines["small"]
    assert (static.shape, batch.shape, pixels.shape) == ("static", "batch", "height, width")
    assert "YES<br>41 kB<br>1.2 s<br>2e-07" in static.cells
    assert "YES<br>500 B<br>0.4 s<br>0" in batch.cells
    assert "[NO (runtime)](#tflite_chromium-2)" in batch.cells
    assert any(
        cell.startswith("[NO](#onnx-3) (JAX 0.10.2)<br>YES (JAX 0.12.0)") for cell in static.cells
    )
    assert set(pixels.cells) == {"[NO (JAX)](#jax-1)"}
    assert [failure.message for failure in made.failures] == [
        "TypeError: no",
        "Error: no",
        "UnsupportedError: it lacks Foo",
    ]


def test_summary():
    """A cell counts as with the newest version that ran it; what the runtime lacks is told."""
    older = Row(BATCH, "tflite", ok=False, message="no"), Row(PIXELS, "onnx", ok=True)
    table = summary(
        {
            VERSIONS.jax: Evaluated(VERSIONS, keyed([*older, *ROWS[:1]])),
            NEWER.jax: Evaluated(NEWER, keyed(ROWS)),
        }
    )
    assert "| TF Lite | 2 of 2 | – |" in table
    assert "| LiteRT (Chromium) | 0 of 1, 1 NO (runtime) | – |" in table
    assert "| ONNX | 1 of 2 | – |" in table
    assert "jax2onnx" not in table


def test_summary_with_a_column_for_each_converter():
    lines = summary({NEWER.jax: Evaluated(NEWER, keyed(ROWS))}, across=True).splitlines()
    columns = lines[0].count(" | ") + 1
    assert lines[0].startswith("| converter | ") and lines[1] == "|---" * columns + "|"
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| small models", "| realistic models"]
