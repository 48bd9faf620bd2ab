"""Exports JAX functions, and shows what becomes of them.

    lowering export my.models:predict --arg "x=f32[b,224,224,3]" --to tflite --output model.tflite
    lowering show my.models:predict --arg "x=f32[1,224,224,3]"
    lowering check my.models:predict --arg "x=f32[1,224,224,3]" --to onnx tfjs
    lowering inspect model.tflite
    lowering run model.tflite --inputs x.npy
    lowering visualize model.tflite

`python -m lowering` does the same. `export` writes a model and compares it with JAX, `show` lists
the ops of the graph and what each runtime would refuse, and `check` exports and verifies models
without keeping them. `show --passes` prints the program as JAX has traced it, and as each pass
leaves it. `inspect`, `run` and `visualize` take any SavedModel, TF Lite, ONNX, TF.js or LiteRT-LM
model.

A function is named by its module and its name; modules are found in the current directory, too.
Arguments are given in the order of its parameters, as `dtype[dimensions]` with an optional name in
front; a dimension that is a word is symbolic. Containers are those of Python, as in
"batch={'x': f32[b,3], 'y': i32[b]}". PRNG keys are `key[dimensions]`, or `key<rbg>[...]` of another
implementation; the model takes their words. With --args a function returns the arguments. With
--params the first parameter of the function is the pytree of that name, which the model keeps.

Several functions become several functions of one model. An argument of one of them has its name in
front: --arg "encode/x=f32[b,3]". Others are arguments of all.

Exit codes:
  0  all went well
  1  the function raises an error or cannot be lowered or exported, a package is missing, a file is
     in the way, or the model does not compute what JAX does
  2  the command makes no sense: a wrong option, argument, name or file
  130  interrupted
"""

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence

import lowering
from lowering import versions
from lowering.commands import interrupts, output
from lowering.commands.exporting import run_check, run_export
from lowering.commands.files import run_inspect, run_run, run_visualize
from lowering.commands.mistakes import CommandError, FaultError, in_options
from lowering.commands.parser import parser
from lowering.commands.show import run_show

# How a program ends that a signal has ended, in shells.
_INTERRUPTED = 130

_COMMANDS = {
    "export": run_export,
    "check": run_check,
    "show": run_show,
    "inspect": run_inspect,
    "run": run_run,
    "visualize": run_visualize,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    args = parser(__doc__ or "", lowering.__version__, _COMMANDS).parse_args(argv)
    sys.path.insert(0, os.getcwd())
    with contextlib.nullcontext() if args.traceback else output.without_logs():
        try:
            versions.check_installed()
            with interrupts.remembered() as check, output.progress(args.quiet, check):
                code = args.run(args)
                check()
                return code
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return _INTERRUPTED
        except BrokenPipeError:  # What reads the output has ended, as `head` does.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            return _failed(error, args)
        finally:
            sys.path.remove(os.getcwd())


def _failed(error: Exception, args: argparse.Namespace) -> int:
    """Says what has failed; returns the exit code."""
    if args.traceback:
        traceback.print_exc()
    is_expected = isinstance(error, CommandError | FaultError | ImportError | OSError)
    is_mistake = isinstance(error, CommandError)
    if not is_expected:
        from lowering.commands import faults

        is_expected = faults.is_ours(error)
        is_mistake = faults.is_of_the_command(error)
    if is_expected:
        text = in_options(str(error))
    else:
        text = f"{type(error).__name__}: {error}{faults.place(error)}"
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    print(f"error: {text}", file=sys.stderr)
    if not is_expected and not args.traceback:
        print("--traceback shows where it comes from", file=sys.stderr)
    return 2 if is_mistake else 1


if __name__ == "__main__":
    sys.exit(main())
