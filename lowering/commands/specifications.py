"""`--arg`: arguments by their shapes and dtypes, in a notation like that of Python.

An array is `dtype[dimensions]`, and containers are those of Python:

    x=f32[b,28,28]
    batch={'image': f32[b,28,28], 'label': i32[b]}
    encode/state=(f32[b,8], [i32[b], None])

The name in front is optional. With several functions, one in front of a slash says of which
function it is an argument.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from lowering.commands import dimensions
from lowering.commands.mistakes import CommandError, did_you_mean

_SHORT = {
    "bf16": "bfloat16",
    "c64": "complex64",
    "c128": "complex128",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i4": "int4",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u4": "uint4",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
}
_NARROW = (
    *("int2", "uint2"),
    "float4_e2m1fn",
    *(f"float8_{kind}" for kind in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz")),
    *(f"float8_{kind}" for kind in ("e5m2", "e5m2fnuz", "e8m0fnu")),
)
# The implementations of PRNG keys, by the names that their dtypes and `jax.random.key` have.
KEYS: Mapping[str, str | None] = {
    "key": None,
    "key<fry>": "threefry2x32",
    "key<rbg>": "rbg",
    "key<urbg>": "unsafe_rbg",
    "key<threefry2x32>": "threefry2x32",
    "key<unsafe_rbg>": "unsafe_rbg",
}
# All dtypes, by the names that an argument may have.
DTYPES: Mapping[str, str] = {
    **_SHORT,
    **{name: name for name in (*_SHORT.values(), "bool", *_NARROW, *KEYS)},
}
# Names that dtypes have elsewhere.
_LIKE = {"float": "f32", "double": "f64", "half": "f16", "int": "i32", "long": "i64"}

_FRONT = re.compile(r"(?:(?P<function>\w+)/)?(?P<name>\w+)\s*=(?P<rest>.*)", re.DOTALL)
_OF_FUNCTION = re.compile(r"(?P<function>\w+)/(?P<rest>.*)", re.DOTALL)
_ARRAY = re.compile(r"(?P<dtype>\w+(?:<\w+>)?)\s*\[(?P<dims>[^\[\]]*)\]")
# A size, a symbolic size, or an expression of these, which JAX reads.
_DIM = re.compile(r"\d+|(?=.*[^\W\d_])[\w(][\w\s+*^()-]*")
_KEY = re.compile(r"(?:'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<bare>\w+))\s*:")
_CLOSING = {"{": "}", "(": ")", "[": "]"}


@dataclasses.dataclass(frozen=True)
class Array:
    """An array of an argument.

    Attributes:
      dtype: the name of its dtype.
      dims: its dimensions; those that are no numbers are symbolic.
    """

    dtype: str
    dims: tuple[str, ...]


def symbols(value: Any) -> frozenset[str]:
    """The names of the symbolic sizes in a pytree of `Array`s."""
    if isinstance(value, Array):
        return frozenset().union(*map(dimensions.names, value.dims))
    if isinstance(value, dict):
        value = list(value.values())
    return frozenset().union(*map(symbols, value or ()))


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of a function.

    Attributes:
      function: the name of the function, or None for all.
      name: its name, or None.
      value: a pytree whose leaves are `Array`s.
    """

    function: str | None
    name: str | None
    value: Any


def parsed(text: str) -> Argument:
    """The argument that a text specifies.

    Raises:
      CommandError: if it specifies none.
    """
    front = _FRONT.fullmatch(text.strip()) or _OF_FUNCTION.fullmatch(text.strip())
    found = front.groupdict() if front else {"rest": text}
    reader = _Reader(text, found["rest"].strip())
    value = reader.value()
    if reader.rest:
        raise reader.mistake()
    return Argument(found.get("function"), found.get("name"), value)


class _Reader:
    """Reads a pytree from the beginning of a text."""

    def __init__(self, whole: str, rest: str) -> None:
        self._whole = whole
        self.rest = rest

    def mistake(self) -> CommandError:
        return CommandError(
            f"{self._whole!r} is no argument; write it as dtype[dimensions], such as "
            "x=f32[b,28,28], or as a container of these, such as batch={'x': f32[b,3]}"
        )

    def value(self) -> Any:
        if self.rest[:1] in _CLOSING:
            return self._container(self.rest[0])
        if re.match(r"None\b", self.rest):
            self._skip(4)
            return None
        match = _ARRAY.match(self.rest)
        if match is None:
            raise self.mistake()
        self._skip(match.end())
        return _array(self._whole, match["dtype"], match["dims"])

    def _container(self, opening: str) -> Any:
        closing, items, keys, has_comma = _CLOSING[opening], [], [], False
        self._skip(1)
        while not self.rest.startswith(closing):
            if opening == "{":
                keys.append(self._key())
            items.append(self.value())
            has_comma = self.rest.startswith(",")
            if has_comma:
                self._skip(1)
            elif not self.rest.startswith(closing):
                raise self.mistake()
        self._skip(1)
        if opening == "{":
            return dict(zip(keys, items, strict=True))
        if opening == "(":
            # As in Python, parentheses around one item without a comma make no tuple.
            return items[0] if len(items) == 1 and not has_comma else tuple(items)
        return items

    def _key(self) -> str | int:
        match = _KEY.match(self.rest)
        if match is None:
            raise self.mistake()
        self._skip(match.end())
        bare = match["bare"]
        if bare is not None:
            return int(bare) if bare.isdigit() else bare
        return match["single"] if match["single"] is not None else match["double"]

    def _skip(self, count: int) -> None:
        self.rest = self.rest[count:].lstrip()


def _array(whole: str, dtype: str, dims: str) -> Array:
    parts = [part.strip() for part in dims.split(",")] if dims.strip() else []
    if not all(parts):
        raise CommandError(f"{whole!r} lacks a dimension between two commas")
    for part in parts:
        if not _DIM.fullmatch(part) or not (part.isdigit() or dimensions.is_dimension(part)):
            raise CommandError(
                f"{part!r} in {whole!r} is no dimension; write a number, or a name such as b for a "
                "size that is not known"
            )
    if dtype not in DTYPES:
        names = ", ".join([*_SHORT, "bool", *_NARROW, *KEYS])
        like = _LIKE.get(dtype)
        hint = f"; did you mean {like!r}?" if like else did_you_mean(dtype, DTYPES)
        raise CommandError(f"{dtype!r} is no dtype; known are {names}{hint}")
    return Array(DTYPES[dtype], tuple(parts))
