"""`python -m lowering`: its commands, what they print, and their exit codes."""

import pytest

from lowering.__main__ import main

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
    assert lines[0].split() == ["op", "dtype", "count", "primitive", "refused", "by", "line"]
    (relu,) = [line for line in lines if line.startswith("Relu")]
    assert "functions.py" in relu or "max" in relu
    assert lines[-1].endswith("ops")


def test_check(capsys):
    assert main(["check", *PREDICT, "--to", "tflite", "onnx"]) == 0
    assert capsys.readouterr().out.count("computes what JAX does") == 2


def test_check_of_what_no_runtime_can(capsys):
    argv = ["check", "tests.export.functions:refused", "--arg", "f32[3]", "--to", "onnx"]
    assert main(argv) == 1
    assert "onnx: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["show", "predict"], "write it as module:name"),
        (["show", "no.such.module:f"], "there is no module 'no.such.module'"),
        (["show", "tests.export.functions:f"], "tests.export.functions has no 'f'"),
        (["show", "tests.export.functions:no_function"], "is no function but int"),
        (["show", PREDICT[0], "--arg", "f33[3]"], "'f33' is no dtype; known are bf16"),
        (["show", PREDICT[0], "--arg", "x:3"], "write it as dtype[dimensions]"),
        (["show", *PREDICT, "--target", "coreml"], "unknown target 'coreml'"),
        (
            ["export", *PREDICT, "--to", "onnx", "--output", "m", "--quantize", "int8"],
            "--quantize is not for onnx",
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
