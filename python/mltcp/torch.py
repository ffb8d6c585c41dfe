"""PyTorch over MLTCP. Importing this registers device MLTCP with torch.distributed's backend "gloo", which takes it where
the environment has GLOO_DEVICE_TRANSPORT=MLTCP:

    import mltcp.torch
    torch.distributed.init_process_group("gloo")        # as ever

The rest is for programs that know where their iterations begin, or want to see what the congestion control does.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import Dict, Iterator, List, Union

import torch

from ._errors import LibraryError
from ._library import find

__all__ = ["begin_iteration", "end_iteration", "iteration", "state"]

NAME = "libmltcp-torch.so.0"


def _load() -> ctypes.CDLL:
    path = find(NAME, "MLTCP_TORCH_LIBRARY")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(
            f"{error}; build target mltcp_torch (it wants Debian's libtorch-dev and libgloo-dev), or say where it is by "
            "MLTCP_TORCH_LIBRARY") from None
    library.mltcp_torch_built_with.restype = ctypes.c_char_p
    built = library.mltcp_torch_built_with().decode()
    if built.split(".")[:2] != torch.__version__.split(".")[:2]:
        raise LibraryError(f"{path} was built with PyTorch {built}, and this is {torch.__version__}; build it anew")
    library.mltcp_torch_begin_iteration.argtypes = [ctypes.c_uint64]
    library.mltcp_torch_devices.restype = ctypes.c_uint32
    library.mltcp_torch_state.argtypes = [ctypes.c_uint32, ctypes.c_uint64 * 4, ctypes.c_double * 2]
    return library


_library = _load()


def begin_iteration(size: int = 0) -> None:
    """The next iteration begins, and sends `size` bytes to all peers together; 0: not known. Until the first call with a
    size, iterations are found in the traffic."""
    if _library.mltcp_torch_begin_iteration(size):
        raise LibraryError("a device of MLTCP has ended; see what the process group says")


def end_iteration() -> None:
    """All has been sent, and the job computes."""
    if _library.mltcp_torch_end_iteration():
        raise LibraryError("a device of MLTCP has ended; see what the process group says")


@contextmanager
def iteration(size: int = 0) -> Iterator[None]:
    begin_iteration(size)
    try:
        yield
    finally:
        end_iteration()


def state() -> List[Dict[str, Union[int, float]]]:
    """What the congestion control sees of the job, of each device that is there: `iteration`, `bytes_sent` in it,
    `bytes_per_iteration` (0: not known), `connections`, `bytes_ratio`, `gain`."""
    found = []
    for number in range(_library.mltcp_torch_devices()):
        counts = (ctypes.c_uint64 * 4)()
        shares = (ctypes.c_double * 2)()
        if _library.mltcp_torch_state(number, counts, shares) == 0:
            found.append({"iteration": counts[0], "bytes_sent": counts[1], "bytes_per_iteration": counts[2],
                          "connections": counts[3], "bytes_ratio": shares[0], "gain": shares[1]})
    return found
