"""The command `export --to litertlm`: the function is what `export.prefill_decode` returns."""

import argparse
import pathlib
from typing import Any

from lowering.commands import named, paths
from lowering.commands.mistakes import CommandError

# The options that this format alone has.
OPTIONS = ("tokenizer", "stop_token", "start_token", "templates")


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options of language models."""
    command.add_argument(
        "--tokenizer",
        type=paths.existing,
        help="litertlm: a file of SentencePiece, or a tokenizer.json of Hugging Face",
    )
    command.add_argument(
        "--stop-token",
        action="append",
        metavar="TOKEN",
        help="litertlm: a token that ends an answer, its text or number; may be repeated",
    )
    command.add_argument(
        "--start-token", metavar="TOKEN", help="litertlm: the token that comes before a prompt"
    )
    command.add_argument(
        "--templates",
        metavar="MODULE:NAME",
        help="litertlm: a dictionary from system, user and model to pairs of texts, which stand "
        "before and after what each of them says",
    )


def check(args: argparse.Namespace) -> None:
    """Raises a CommandError for what is wrong without a look into any module."""
    if len(args.functions) > 1:
        raise CommandError("--to litertlm takes one function, which makes the signatures")
    for name in ("arg", "args", "params", "constraint", "inputs"):
        if getattr(args, name):
            raise CommandError(f"--{name} is not for litertlm, whose function has the arguments")
    if args.tokenizer is None or not args.stop_token:
        raise CommandError("--to litertlm needs --tokenizer and --stop-token")
    if not args.tokenizer.is_file():
        raise CommandError(f"there is no file {args.tokenizer} of a tokenizer")
    if args.templates is not None:
        named.check_module(args.templates)


def write(args: argparse.Namespace, output: pathlib.Path) -> Any:
    """Writes the file; returns the report on it.

    Raises:
      CommandError: if the function is something else.
    """
    from lowering import export

    signatures = named.value(args.functions[0])
    if not isinstance(signatures, dict) or not {"fun", "args"} <= signatures.keys():
        raise CommandError(
            f"{args.functions[0]} has to be what lowering.export.prefill_decode returns, or a "
            "function that returns it, for --to litertlm"
        )
    return export.to_litertlm(
        **signatures,
        path=output,
        tokenizer=args.tokenizer,
        stop_tokens=list(map(_token, args.stop_token)),
        start_token=None if args.start_token is None else _token(args.start_token),
        templates=None if args.templates is None else named.value(args.templates),
        quantize=args.quantize,
        tolerance=args.tolerance,
        verify=not args.no_verify,
        overwrite=args.force,
    )


def _token(text: str) -> Any:
    """A token by its number, if the text is one, or by its text."""
    return int(text) if text.isdecimal() else text
