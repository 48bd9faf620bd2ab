"""A failed export leaves nothing behind, whatever fails."""

import contextlib
import errno
import os
import pathlib
import resource

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering.__main__ as command_line
from lowering import export
from lowering.export import litert, onnx, onnx_files, paths, saved_model, tfjs, tflite
from lowering.export.tfjs import exporting, graph_model, node

X = np.linspace(-1, 1, 6, dtype=np.float32)

# A model and its weights.
NAMES = ["model.onnx", "model.onnx.data"]


class FaultError(Exception):
    """What the tests raise."""


def fail(*args, **kwargs):
    raise FaultError


# The functions of the stages of each export.
STAGES = {
    "saved_model": [
        (saved_model, "entries"),
        (saved_model, "save"),
        (tf.saved_model, "save"),
        (saved_model, "run"),
        (saved_model, "compare"),
    ],
    "tflite": [
        (tflite, "entries"),
        (saved_model, "save"),
        (tflite, "converted"),
        (litert, "run"),
        (tflite, "compare"),
    ],
    "onnx": [
        (onnx, "entry"),
        (onnx, "dtypes_of"),
        (onnx, "converted"),
        (onnx, "run"),
        (onnx, "compare"),
    ],
    "tfjs": [
        (exporting, "entries"),
        (graph_model, "frozen"),
        (graph_model, "_optimized"),
        (graph_model, "_encoded"),
        (graph_model.json, "dumps"),
        (node, "run"),
        (exporting, "compare"),
    ],
}


@pytest.mark.parametrize(
    ("to", "module", "stage"),
    [(to, *stage) for to, stages in STAGES.items() for stage in stages],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_failed_stage(to, module, stage, tmp_path, monkeypatch):
    """The command line writes what exporters return, so all formats have a path there."""
    monkeypatch.setattr(module, stage, fail)
    output = tmp_path / "new" / "folders" / "model"
    argv = ["export", "tests.export.functions:predict", "--arg", "f32[2,3]"]
    assert command_line.main([*argv, "--to", to, "--output", str(output)]) == 1
    assert not os.listdir(tmp_path)


@contextlib.contextmanager
def full_disk():
    """A context in which no file can have more than a few bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("module", [saved_model, tflite, onnx, tfjs])
def test_a_disk_that_is_full(module, tmp_path, monkeypatch):
    monkeypatch.setattr(tf.saved_model, "save", fail)
    spec = tf.TensorSpec((6,), tf.float32, "x")
    w = tf.Variable(X)
    concrete = tf.function(lambda x: tf.tanh(x * w)).get_concrete_function(spec)
    if module is tflite:
        monkeypatch.setattr(tflite, "converted", lambda *args, **kwargs: b"a model")
    with pytest.raises((OSError, FaultError)), full_disk():
        module.write(concrete, tmp_path / "model")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("to", ["saved_model", "tflite", "onnx", "tfjs"])
def test_what_is_said_of_a_disk_that_is_full(to, tmp_path, monkeypatch):
    """The path is the user's, not that of a temporary file."""
    path = tmp_path / "model"
    temporary = str(tmp_path / ".model-1" / "variables")
    place = (
        f"{{{{function_node __wrapped__SaveV2}}}} {temporary}; No space left on device [Op:SaveV2]"
    )

    def full(*args, **kwargs):
        error = OSError(errno.ENOSPC, "No space left on device")
        raise tf.errors.ResourceExhaustedError(None, None, place) if to == "saved_model" else error

    monkeypatch.setattr(tf.saved_model, "save", full)
    for write in ("write_bytes", "write_text"):
        monkeypatch.setattr(pathlib.Path, write, full)
    monkeypatch.setattr(onnx_files, "write", full)
    if to == "tflite":
        monkeypatch.setattr(tflite, "converted", lambda *args, **kwargs: b"a model")
    with pytest.raises(OSError, match="No space left on device") as caught:
        getattr(export, f"to_{to}")(lambda w, x: w * x, (X,), path, params=X, verify=False)
    assert caught.value.filename == str(path) and caught.value.errno == errno.ENOSPC
    assert temporary not in str(caught.value)
    assert not os.listdir(tmp_path)


def test_an_error_of_another_file_keeps_its_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such thing"), paths.new_path(tmp_path / "m"):
        (tmp_path / "no such thing").read_bytes()
    with pytest.raises(FileNotFoundError) as caught, paths.new_path(tmp_path / "m") as written:
        (written / "part").write_bytes(b"")
    assert caught.value.filename == str(tmp_path / "m")


@pytest.mark.parametrize("error", [FaultError, KeyboardInterrupt, SystemExit])
def test_an_interruption(error, tmp_path):
    with contextlib.suppress(error), paths.new_path(tmp_path / "a" / "b" / "model") as written:
        written.mkdir()
        (written / "part").write_text("half")
        raise error
    assert not os.listdir(tmp_path)


def test_folders_of_others_stay(tmp_path):
    with contextlib.suppress(FaultError), paths.new_path(tmp_path / "a" / "model"):
        (tmp_path / "a" / "other").write_text("precious")
        raise FaultError
    assert os.listdir(tmp_path / "a") == ["other"]


def test_what_came_in_the_meantime_stays(tmp_path):
    path = tmp_path / "model"
    with pytest.raises(FileExistsError), paths.new_path(path) as written:
        written.write_text("ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs" and os.listdir(tmp_path) == ["model"]


def test_an_empty_directory_is_replaced(tmp_path):
    (tmp_path / "model").mkdir()
    with paths.new_path(tmp_path / "model") as written:
        written.write_text("a model")
    assert (tmp_path / "model").read_text() == "a model" and os.listdir(tmp_path) == ["model"]


def test_a_model_can_be_read_by_others(tmp_path):
    umask = os.umask(0o022)
    try:
        with paths.new_path(tmp_path / "model") as written:
            written.write_text("a model")
    finally:
        os.umask(umask)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["m" * 250, "ü" * 125])
def test_a_name_as_long_as_a_file_system_permits(name, tmp_path):
    with paths.new_path(tmp_path / name) as written:
        written.write_text("a model")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("to", ["onnx", "saved_model", "tfjs", "tflite"])
def test_models_with_names_as_long_as_a_file_system_permits(to, tmp_path):
    """The name of a file beside a model, such as that of ONNX's weights, would be too long."""
    suffix = f".{to}" if to in ("onnx", "tflite") else ""
    path = tmp_path / ("m" * (255 - len(suffix)) + suffix)
    write = getattr(export, f"to_{to}")
    for overwrite in (False, True):
        write(jnp.sin, (X,), path, verify=False, overwrite=overwrite)
    np.testing.assert_allclose(export.load(path)(X), jnp.sin(X), rtol=1e-5)
    assert os.listdir(tmp_path) == [path.name]


def test_an_export_that_lacks_a_runtime(tmp_path, monkeypatch):
    """An installation that was interrupted is none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (node.directory() / "node_modules").mkdir(parents=True)
    with pytest.raises(ImportError, match=r"python -m lowering\.export\.tfjs\.install"):
        export.to_tfjs(jnp.sin, (X,), tmp_path / "model")
    assert os.listdir(tmp_path) == ["cache"]


@pytest.mark.parametrize("place", range(1, 9))
@pytest.mark.parametrize("is_done", [False, True])
def test_an_interruption_of_a_replacement(place, is_done, tmp_path, monkeypatch):
    """There are the old model and its weights, or the new ones, and nothing else."""
    for name in NAMES:
        (tmp_path / name).write_text("old")
    rename, calls = pathlib.Path.rename, []

    def interrupted(source, target):
        calls.append(source)
        if len(calls) != place or is_done:
            rename(source, target)
        if len(calls) == place:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt), paths.new_path(tmp_path / NAMES[0], True) as path:
        for name in NAMES:
            path.with_name(name).write_text("new")
        monkeypatch.setattr(pathlib.Path, "rename", interrupted)
    assert sorted(x.name for x in tmp_path.iterdir()) == NAMES
    found = {x.read_text() for x in tmp_path.iterdir()}
    assert found == ({"old"} if place <= 4 else {"new"})


@pytest.mark.parametrize("to", list(STAGES))
def test_what_is_no_path(to, tmp_path, monkeypatch):
    """The message says what a path is; nothing is made before it is said."""
    monkeypatch.chdir(tmp_path)
    exporter = getattr(export, f"to_{to}")
    for overwrite in (False, True):
        for path in (3, b"model", [X], tmp_path.joinpath):
            with pytest.raises(TypeError, match="path is a str or a pathlib"):
                exporter(jnp.sin, (X,), path, overwrite=overwrite)
        with pytest.raises(ValueError, match="path is empty"):
            exporter(jnp.sin, (X,), "", overwrite=overwrite)
        for suffix in {".tflite", ".onnx", ".litertlm"} - {f".{to}"}:
            with pytest.raises(ValueError, match="has the suffix of"):
                exporter(jnp.sin, (X,), f"model{suffix}", overwrite=overwrite)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", STAGES)
@pytest.mark.parametrize("option", ["overwrite", "verify"])
def test_an_option_that_is_neither_true_nor_false(to, option, tmp_path):
    """Any text would be true, and "no" replace a model."""
    path = tmp_path / "model"
    path.touch()
    with pytest.raises(TypeError, match=f"{option} is True or False, not 'no'"):
        getattr(export, f"to_{to}")(jnp.tanh, (X,), path, **{option: "no"})
    assert path.read_bytes() == b""


def test_the_home_directory(tmp_path, monkeypatch, capsys):
    """A shell does not expand it in `--output=~/model.onnx`, nor does Python."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    report = export.to_onnx(jnp.sin, (X,), "~/new/model.onnx", verify=False)
    assert report.file == home / "new" / "model.onnx"
    assert export.inspect("~/new/model.onnx").format == "onnx"
    argv = ["export", "jax.numpy:sin", "--arg", "x=f32[3]", "--to", "onnx", "--no-verify"]
    assert command_line.main([*argv, "--output=~/other.onnx"]) == 0
    assert (home / "other.onnx").is_file() and list(here.iterdir()) == []
    export.to_onnx(jnp.sin, (X,), "~unknown-user.onnx", verify=False)
    assert [path.name for path in here.iterdir()] == ["~unknown-user.onnx"]


def test_a_directory_that_is_read_only(tmp_path, monkeypatch, capsys):
    """The command line says so before it imports anything; root may write to any directory."""
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    path = tmp_path / "new" / "model.onnx"
    with pytest.raises(PermissionError, match="cannot be written, as"):
        export.to_onnx(jnp.sin, (X,), path)
    argv = ["export", "jax.numpy:sin", "--arg", "x=f32[3]", "--to", "onnx", "--output", str(path)]
    assert command_line.main(argv) == 1
    assert f"error: {path} cannot be written, as {tmp_path} is read-only" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_room_for_another(monkeypatch, tmp_path):
    """The error names the path, not a temporary one."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), ".model.onnx-12345")

    monkeypatch.setattr(paths.tempfile, "TemporaryDirectory", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        export.to_onnx(jnp.sin, (X,), tmp_path / "model.onnx")
    assert caught.value.filename == str(tmp_path / "model.onnx")
