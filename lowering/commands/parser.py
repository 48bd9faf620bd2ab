"""The options of the command line."""

import argparse
import re
import sys
from typing import Any, NoReturn

from lowering.commands import language_models, paths
from lowering.commands.mistakes import CommandError, did_you_mean

FORMATS = ("saved_model", "tflite", "onnx", "tfjs")
# The format of language models, whose signatures one function makes.
LANGUAGE_MODELS = "litertlm"
# The values of options. Tests compare these with the modules that they are for.
TARGETS = ("tf", "xla", "portable", "tflite", "tfjs", "onnx")
QUANTIZATIONS = {
    "tflite": ("dynamic", "float16", "full", "int8", "int4"),
    "onnx": ("dynamic", "int8", "int4"),
    "tfjs": ("uint8", "uint16", "float16"),
    LANGUAGE_MODELS: ("dynamic", "float16", "int8", "int4"),
}
IO_DTYPES = ("int8", "uint8")
# The first, and what no version of ONNX has in years. The installed one knows which there are.
OPSETS = range(17, 50)

# The exit code of a command that makes no sense.
_MISTAKE = 2


class Parser(argparse.ArgumentParser):
    """A parser that says of a wrong word what was probably meant."""

    def __init__(self, **options: Any) -> None:
        # An abbreviation of one option may be another option of another command.
        super().__init__(**options, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, but an unknown option is an error before any other."""
        args = sys.argv[1:] if args is None else args
        options = [x for action in self._actions for x in action.option_strings]
        has_commands = any(isinstance(action.choices, dict) for action in self._actions)
        for word in args:
            # Options after a command are the command's.
            if word == "--" or (has_commands and not word.startswith("-")):
                break
            name = word.partition("=")[0]
            if name.startswith("--") and name not in options:
                self.error(f"there is no option {name}{did_you_mean(name, options)}")
        found, rest = super().parse_known_args(args, namespace)
        if rest and not has_commands:  # Else the error names the program in place of the command.
            is_function = any(re.fullmatch(r"[\w.=]+:[\w.]+", word) for word in rest)
            hint = "; functions stand in front of the options" * is_function
            self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Ends the program with the message and what was probably meant, without the usage."""
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if choice is not None and "," in choice[1]:
            message += "; several are written with spaces in between"
        elif choice is not None and ":" in choice[1]:
            message += "; functions stand in front of the options"
        elif choice is not None:
            message += did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
        self.exit(_MISTAKE, f"error: {message}\n`{self.prog} --help` lists what there is\n")


def check_target(name: str) -> None:
    """Raises a CommandError if no target has the name."""
    if name not in TARGETS:
        hint = did_you_mean(name, TARGETS)
        raise CommandError(f"unknown target {name!r}; known are {', '.join(TARGETS)}{hint}")


def parser(description: str, version: str, runs: dict[str, Any]) -> argparse.ArgumentParser:
    """The parser.

    Args:
      description: the text of the help; its first line comes first.
      version: the version of the program.
      runs: by the name of each command, the function that runs it.
    """
    first, _, more = description.partition("\n")
    made = Parser(
        prog="lowering",
        description=first,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"lowering {version}")
    commands = made.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        added.set_defaults(run=runs[name])
        return added

    export = command("export", "write a model")
    formats = (*FORMATS, LANGUAGE_MODELS)
    export.add_argument("--to", required=True, choices=formats, help="the format")
    export.add_argument(
        "--output", required=True, type=paths.new, help="the file or directory to write"
    )
    export.add_argument(
        "--force", action="store_true", help="replace the file or the model at --output"
    )
    export.add_argument("--no-verify", action="store_true", help="do not compare it with JAX")
    check = command("check", "export and verify models, and keep nothing")
    check.add_argument(
        "--to", nargs="+", choices=FORMATS, default=FORMATS, help="the formats; by default all"
    )
    show = command("show", "show the ops of the graph, and what each runtime would refuse")
    _add_show(show)
    for added in (export, check, show):
        _add_function(added, several=added is not show)
    _add_files(command)
    for added in commands.choices.values():
        added.set_defaults(quiet=True)  # Only exports have stages.
        added.add_argument(
            "--traceback",
            action="store_true",
            help="show tracebacks of errors, and what TensorFlow logs",
        )
    for added in (export, check):
        _add_options(added)
        language_models.add_options(added)
        text = "do not print stages" + " and the summary" * (added is export)
        added.add_argument("--quiet", action="store_true", default=False, help=text)
    return made


def _add_show(show: argparse.ArgumentParser) -> None:
    show.add_argument("--target", default="portable", help="the target; %(default)s by default")
    show.add_argument(
        "--passes",
        action="store_true",
        help="show instead what each pass makes of the program before it is lowered",
    )
    show.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PASS",
        help="skip the pass of this name; may be repeated",
    )


def _add_function(command: argparse.ArgumentParser, several: bool) -> None:
    text = "the function, as module:name"
    if several:
        text += "; several, as name=module:name or module:name, become functions of one model"
    command.add_argument("functions", nargs="+" if several else 1, metavar="FUNCTION", help=text)
    command.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help='an argument, such as "x=f32[b,224,224,3]"; may be repeated',
    )
    command.add_argument(
        "--args",
        metavar="MODULE:NAME",
        help="instead of --arg, a tuple of the arguments, or a function that returns one",
    )
    command.add_argument(
        "--params",
        metavar="MODULE:NAME",
        help="the parameters that the model keeps, a pytree of arrays or a function that returns "
        "one; they are the first argument of the function",
    )
    command.add_argument(
        "--constraint",
        action="append",
        default=[],
        metavar="TEXT",
        help='a constraint on symbolic dimensions, such as "b >= 4"; may be repeated',
    )


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--inputs",
        type=paths.existing,
        metavar="FILE",
        help="arrays (.npz, .npy) to verify the model with, by the names in --arg; by default "
        "random ones",
    )
    command.add_argument("--output-names", nargs="+", metavar="NAME", help="names of the outputs")
    command.add_argument("--tolerance", type=float, help="the largest relative error accepted")
    command.add_argument(
        "--quantize",
        help="tflite: int8, int4, dynamic, float16 or full; onnx: dynamic, int8 or int4; tfjs: "
        "uint8, uint16 or float16; litertlm: dynamic, float16, "
        "int8 or int4",
    )
    command.add_argument(
        "--representative-data",
        metavar="MODULE:NAME",
        help="tflite, for --quantize full, and onnx, for --quantize int8: tuples of inputs, or a "
        "function that returns them",
    )
    command.add_argument(
        "--io-dtype",
        help="tflite, for --quantize full: int8 or uint8 inputs and outputs",
    )
    command.add_argument(
        "--allow-flex",
        action="store_true",
        default=None,
        help="tflite: permit ops that only a runtime with TensorFlow's kernels runs",
    )
    command.add_argument(
        "--opset",
        type=int,
        help="onnx: the version of the operators, by default the newest that ONNX Runtime has",
    )
    command.add_argument(
        "--compute-dtype",
        choices=("float16",),
        help="onnx: compute in float16 what JAX computes in float16",
    )
    command.add_argument(
        "--external-data",
        action="store_true",
        default=None,
        help="onnx: write the weights to a file beside the model",
    )
    command.add_argument(
        "--shard-bytes", type=int, help="tfjs: the largest size of a file of weights"
    )
    command.add_argument(
        "--target", help="saved_model: xla, the default, or tf for a TensorFlow without XLA"
    )
    command.add_argument(
        "--gradients",
        action="store_true",
        default=None,
        help="saved_model: keep derivatives, so that the loaded model can be differentiated",
    )
    command.add_argument("--name", help="tflite, onnx: the name in the metadata of the model")
    command.add_argument(
        "--description", help="tflite, onnx: the description in the metadata of the model"
    )
    command.add_argument(
        "--labels",
        type=paths.existing,
        metavar="FILE",
        help="tflite, onnx: a text file with the name of a class in each line",
    )


def _add_files(command: Any) -> None:
    model = {"type": paths.existing, "metavar": "FILE", "help": "a model of any of the formats"}
    command("inspect", "show the inputs, outputs, ops, size and metadata of a file").add_argument(
        "file", **model
    )
    run = command("run", "run a file in its runtime")
    # Behind --inputs, FILE would be one of the inputs. So it may be missing here; see `run_run`.
    run.usage = f"{run.prog} FILE [options]"
    run.add_argument("file", nargs="?", **model)
    run.add_argument(
        "--inputs",
        type=paths.name,
        nargs="*",
        default=[],
        metavar="FILE",
        help="arrays: .npy files in the order of the inputs or as name=x.npy, or an .npz file with "
        "the names of the inputs",
    )
    run.add_argument("--signature", help="the function, if the file has several")
    run.add_argument(
        "--output",
        type=paths.of_arrays,
        help="an .npz file for the outputs, or an .npy file for a single one; without it they are "
        "printed",
    )
    run.add_argument("--force", action="store_true", help="replace the file at --output")
    visualize = command("visualize", "look at the graph of a file in a browser")
    visualize.add_argument("file", **model)
    visualize.add_argument(
        "--with",
        dest="viewer",
        choices=("model-explorer", "netron"),
        help="the viewer; by default the one that is installed",
    )
