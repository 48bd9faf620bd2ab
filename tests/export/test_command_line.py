"""`python -m lowering`: its commands, what they print, and their exit codes."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

from lowering import export
from lowering.__main__ import main
from lowering.commands import files, parser, running, show, specifications
from lowering.commands.mistakes import hidden_module, in_options
from lowering.export import loading, tflite
from lowering.export.tfjs import graph_model
from lowering.passes import pipeline
from lowering.targets import TARGETS, Target
from tests.export import functions
from tests.helpers import ROOT

PREDICT = ["tests.export.functions:predict", "--arg", "x=f32[b, 3]"]


@pytest.mark.parametrize("to", ["saved_model", "tflite", "onnx", "tfjs"])
def test_export(to, tmp_path, capsys):
    output = tmp_path / "model"
    assert main(["export", *PREDICT, "--to", to, "--output", str(output)]) == 0
    assert output.exists()
    assert "computes what JAX does" in capsys.readouterr().out


def test_nothing_is_overwritten(tmp_path, capsys):
    output = tmp_path / "model"
    output.write_text("precious")
    for to in ("saved_model", "tflite", "onnx", "tfjs"):
        assert main(["export", *PREDICT, "--to", to, "--output", str(output)]) == 1
        assert "exists" in capsys.readouterr().err
    assert output.read_text() == "precious"


def test_show(capsys):
    assert main(["show", *PREDICT]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["op", "dtype", "count", "primitive", "line"]
    (product,) = [line for line in lines if line.startswith("MatMul")]
    assert product.split()[:4] == ["MatMul", "float32", "1", "dot_general"]
    assert "functions.py:14" in product
    assert any(line.endswith(" ops") for line in lines)
    formats = ("saved_model", "tflite", "onnx", "tfjs")
    assert lines[-4:] == [f"{name}: no known obstacle" for name in formats]


def test_show_passes(capsys):
    """The program, as it is and as each pass leaves it, and then its bodies."""
    argv = ["show", "tests.export.functions:recurrent", "--arg", "x=f32[b,3]", "--passes"]
    assert main(argv) == 0
    shown = capsys.readouterr().out
    program, body = shown.split("\nin scan, ")
    assert program.startswith("the program, as JAX has traced it:\n  { lambda")
    assert "functions.py:57" in body.partition("\n")[0]
    assert "\nflatten calls: nothing changes\n" in program
    assert "relu6" not in body.partition("fuse natural ops:\n")[0].partition("inline calls:")[2]
    assert "relu6" in body.partition("fuse natural ops:\n")[2].partition("fuse ops:")[0]
    assert main([*argv, "--target=tf"]) == 0
    assert "fuse natural ops" not in capsys.readouterr().out
    assert main([*argv, "--without=fuse natural ops", "--without=tidy"]) == 0
    shown = capsys.readouterr().out
    assert not {"fuse natural ops:", "tidy:"} & set(shown.splitlines())


def test_show_without_a_pass(capsys):
    assert main(["show", *PREDICT, "--target=tf"]) == 0
    ops = capsys.readouterr().out
    assert main(["show", *PREDICT, "--target=tf", "--without", "fuse ops"]) == 0
    assert "IsNan" not in ops and "IsNan" in capsys.readouterr().out


def test_show_lists_what_each_consumer_refuses(capsys, monkeypatch):
    """All ops that its table refuses, and the first primitive that a rule refuses."""

    def lacks(target, op, dtype):
        return target.name == "onnx" and op in ("Relu", "Softmax") and dtype == "float32"

    monkeypatch.setattr(Target, "lacks", lacks)
    assert main(["show", *PREDICT]) == 0
    of_onnx = capsys.readouterr().out.partition("onnx: would refuse\n")[2].partition("tfjs:")[0]
    first, second = of_onnx.splitlines()
    assert "it needs Relu of float32, which onnx lacks" in first
    assert "it needs Softmax of float32, which onnx lacks" in second
    assert main(["show", "tests.export.functions:refused", "--arg", "f32[3]", "--target=tf"]) == 0
    output = capsys.readouterr().out
    assert "\nsaved_model: would refuse\n  a SavedModel cannot hold PyFunc" in output
    assert output.count("pure_callback(f32[3])") == 3 and "functions.py:42" in output


def test_check(capsys):
    assert main(["check", *PREDICT, "--to", "tflite", "onnx"]) == 0
    assert capsys.readouterr().out.count("computes what JAX does") == 2


def test_check_of_what_no_runtime_can(capsys):
    argv = ["check", "tests.export.functions:refused", "--arg", "f32[3]", "--to", "onnx"]
    assert main(argv) == 1
    assert "onnx: " in capsys.readouterr().out


def test_options(tmp_path, capsys):
    """Those of each format reach its exporter, and what is given is what the model is run on."""
    x = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
    np.savez(tmp_path / "inputs.npz", x=x)
    common = ["--arg", "x=f32[b, 3]", "--constraint", "b >= 2", "--output-names", "y", "--quiet"]
    common += ["--params", "tests.export.functions:params", "--tolerance", "1e-3"]
    common += ["--inputs", str(tmp_path / "inputs.npz")]
    program = "tests.export.functions:predict_with"
    options = {
        "saved_model": ["--target", "tf"],
        "tflite": ["--allow-flex"],
        "onnx": ["--opset", "17"],
        "tfjs": ["--quantize", "uint16", "--shard-bytes", "10"],
    }
    for to, own in options.items():
        output = str(tmp_path / to)
        assert main(["export", program, *common, *own, "--to", to, "--output", output]) == 0
        assert capsys.readouterr().err == ""
    assert main(["check", program, *common, "--opset", "18"]) == 0
    onnx = pytest.importorskip("onnx")
    model = onnx.load(tmp_path / "onnx")
    assert model.opset_import[0].version == 17 and model.graph.output[0].name == "y"
    assert len(list((tmp_path / "tfjs").glob("*.bin"))) > 1


def test_keys(tmp_path, capsys):
    """They are made of key data in a file."""
    data = np.asarray(jax.random.key_data(jax.random.key(5)))
    np.savez(tmp_path / "inputs.npz", key=data, scale=np.uint32([1, 2]))
    argv = ["tests.export.functions:noise", "--arg", "key=key[]", "--arg", "scale=u32[2]"]
    inputs = ["--inputs", str(tmp_path / "inputs.npz")]
    assert main(["check", *argv, *inputs, "--to", "onnx", "saved_model"]) == 0
    np.savez(tmp_path / "inputs.npz", key=data[:1].astype(np.int32), scale=np.uint32([1, 2]))
    assert main(["check", *argv, *inputs, "--to", "onnx"]) == 2
    assert "key of" in capsys.readouterr().err
    for impl in ("fry", "threefry2x32", "rbg", "urbg", "unsafe_rbg"):
        assert (
            main(["show", "jax.random:bits", "--arg", f"key<{impl}>[]", "--target", "tflite"]) == 0
        )


def test_full_quantization(tmp_path):
    argv = ["--quantize", "full", "--representative-data", "tests.export.functions:data"]
    argv += ["--io-dtype", "int8", "--to", "tflite", "--output", str(tmp_path / "model")]
    assert main(["export", PREDICT[0], "--arg", "x=f32[5,3]", *argv]) == 0


def test_progress(tmp_path, capsys):
    argv = ["export", *PREDICT, "--to", "onnx", "--output", str(tmp_path / "model")]
    assert main(argv) == 0
    captured = capsys.readouterr()
    *stages, error = captured.err.splitlines()
    assert stages == [
        "lowering for ONNX",
        "writing the model of ONNX",
        "running the model in onnxruntime",
    ]
    assert error.startswith("the ONNX model: the worst error of result is ")
    first, *summary = captured.out.splitlines()
    assert first == f"{argv[-1]} is written, and computes what JAX does"
    assert [line.split()[0] for line in summary].count("error") == 1
    assert "is accepted" in captured.out and summary[-1].startswith("seconds")


def test_errors_name_options_in_place_of_arguments():
    message = 'With verify=False it is not compared; tolerance=... and quantize="full" are others'
    assert in_options("Give it a name by input_names, such as x") == (
        "Give it a name in --arg, such as x"
    )
    expected = "With --no-verify it is not compared; --tolerance and --quantize full are others"
    assert in_options(message) == expected


def test_mistakes_of_the_function_have_tracebacks_on_demand(tmp_path, capsys):
    argv = ["export", "tests.export.functions:mistaken", "--arg", "f32[3]", "--to", "onnx"]
    argv += ["--output", str(tmp_path / "model")]
    assert main(argv) == 1
    error = capsys.readouterr().err
    assert "error: KeyError: 'no such key'" in error and "--traceback shows" in error
    assert "Traceback" not in error
    assert main([*argv, "--traceback"]) == 1
    error = capsys.readouterr().err
    assert "Traceback" in error and "functions.py" in error


@pytest.mark.parametrize("function", ["tests.export.functions:of_wrong_shapes", "jax.nn:softmax"])
def test_errors_of_the_function_are_no_wrong_options(function, capsys):
    """They are of the types that wrong options raise."""
    assert main(["check", function, "--arg", "x=bool[3]", "--to", "onnx", "saved_model"]) == 1
    assert "error: TypeError" in capsys.readouterr().err


def test_errors_of_modules(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_model.py").write_text("raise ValueError('of the module')")
    (tmp_path / "needy_model.py").write_text("import no_such_package")
    (tmp_path / "whole_model.py").write_text("def predict(x): return x\ndef p(): return {}['a']")
    assert main(["show", "broken_model:f", "--arg", "f32[3]"]) == 1
    assert "broken_model cannot be imported: ValueError: of the module" in capsys.readouterr().err
    assert main(["show", "needy_model:f", "--arg", "f32[3]"]) == 1
    assert "No module named 'no_such_package'" in capsys.readouterr().err
    assert main(["show", "whole_model:predict", "--params", "whole_model:p"]) == 1
    assert "whole_model:p fails: KeyError: 'a'" in capsys.readouterr().err
    (tmp_path / "ending_model.py").write_text("import sys\nsys.exit(5)")
    assert main(["show", "ending_model:f", "--arg", "f32[3]"]) == 1
    assert "ending_model cannot be imported: SystemExit: 5" in capsys.readouterr().err
    assert main(["show", "whole_modal:predict"]) == 2
    assert "did you mean 'whole_model'?" in capsys.readouterr().err
    assert main(["show", "whole_model:predct"]) == 2
    assert "did you mean 'predict'?" in capsys.readouterr().err


def test_files_in_place_of_names(tmp_path, monkeypatch, capsys):
    """The message says what to write for a file, and that is found."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pk").mkdir()
    (tmp_path / "w.npz").touch()
    for file in ("my-model.py", "pk/ok.py"):
        (tmp_path / file).write_text("def predict(x): return x")
    said = {
        "pk/ok.py:predict": "write its module: pk.ok:predict",
        "./pk/ok.py": "write its module: pk.ok:name",
        "first=pk/ok.py:predict": "write its module: pk.ok:predict",
        f"{tmp_path}/my-model.py:predict": "write its module: my-model:predict",
        "/elsewhere/a model.py:f": "go to /elsewhere and write its module: a model:f",
        "../b c/model.py:f": f"go to {tmp_path.parent}/b c and write its module: model:f",
        "w.npz": "write module:name, where a function of that name reads it",
    }
    for text, message in said.items():
        assert main(["check", text, "--arg", "x=f32[3]"]) == 2
        assert f"{text!r} is a file; {message}\n" in capsys.readouterr().err
    for text in ("pk.ok:predict", "my-model:predict"):
        assert main(["show", text, "--arg", "x=f32[3]"]) == 0


def test_what_modules_say_when_they_fail(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alone.py").write_text("from . import other")
    (tmp_path / "silent.py").write_text("raise AssertionError")
    (tmp_path / "forgets.py").write_text("def f(w, x): assert False\ndef params(): pass")
    said = {
        ("alone:f",): "; write package.module:name, above the directory of the package",
        ("silent:f",): "error: silent cannot be imported: AssertionError",
        ("forgets:f", "--params", "forgets:params"): "forgets:params gives None in place of par",
        ("forgets:f", "--arg", "w=f32[]"): "error: AssertionError (forgets.py:1, in f)",
    }
    for argv, message in said.items():
        assert main(["show", *argv, "--arg", "x=f32[3]"]) == 1
        assert message in capsys.readouterr().err
    assert main(["show", "forgets.within:f"]) == 2
    assert "error: there is no module 'forgets.within'\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "hides"),
    [
        ("onnx.py", "onnx.py"),
        ("onnx/__init__.py", "onnx"),
        ("random.py", "random.py"),
        ("q.py", ""),
    ],
)
def test_files_that_hide_packages(file, hides, tmp_path, monkeypatch):
    """What is hidden lacks what its users import from it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    name = path.stem if path.stem != "__init__" else path.parent.name
    assert hidden_module(ImportError()) == ""
    module = types.ModuleType(name)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, name, module)
    hint = f"; {hides} in this directory hides an installed module, so rename it"
    assert (
        hidden_module(ImportError()) == hidden_module(AttributeError()) == (hint if hides else "")
    )
    assert hidden_module(ValueError()) == ""


def test_containers(tmp_path, capsys):
    of_batch = "tests.export.functions:of_batch"
    spec = "batch={'x': f32[b, 3], 'y': i32[b]}"
    output = tmp_path / "model"
    argv = ["export", of_batch, "--to", "onnx", "--output", str(output)]
    arrays = {"batch_x": np.ones((4, 3), np.float32), "batch_y": np.arange(4, dtype=np.int32)}
    np.savez(tmp_path / "inputs.npz", **arrays)
    inputs = ["--inputs", str(tmp_path / "inputs.npz")]
    assert main([*argv, "--arg", spec, *inputs]) == 0
    assert {x.name for x in export.inspect(output).signatures["main"].inputs} == set(arrays)
    assert main([*argv, "--args", "tests.export.functions:arguments", "--force"]) == 0
    assert "batch_x: float32[" in capsys.readouterr().out
    assert main(["run", str(output), *inputs]) == 2
    assert "the inputs are batch_x, batch_y, scale" in capsys.readouterr().err


def test_arguments_by_name(tmp_path, monkeypatch, capsys):
    """The names of parameters choose these; other names are those of inputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "differences.py").write_text("def sub(x, y, z=0):\n    return x - y + z\n")
    argv = ["export", "differences:sub", "--to", "onnx", "--output", "m.onnx", "--force"]
    np.savez("given.npz", x=np.full(3, 9, np.float32), y=np.ones(3, np.float32))
    assert main([*argv, "--arg", "y=f32[3]", "--arg", "x=f32[3]"]) == 0
    assert main(["run", "m.onnx", "--inputs", "given.npz", "--output", "found.npy"]) == 0
    np.testing.assert_array_equal(np.load("found.npy"), np.full(3, 8.0))
    assert main([*argv, "--arg", "a=f32[3]", "--arg", "b=f32[3]"]) == 0
    assert "a: float32[3]" in capsys.readouterr().out
    for specs, message in {
        ("y=f32[3]",): "sub takes 'x' in front of 'y'; give it, too",
        ("x=f32[3]", "x=f32[3]"): "two arguments are called 'x'",
        ("y=f32[3]", "a=f32[3]"): "'y' is parameter 2 of sub, and argument 1 of the command",
    }.items():
        assert main([*argv, *(part for spec in specs for part in ("--arg", spec))]) == 2
        assert message in capsys.readouterr().err


def test_the_installer_of_tfjs_has_help():
    command = [sys.executable, "-m", "lowering.export.tfjs.install", "--help"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("usage: python -m lowering.export.tfjs.install [-h]")
    assert "is installed in" not in ended.stdout


@pytest.mark.parametrize("name", ["file", "allow_pickle", "result"])
def test_outputs_in_a_file(name, tmp_path, monkeypatch, capsys):
    """Any name of an output, and no file is lost."""
    monkeypatch.chdir(tmp_path)
    argv = ["export", *PREDICT, "--to", "onnx", "--output", "m.onnx", "--no-verify"]
    assert main([*argv, "--output-names", name]) == 0
    np.save("x.npy", np.ones((2, 3), np.float32))
    (tmp_path / "y.npz").write_text("precious")
    run = ["run", "m.onnx", "--inputs", "x.npy", "--output", "y.npz"]
    assert main(run) == 1
    assert "y.npz exists; --force replaces it" in capsys.readouterr().err
    assert (tmp_path / "y.npz").read_text() == "precious"
    assert main([*run, "--force"]) == 0
    assert list(np.load("y.npz")) == [name] and np.load("y.npz")[name].shape == (2, 4)


def test_several_functions(tmp_path, capsys):
    argv = ["first=tests.export.functions:encode", "tests.export.functions:decode"]
    argv += ["--arg", "first/x=f32[b,3]", "--arg", "decode/z=f32[2,4]"]
    output = str(tmp_path / "model")
    assert main(["export", *argv, "--to", "saved_model", "--output", output]) == 0
    assert "first/result: " in capsys.readouterr().out
    assert main(["inspect", output]) == 0
    shown = capsys.readouterr().out
    assert "first" in shown and "z: float32[2, 4]" in shown
    np.save(tmp_path / "x.npy", np.ones((1, 3), np.float32))
    given = ["--inputs", str(tmp_path / "x.npy"), "--signature", "first"]
    assert main(["run", output, *given]) == 0
    assert "result: float32[1, 4]" in capsys.readouterr().out
    assert main(["run", output, *given[:2]]) == 2
    said = "this is the function 'decode', and --signature chooses one of decode, first"
    assert said in capsys.readouterr().err
    assert main(["run", output, *given[:3], "frist"]) == 2
    said = "has no signature 'frist'; it has decode, first; did you mean 'first'?"
    assert said in capsys.readouterr().err
    assert main(["run", output, *given, "--output", str(tmp_path / "y.npz")]) == 0
    expected = functions.encode(np.ones((1, 3)))
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["result"], expected, rtol=1e-6)
    assert main(["check", *argv, "--to", "onnx"]) == 2
    assert main(["check", *argv, "--arg", "frist/x=f32[3]", "--to", "tfjs"]) == 2
    assert "did you mean 'first'?" in capsys.readouterr().err


def test_force(tmp_path, capsys):
    """It replaces models, and no other file or directory."""
    for to in ("onnx", "saved_model"):
        argv = ["export", *PREDICT, "--to", to, "--output", str(tmp_path / to), "--no-verify"]
        assert main(argv) == 0 and main(argv) == 1 and main([*argv, "--force"]) == 0
        assert "--force replaces it" in capsys.readouterr().err
    argv = ["export", *PREDICT, "--to", "onnx", "--output", str(tmp_path), "--force"]
    assert main(argv) == 1
    assert "exists, and is no model" in capsys.readouterr().err
    (tmp_path / "own.py").write_text("precious")
    assert main([*argv[:-2], str(tmp_path / "own.py"), "--force"]) == 1
    assert "own.py exists, and is no model" in capsys.readouterr().err
    assert (tmp_path / "own.py").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["onnx", "own.py", "saved_model"]


def test_metadata(tmp_path, capsys):
    (tmp_path / "labels.txt").write_text("a\nb\nc\nd\n")
    argv = ["export", *PREDICT, "--name", "four", "--labels", str(tmp_path / "labels.txt")]
    argv += ["--description", "of four classes", "--to", "tflite", "--output"]
    assert main([*argv, str(tmp_path / "model")]) == 0
    assert main(["inspect", str(tmp_path / "model")]) == 0
    shown = capsys.readouterr().out
    assert "of four classes" in shown and "result_labels.txt" in shown
    assert "min_runtime_version" not in shown


def test_viewers(tmp_path, monkeypatch, capsys):
    """They are packages of others, of which a message says how to install them."""
    output = tmp_path / "model.onnx"
    argv = ["export", *PREDICT, "--to", "onnx", "--output", str(output), "--no-verify", "--quiet"]
    assert main(argv) == 0
    monkeypatch.setattr(files, "is_installed", lambda module: False)
    assert main(["visualize", str(output)]) == 1
    assert "pip install netron" in capsys.readouterr().err
    shown = []
    viewer = types.SimpleNamespace(start=shown.append, wait=lambda: shown.append("waited"))
    monkeypatch.setitem(sys.modules, "netron", viewer)
    monkeypatch.setattr(files, "is_installed", lambda module: module == "netron")
    assert main(["visualize", str(output)]) == 0
    assert shown == [str(output), "waited"]
    assert main(["visualize", str(output), "--with", "model-explorer"]) == 2
    monkeypatch.setattr(files, "is_installed", lambda module: False)
    (tmp_path / "junk.onnx").write_text("junk")
    assert main(["visualize", str(tmp_path / "junk.onnx")]) == 2
    assert "cannot be read as ONNX" in capsys.readouterr().err


def test_help_imports_neither_jax_nor_tensorflow(tmp_path):
    """Nor do wrong options, which are found before any module is looked at."""
    (tmp_path / "x.npy").write_bytes(b"whatever")
    (tmp_path / "labels.txt").write_bytes(b"\xff")
    code = """
import sys
from lowering.__main__ import main
for argv in (["--help"], ["--version"], ["exprot"], ["export", "--opsett"]):
    try:
        main(argv)
    except SystemExit:
        pass
assert main(["check", "json:loads", "--arg", "x=f33[3]"]) == 2
check = ["check", "json:loads", "--arg", "x=f32[b]"]
for wrong in (
    ["--quantize", "int3"],
    ["--opset", "3"],
    ["--opset", "99"],
    ["--constraint", "b > = 4"],
    ["--constraint", "c >= 4"],
    ["--arg", "f32[3]"],
    ["--arg", "x=f32[3]"],
    ["--output-names", "y", "y"],
    ["--representative-data", "no_such_module:f", "--quantize", "int8", "--to", "onnx"],
    ["--inputs", folder + "/x.npy"],
    ["--labels", folder + "/labels.txt"],
    ["--args", "json:no_such_name"],
):
    assert main([*check, *wrong]) == 2
assert main(["check", "json:loads", "json:loads"]) == 2
assert main(["check", "json:loads", "--arg", "f32[3]", "--inputs", folder + "/x.npy"]) == 2
for name in ("no such pass", "make plain"):
    assert main(["show", *check[1:], "--without", name]) == 2
assert main(["show", "json:no_such_name"]) == 2
assert main(["show", "json:loads", "--arg", "x=f32[3]", "--arg", "y=f32[3]"]) == 2
export = ["export", "json:loads", "--output"]
below = folder + "/x.npy/model"
assert main([*export, "m", "--to", "litertlm"]) == 2
for arguments in (["--arg", "x=f32[3]"], ["--args", "json:loads"], ["--inputs", "x.npy"]):
    assert main([*export, "m", "--to", "litertlm", *arguments]) == 2
assert main([*export, below, "--to", "onnx"]) == 1
print(sorted({"jax", "numpy", "tensorflow"} & set(sys.modules)))
import onnx
for wrong in (["--opset", str(onnx.defs.onnx_opset_version() + 1)],):
    assert main([*check, "--to", "onnx", *wrong]) == 2
print(sorted({"jax", "tensorflow"} & set(sys.modules)))
"""
    code = code.replace("import sys\n", f"import sys\nfolder = {str(tmp_path)!r}\n", 1)
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-2:] == ["[]", "[]"]
    assert "did you mean 'export'?" in ended.stderr and "did you mean '--opset'?" in ended.stderr


@pytest.mark.parametrize("to", ["saved_model", "tflite", "onnx", "tfjs"])
def test_what_is_wrong_with_inputs_imports_no_runtime(to, tmp_path):
    """Models are described without their runtimes, so that mistakes are found at once."""
    model, x = str(tmp_path / "model"), str(tmp_path / "x.npy")
    argv = ["export", "tests.export.functions:parts", "--arg", "x=f32[b,3]", "--to", to]
    assert main([*argv, "--output", model, "--no-verify", "--quiet"]) == 0
    np.save(x, np.ones((2, 3), np.float32))
    code = f"""
import sys
from lowering.__main__ import main
run = ["run", {model!r}]
assert main(["inspect", *run[1:]]) == 0
for wrong in (
    [],
    ["--inputs", {x!r}, {x!r}],
    ["--inputs", "y=" + {x!r}],
    ["--inputs", {x!r}, "--signature", "no_such"],
    ["--inputs", {x!r}, "--output", "y.npy"],
):
    assert main([*run, *wrong]) == 2
runtimes = {{"jax", "tensorflow", "ai_edge_litert", "onnxruntime"}}
print(sorted(runtimes & set(sys.modules)))
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"
    assert "has 2 outputs; write an .npz file" in ended.stderr


def test_passes_are_those_of_the_pipeline():
    passes = (*pipeline.WHOLE_PROGRAM, *pipeline.PASSES)
    assert tuple(x.name for x in passes if x.is_required) == show.NEEDED
    assert tuple(x.name for x in passes if not x.is_required) == show.SKIPPABLE


def test_options_are_those_of_the_exporters():
    assert set(parser.TARGETS) == set(TARGETS)
    assert set(parser.QUANTIZATIONS["tflite"]) == set(tflite.QUANTIZATIONS)
    assert set(parser.QUANTIZATIONS["tfjs"]) == set(graph_model.QUANTIZATIONS)
    assert set(parser.IO_DTYPES) == set(tflite.IO_DTYPES)
    for name in specifications.DTYPES.values():
        assert name in specifications.KEYS or jax.numpy.dtype(name).name == name


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed, tmp_path):
    """As under some services: the file of a model does not get the number of a stream."""
    export.to_onnx(jax.numpy.sin, (np.zeros(3, np.float32),), tmp_path / "m.onnx", verify=False)
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    command = f"{sys.executable} -m lowering run m.onnx --inputs x.npy --output y.npy {closed}"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env).returncode == 0
    assert np.load(tmp_path / "y.npy").tolist() == [0, 0, 0]


def test_logs_of_others_are_not_shown(tmp_path):
    """In a process of its own, as they write past Python."""
    argv = ["export", *PREDICT, "--to", "tflite", "--output", str(tmp_path / "model"), "--quiet"]
    ended = subprocess.run(
        [sys.executable, "-m", "lowering", *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"},
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{tmp_path / 'model'} is written, and computes what JAX does\n"


def test_an_interrupt_has_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "lowering", "check", *PREDICT],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()  # The first stage.
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.splitlines()[-1] == "interrupted" and "Traceback" not in error


@pytest.mark.parametrize("module", ["argparse", "absl.logging", "numpy", "tensorflow"])
def test_an_interrupt_while_modules_are_imported(module, tmp_path):
    """The first two are imported before the command begins."""
    code = f"""
import signal, sys
from lowering.__main__ import main

# A shell lets what it starts in the background ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.modules.pop({module!r}, None)
sys.meta_path.insert(0, Interrupting())
sys.exit(main(["check", *{PREDICT}, "--to", "saved_model"]))
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_an_interrupt_that_becomes_another_exception(monkeypatch, capsys):
    """As by native code, which prints it and raises an error of its own."""

    def interrupted(args):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            sys.excepthook(type(error), error, error.__traceback__)
            failed = SystemError("a function returned a result with an exception set")
            sys.excepthook(SystemError, failed, None)
            unraisable = types.SimpleNamespace(exc_type=SystemError, exc_value=failed)
            sys.unraisablehook(unraisable)
            raise RuntimeError("native code has failed") from error

    hook = sys.excepthook
    monkeypatch.setitem(running._COMMANDS, "inspect", interrupted)
    assert main(["inspect", "model"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert sys.excepthook is hook


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_an_interrupt_that_a_library_ignores(monkeypatch, capsys, quiet):
    """As when it comes in a callback of native code."""

    def interrupted(args):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        logging.getLogger("lowering.export").info("running it")
        assert quiet, "the next stage raises it"
        return 0

    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setitem(running._COMMANDS, "check", interrupted)
    assert main(["check", "model", *quiet]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_interruption(monkeypatch, capsys):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(functions, "predict", interrupted)
    assert main(["show", *PREDICT]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["show", PREDICT[0], "--arg", "f32[3,,4]"], "lacks a dimension between two commas"),
        (["show", PREDICT[0]], "expected the arguments of predict(x); found 0 arguments"),
        (["show", PREDICT[0], "--arg", "x=f32[3]", "--arg", "f32[3]"], "names to all or to none"),
        (["show", PREDICT[0], "--arg", "f32[3]", "--constraint", "b>=2"], "no --arg has one"),
        (
            ["show", *PREDICT, "--constraint", "b > = 4"],
            "--constraint 'b > = 4' is no constraint such as 'b >= 4'",
        ),
        (
            ["show", *PREDICT, "--constraint", "c >= b"],
            "--constraint 'c >= b': no --arg has the dimension 'c'",
        ),
        (["show", *PREDICT, "--params", "tests.export.functions:q"], "has no 'q'"),
        (["check", *PREDICT, "--inputs", "no.npz"], "no.npz is no file of arrays"),
        (["check", *PREDICT, "--to", "onnx", "--opset", "3"], "opset is a number from 17"),
        (["check", *PREDICT, "--to", "onnx", "--shard-bytes", "3"], "--shard-bytes is for tfjs"),
        (["show", "predict"], "'predict' has no function name; write module:name"),
        (["check", PREDICT[0], "x=f32[3]"], "'x=f32[3]' is an argument; give it by --arg"),
        (["show", PREDICT[0], "--arg", "float[3]"], "; did you mean 'f32'?"),
        (["export", *PREDICT, "--to", "onnx", "--output", "m.tflite"], "suffix of TF Lite, not of"),
        (
            ["show", "tests.export.functions:predict_with", "--arg", "x=f32[3]"],
            "predict_with takes 'params' in front of 'x'; give it, too, or by --params if",
        ),
        (["run", "--inputs", "x.npy", "model.onnx"], "in front of the options"),
        (["show", "a b"], "'a b' names nothing; write it as module:name"),
        (["show", "no.such.module:f"], "there is no module 'no.such.module'"),
        (["show", "tests.export.functions:f"], "tests.export.functions has no 'f'"),
        (["show", "tests.export.functions:no_function"], "is an int, not a function"),
        (["show", PREDICT[0], "--arg", "f33[3]"], "'f33' is no dtype; known are bf16"),
        (["show", PREDICT[0], "--arg", "x:3"], "write it as dtype[dimensions]"),
        *(
            (["show", PREDICT[0], "--arg", f"x=f32[{dim},3]"], f"'{dim}' in 'x=f32[{dim},3]' is no")
            for dim in ("-1", "3.5", "_", "?", "...", "b+", "b(3)")
        ),
        (["show", "collections:Counter", "--arg", "f32[3]"], "is a class; name an instance"),
        (["show", "functions.py:predict"], "write the module without .py: functions:predict"),
        (["show", *PREDICT, "--target", "coreml"], "unknown target 'coreml'"),
        (
            ["show", *PREDICT, "--without", "x"],
            "'x'; --without takes fuse functions, elim",
        ),
        (["show", *PREDICT, "--without", "make plain"], "cannot be skipped: programs need it"),
        (["show", *PREDICT, "--without", "fuse op"], "; did you mean 'fuse ops'?"),
        (
            ["export", *PREDICT, "--to", "onnx", "--output", "m", "--quantize", "full"],
            "--quantize is one of dynamic, int8, int4 for onnx, not 'full'",
        ),
    ],
)
def test_commands_that_make_no_sense(argv, message, capsys):
    assert main(argv) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["export", PREDICT[0], "--to", "onnx", "--output", ""], "the name of the file is empty"),
        (["export", PREDICT[0], "--to", "onnx", "--output", "-"], "name a file"),
        (["run", "model.onnx", "--output", "y.csv"], "'y.csv' is neither an .npz file nor"),
        (
            ["check", PREDICT[0], "--output", "m"],
            "no option --output; did you mean '--output-names'",
        ),
        (
            ["check", PREDICT[0], "--to", "onnx,tfjs"],
            "; several are written with spaces in between",
        ),
        (["check", "--to", "onnx", PREDICT[0]], "; functions stand in front of the options"),
        (["inspect", "m.onnx", "n.onnx"], "unrecognized arguments: n.onnx\n`lowering inspect --h"),
        (["show", *PREDICT, PREDICT[0]], "predict; functions stand in front of the options"),
        (["inspect", ""], "the name of the file is empty"),
        (["run", "m.onnx", "--inputs", ""], "the name of the file is empty"),
        (["check", *PREDICT, "--labels", ""], "the name of the file is empty"),
        *(
            ([command, "m.onnx", "--quiet"], "there is no option --quiet")
            for command in ("show", "inspect", "run", "visualize")
        ),
    ],
)
def test_words_that_make_no_sense(argv, message, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(argv)
    assert exit_.value.code == 2 and message in capsys.readouterr().err


def test_a_constraint_on_one_of_several_functions(capsys):
    argv = ["first=jax.numpy:sin", "second=jax.numpy:cos", "--to", "tflite"]
    argv += ["--arg", "first/x=f32[b]", "--arg", "second/x=f32[c]", "--constraint", "c >= 4"]
    assert main(["check", *argv]) == 0


def test_usage(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["export", PREDICT[0], "--to", "coreml", "--output", "m"])
    assert exit_.value.code == 2
    assert "invalid choice: 'coreml'" in capsys.readouterr().err


def test_an_unknown_option_in_front_of_the_command(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--versoin"])
    assert exit_.value.code == 2
    said = "there is no option --versoin; did you mean '--version'?"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (".", "exists, and is no model"),
        ("file", "file exists, and is no model"),
        ("empty", "empty exists; --force replaces it"),
        ("file/model", "cannot be written, as file is no directory"),
        ("folder", "folder exists, and is no model"),
    ],
)
def test_outputs_in_the_way(output, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("here")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "other").write_text("here")
    before = sorted(tmp_path.rglob("*"))
    argv = ["export", "jax.numpy:sin", "--arg", "x=f32[3]", "--to", "onnx", "--output", output]
    assert main(argv) == 1
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_where_a_function_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_models.py").write_text("def fails(x):\n    return x.nothing\n")
    assert main(["show", "own_models:fails", "--arg", "x=f32[3]"]) == 1
    assert " (own_models.py:2, in fails)\n" in capsys.readouterr().err


def test_a_function_that_ends_the_process(tmp_path, monkeypatch, capsys):
    """Its exit code is not that of the command, whose codes say what has failed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ending.py").write_text("import sys\ndef ends(x):\n    sys.exit(5)\n")
    assert main(["show", "ending:ends", "--arg", "x=f32[3]"]) == 1
    assert "error: SystemExit: 5 (ending.py:3, in ends)\n" in capsys.readouterr().err
    assert main(["show", "ending:ends", "--args", "sys:exit"]) == 1
    assert "error: sys:exit fails: SystemExit" in capsys.readouterr().err


def test_a_callback_that_fails(capsys):
    """JAX logs its traceback, and puts another into its own message."""
    argv = ["check", "tests.export.functions:of_failing_callback", "--arg", "x=f32[3]"]
    assert main([*argv, "--to", "onnx"]) == 1
    shown = capsys.readouterr()
    assert "ValueError: of the callback" in shown.out
    assert "Traceback" not in shown.out


def test_files_that_cannot_be_run(tmp_path, monkeypatch, capsys):
    """A line for each, as there is nothing in a runtime's trace for its reader."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones(3, np.float32))
    (tmp_path / "pickled.npy").write_bytes(b"whatever")
    np.savez("objects.npz", x=np.array([{}]))
    argv = ["export", "jax.numpy:sin", "--arg", "x=f32[3]", "--no-verify", "--quiet"]
    assert main([*argv, "--to", "onnx", "--output", "model.onnx"]) == 0
    assert main(["run", "model.onnx", "--inputs", "pickled.npy"]) == 2
    assert main(["run", "model.onnx", "--inputs", "objects.npz"]) == 2
    assert main(["run", "model.onnx", "--inputs", "x.npy", "--output", "x.npy/y.npz"]) == 1

    def fails(*_):
        raise RuntimeError("no such file\n  at somewhere")

    assert main(["run", "model.onnx"]) == 2
    monkeypatch.setitem(loading._RUNS, "onnx", fails)
    assert main(["run", "model.onnx", "--inputs", "x.npy"]) == 1
    monkeypatch.setitem(loading._RUNS, "onnx", lambda path: fails)
    assert main(["run", "model.onnx", "--inputs", "x.npy"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: pickled.npy is no file of arrays (np.save, np.savez)",
        "error: objects.npz has objects of Python, not numbers",
        "error: x.npy/y.npz cannot be written, as x.npy is no directory",
        "error: model.onnx takes x: float32[3]; give the arrays by --inputs",
        "error: model.onnx cannot be loaded: no such file",
        "error: model.onnx cannot be run: no such file",
    ]


def test_shapes_of_inputs(tmp_path, capsys):
    path = tmp_path / "x.npy"
    argv = ["check", PREDICT[0], "--to", "onnx", "--inputs", str(path), "--arg"]
    np.save(path, np.ones((5, 3), np.float32))
    assert main([*argv, "x=f32[b,3]"]) == 0
    for spec in ("x=f32[b,4]", "x=f32[1,3]"):
        assert main([*argv, spec]) == 2
        assert "has the shape (5, 3), which does not fit --arg" in capsys.readouterr().err
