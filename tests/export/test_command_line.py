"""`python -m lowering`: its commands, what they print, and their exit codes."""

import jax
import numpy as np
import pytest

from lowering.__main__ import main
from lowering.targets import Target
from tests.export import functions

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
    consumers = [f"{name}: refuses nothing that is known" for name in ("tflite", "onnx", "tfjs")]
    assert lines[-3:] == consumers


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
    """They are made of the words in a file."""
    words = np.asarray(jax.random.key_data(jax.random.key(5)))
    np.savez(tmp_path / "inputs.npz", key=words, scale=np.uint32([1, 2]))
    argv = ["tests.export.functions:noise", "--arg", "key=key[]", "--arg", "scale=u32[2]"]
    inputs = ["--inputs", str(tmp_path / "inputs.npz")]
    assert main(["check", *argv, *inputs, "--to", "onnx", "saved_model"]) == 0
    np.savez(tmp_path / "inputs.npz", key=words[:1].astype(np.int32), scale=np.uint32([1, 2]))
    assert main(["check", *argv, *inputs, "--to", "onnx"]) == 2
    assert "key of" in capsys.readouterr().err
    assert main(["show", "jax.random:bits", "--arg", "key<rbg>[]", "--target", "tflite"]) == 0


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
    assert captured.out.splitlines() == [f"{argv[-1]} is written, and computes what JAX does"]


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
        (["show", PREDICT[0], "--arg", "f32[3]", "--constraint", "b>2"], "no --arg has one"),
        (["show", *PREDICT, "--params", "tests.export.functions:q"], "has no 'q'"),
        (["check", *PREDICT, "--inputs", "no.npz"], "no.npz is no file of arrays"),
        (["check", *PREDICT, "--to", "onnx", "--opset", "3"], "opset is a number from 17"),
        (["check", *PREDICT, "--to", "onnx", "--shard-bytes", "3"], "--shard-bytes is for tfjs"),
        (["show", "predict"], "'predict' names nothing; write it as module:name"),
        (["show", "no.such.module:f"], "there is no module 'no.such.module'"),
        (["show", "tests.export.functions:f"], "tests.export.functions has no 'f'"),
        (["show", "tests.export.functions:no_function"], "is no function but int"),
        (["show", PREDICT[0], "--arg", "f33[3]"], "'f33' is no dtype; known are bf16"),
        (["show", PREDICT[0], "--arg", "x:3"], "write it as dtype[dimensions]"),
        (["show", *PREDICT, "--target", "coreml"], "unknown target 'coreml'"),
        (["show", *PREDICT, "--without", "x"], "no pass is called 'x'; the passes are replace"),
        (["show", *PREDICT, "--without", "make plain"], "cannot be skipped: programs need it"),
        (
            ["export", *PREDICT, "--to", "onnx", "--output", "m", "--quantize", "int8"],
            "--quantize is for tflite and tfjs, not onnx",
        ),
    ],
)
def test_commands_that_make_no_sense(argv, message, capsys):
    assert main(argv) == 2
    assert message in capsys.readouterr().err


def test_usage(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["export", PREDICT[0], "--to", "coreml", "--output", "m"])
    assert exit_.value.code == 2
    assert "invalid choice: 'coreml'" in capsys.readouterr().err
