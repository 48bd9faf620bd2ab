"""Unwraps containers that a function finds in its closure, and that TensorFlow has wrapped.

A function may close over a `tf.Module`, be a method of one, or have one as a global name, and hand
a container of it to JAX: `jax.tree.map(f, self.params)`. While JAX traces such a function, we call
another one in its place. It has the same code, and finds plain containers where those of a module
are. No object of the user's is changed; what the function writes into such a container is lost.

It goes through variables of enclosing scopes, global names, default values, partial applications,
methods and attributes of modules. It does not see through other objects, nor through functions that
are compiled (`jax.jit`) or in other files. There a wrapper is what it is to JAX: a leaf.
"""

import collections
import dis
import functools
import re
import types
from collections.abc import Callable, Collection
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering.errors import LoweringError
from lowering.frontend.containers import WRAPPERS, content, plain

# Common types of the elements of large containers that contain nothing themselves.
_ATOMS = frozenset((type(None), bool, int, float, complex, str, bytes, np.ndarray))
_SEQUENCES = (list, tuple)
_DICTIONARIES = (dict, collections.OrderedDict, collections.defaultdict)

_NAMES = re.compile(r"\b(ListWrapper|_?DictWrapper|_?TupleWrapper)\b")


def on_plain_containers(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `fun` in which the containers of modules are plain, results included.

    It raises:
      LoweringError: where JAX meets one that it does not know.
    """

    @functools.wraps(fun, updated=())
    def on_plain(*args: Any, **kwargs: Any) -> Any:
        try:
            return plain(_Views().of(fun)(*args, **kwargs))
        except Exception as error:
            found = _NAMES.search(str(error))
            if found is None or isinstance(error, LoweringError):
                raise
            raise LoweringError(
                f"JAX does not know the type {found[0]}, which TensorFlow gives to containers that "
                "are attributes of a tf.Module. Pass the container as an argument, or keep it "
                f"outside of the module. {type(error).__name__}: {error}"
            ) from error

    return on_plain


class _Views:
    """What takes the place of objects; the same object has the same view.

    What contains others may contain itself, and chains of functions may be long. So objects are
    looked at in turn, not each within another, and a view is kept before it is complete.
    """

    def __init__(self):
        # The objects are kept, so that their identities stay their own.
        self._seen: dict[int, Any] = {}
        self._reaching: set[int] = set()
        self._views: dict[int, Any] = {}
        self._to_complete: list[Callable[[], None]] = []
        # Whether objects of a type contain others.
        self._contains = dict.fromkeys(_ATOMS, False)

    def of(self, value: Any) -> Any:
        """The view of an object: the object itself if it reaches no wrapper."""
        self._look_at(value)
        view = self._view(value)
        while self._to_complete:
            self._to_complete.pop()()
        return view

    def _look_at(self, value: Any) -> None:
        """Finds the objects that are reached from one, and those of them that reach a wrapper."""
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        containing: dict[int, list[int]] = {}
        pending, reaching = [value], []
        while pending:
            found = pending.pop()
            if type(found) in WRAPPERS:
                reaching.append(id(found))
            parts = self._containers(_parts(found) or ())
            for key, part in parts.items():
                containing.setdefault(key, []).append(id(found))
                if key not in self._seen:
                    self._seen[key] = part
                    pending.append(part)
                elif key in self._reaching:
                    reaching.append(id(found))
        while reaching:
            key = reaching.pop()
            if key not in self._reaching:
                self._reaching.add(key)
                reaching += containing.get(key, ())

    def _containers(self, parts: Collection[Any]) -> dict[int, Any]:
        """Those of some objects that may contain wrappers, by identity.

        There may be very many. So their types are asked first, and what is only numbers is no
        container.
        """
        contains = self._contains
        for kind in set(map(type, parts)) - contains.keys():
            contains[kind] = _parts(next(x for x in parts if type(x) is kind)) is not None
        if not any(map(contains.get, set(map(type, parts)))):
            return {}
        return {id(x): x for x in parts if contains[type(x)] and not _has_only_atoms(x)}

    def _view(self, value: Any) -> Any:
        """The view of an object that has been looked at; it may still have to be completed."""
        if id(value) not in self._reaching:
            return value
        if id(value) not in self._views:
            self._views[id(value)] = self._made(value)
        return self._views[id(value)]

    def _made(self, value: Any) -> Any:
        """The view of an object that reaches a wrapper."""
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, tf.Module):
            return self._module(value)
        if isinstance(value, types.MethodType):
            return types.MethodType(self._view(value.__func__), self._view(value.__self__))
        if isinstance(value, functools.partial):
            keywords = {name: self._view(x) for name, x in value.keywords.items()}
            return functools.partial(
                self._view(value.func), *map(self._view, value.args), **keywords
            )
        return self._container(content(value) if type(value) in WRAPPERS else value)

    def _container(self, container: Any) -> Any:
        """A container of the views of what is in another."""
        if type(container) is list:
            items: list[Any] = []
            self._to_complete.append(lambda: items.extend(map(self._view, container)))
            return items
        if type(container) in _DICTIONARIES:
            # A copy has the order of the keys, and the default of a dictionary that has one.
            views = container.copy()
            self._to_complete.append(
                lambda: views.update((key, self._view(x)) for key, x in container.items())
            )
            return views
        leaves, structure = jax.tree_util.tree_flatten(container, lambda x: x is not container)
        return jax.tree_util.tree_unflatten(structure, map(self._view, leaves))

    def _function(self, fun: types.FunctionType) -> Any:
        """A function with the same code; it shares the variables that reach no wrapper."""
        reaching = [cell for cell in _cells(fun) if id(cell.cell_contents) in self._reaching]
        copies = {id(cell): types.CellType() for cell in reaching}
        names = [n for n in _globals_of(fun) if id(fun.__globals__[n]) in self._reaching]
        scope = dict(fun.__globals__) if names else fun.__globals__
        closure = tuple(copies.get(id(cell), cell) for cell in fun.__closure__ or ())
        view = types.FunctionType(fun.__code__, scope, fun.__name__, None, closure)
        functools.update_wrapper(view, fun)

        def complete():
            for cell in reaching:
                copies[id(cell)].cell_contents = self._view(cell.cell_contents)
            scope.update((name, self._view(fun.__globals__[name])) for name in names)
            if fun.__defaults__:
                view.__defaults__ = tuple(map(self._view, fun.__defaults__))
            if fun.__kwdefaults__:
                view.__kwdefaults__ = {k: self._view(x) for k, x in fun.__kwdefaults__.items()}

        self._to_complete.append(complete)
        return view

    def _module(self, module: Any) -> Any:
        """An object with the state of a module, of a class that differs in what it looks up."""
        views: Any = self
        kind: Any = type(module)

        def look_up(self: Any, name: str) -> Any:
            value = kind.__getattribute__(self, name)
            # Methods are those of the view already.
            is_own = name.startswith("__") or isinstance(value, types.MethodType)
            return value if is_own else views.of(value)

        copied = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
        members = {**copied, "__getattribute__": look_up}
        metaclass: Any = type(kind)
        view = object.__new__(metaclass(kind.__name__, (kind,), members))
        object.__setattr__(view, "__dict__", vars(module))
        return view


def _parts(value: Any) -> Collection[Any] | None:
    """The objects that an object gives access to; None if it is of a type that contains nothing."""
    if type(value) in WRAPPERS:
        value = content(value)
    if type(value) in _SEQUENCES:
        return value
    if type(value) in _DICTIONARIES:
        return value.values()
    if isinstance(value, types.FunctionType):
        named = (value.__globals__[name] for name in _globals_of(value))
        defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        return [*(cell.cell_contents for cell in _cells(value)), *named, *defaults]
    if isinstance(value, tf.Module):
        return list(vars(value).values())
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.ModuleType | type):
        return None
    try:
        level = jax.tree_util.default_registry.flatten_one_level(value)
    except Exception:  # The code of a user may raise anything.
        return []
    return None if level is None else list(level[0])


def _has_only_atoms(value: Any) -> bool:
    """Whether an object is a list, tuple or dictionary of numbers and the like."""
    if type(value) in _DICTIONARIES:
        value = value.values()
    elif type(value) not in _SEQUENCES:
        return False
    return _ATOMS.issuperset(map(type, value))


def _cells(fun: types.FunctionType) -> list[types.CellType]:
    """The variables of enclosing scopes that have a value."""
    return [cell for cell in fun.__closure__ or () if _has_value(cell)]


def _has_value(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False


def _globals_of(fun: types.FunctionType) -> list[str]:
    """The global names that a function reads; none if it also writes some.

    Functions of other files are left alone, as there are many.
    """
    scope = fun.__globals__
    found = [name for name in _global_names(fun.__code__) if name in scope]
    return [name for name in found if getattr(scope[name], "__globals__", scope) is scope]


@functools.lru_cache(maxsize=1024)
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    names: set[str] = set()
    codes = [code]
    while codes:
        code = codes.pop()
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                return ()
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(instruction.argval)
    return tuple(sorted(names))
