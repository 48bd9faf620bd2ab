"""sin(x) / x as a primitive of its own. It needs no `lowering`, and says nothing in JAX."""

import jax.extend.core as jex_core

sinc_p = jex_core.Primitive("sinc_of_a_plugin")
sinc_p.def_abstract_eval(lambda x: x)


def sinc(x):
    """sin(x) / x, which is 1 where x is 0."""
    return sinc_p.bind(x)
