"""Parses and runs commands; their errors become messages and exit codes."""

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
from lowering.commands.mistakes import CommandError, FaultError, hidden_module, in_options
from lowering.commands.parser import parser
from lowering.commands.show import run_show

_COMMANDS = {
    "export": run_export,
    "check": run_check,
    "show": run_show,
    "inspect": run_inspect,
    "run": run_run,
    "visualize": run_visualize,
}


def run(description: str, argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code.

    Args:
      description: what `--help` says of the whole.
      argv: the arguments; by default those of the process.

    Raises:
      KeyboardInterrupt: if the command was interrupted.
    """
    output.open_streams()
    args = parser(description, lowering.__version__, _COMMANDS).parse_args(argv)
    sys.path.insert(0, os.getcwd())
    with contextlib.nullcontext() if args.traceback else output.without_logs():
        try:
            versions.check_installed()
            with interrupts.deferred() as check, output.progress(args.quiet, check):
                code = args.run(args)
                check()
                return code
        except BrokenPipeError:  # What reads the output has ended, as `head` does.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # A function may call sys.exit, and raise what it likes.
            return _failed(error, args)
        finally:
            sys.path.remove(os.getcwd())


def _failed(error: BaseException, args: argparse.Namespace) -> int:
    """Says what has failed; returns the exit code."""
    if args.traceback:
        traceback.print_exc()
    is_expected = isinstance(error, CommandError | FaultError | ImportError | OSError)
    is_mistake = isinstance(error, CommandError)
    if not is_expected:
        from lowering import callables
        from lowering.commands import faults

        is_expected = faults.is_ours(error)
        is_mistake = faults.is_of_the_command(error)
    if is_expected:
        text = in_options(str(error))
    else:
        text = f"{callables.summary(error)}{callables.place(error)}"
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    print(f"error: {text}{hidden_module(error)}", file=sys.stderr)
    if not is_expected and not args.traceback:
        print("--traceback shows where it comes from", file=sys.stderr)
    return 2 if is_mistake else 1
