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
front; a dimension that is a name is symbolic. Containers are those of Python, as in
"batch={'x': f32[b,3], 'y': i32[b]}". PRNG keys are `key[dimensions]`, or `key<rbg>[...]` of another
implementation; the model takes their key data. With --args a function returns the arguments. With
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

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    try:
        # Here, as an interrupt may come while modules are imported. Those that are imported before
        # take little time, and so does the package itself.
        from lowering.commands import running

        return running.run(__doc__ or "", argv)
    except KeyboardInterrupt:
        from lowering.commands import interrupts

        interrupts.say()
        return interrupts.EXIT_CODE


if __name__ == "__main__":
    sys.exit(main())
