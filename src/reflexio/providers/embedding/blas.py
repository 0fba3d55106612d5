"""Keep numpy's matrix products on the thread that asks for them."""

import ctypes
from importlib import import_module

_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


def use_one_thread() -> None:
    """From now on OpenBLAS starts no threads in this process; with another library nothing is changed.

    Its threads wait for each other by spinning. Beside a server that uses the processors too, products of our
    size became ten times slower with two of them than with one, and two callers at once slower still.
    """
    try:
        library = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    except OSError:
        return
    for name in _SETTERS:
        if setter := getattr(library, name, None):
            setter(1)
            return
