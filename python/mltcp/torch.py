"""PyTorch over MLTCP. Importing this registers backend "mltcp" with torch.distributed:

    import mltcp.torch
    torch.distributed.init_process_group("mltcp")       # the rest is unchanged

It is PyTorch's own backend "gloo" on another transport. Backend "gloo" itself uses MLTCP if the environment has
GLOO_DEVICE_TRANSPORT=MLTCP.

The functions are for programs that know where their iterations begin, or that show the state of congestion control.
"""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing.util
import os
import threading
import time
import weakref
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

import torch
import torch.distributed as dist

from ._errors import LibraryError
from ._library import find

__all__ = ["begin_iteration", "end_iteration", "iteration", "mark_iterations", "state"]

NAME = "libmltcp-torch.so.0"
BACKEND = "mltcp"

#: What determines the beginnings of iterations; numbered as in plugins/gloo/device.h.
_ITERATIONS_BY = ("none", "traffic", "collectives", "hook", "program")


def _load() -> ctypes.CDLL:
    path = find(NAME, "MLTCP_TORCH_LIBRARY")
    if not dist.is_available() or not dist.is_gloo_available():
        raise LibraryError(f"PyTorch {torch.__version__} has no backend \"gloo\", which MLTCP builds on; install one that has, "
                           "such as Debian's python3-torch")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(
            f"{error}; build target mltcp_torch (it wants what tools/setup --with runtimes installs), or say where it is by "
            "MLTCP_TORCH_LIBRARY") from None
    library.mltcp_torch_built_with.restype = ctypes.c_char_p
    built = library.mltcp_torch_built_with().decode()
    if built.split(".")[:2] != torch.__version__.split(".")[:2]:
        raise LibraryError(f"{path} was built with PyTorch {built}, but this is {torch.__version__}; build it again")
    devices = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint32]
    library.mltcp_torch_begin_iteration.argtypes = [*devices, ctypes.c_uint64]
    library.mltcp_torch_end_iteration.argtypes = devices
    library.mltcp_torch_begin_by_hook.argtypes = [*devices, ctypes.c_uint64]
    library.mltcp_torch_end_by_hook.argtypes = devices
    library.mltcp_torch_failure.restype = ctypes.c_char_p
    library.mltcp_torch_devices.restype = ctypes.c_uint32
    library.mltcp_torch_state.argtypes = [ctypes.c_uint32, ctypes.c_uint64 * 10, ctypes.c_double * 2]
    if library.mltcp_torch_register():
        raise LibraryError(f"another copy of {NAME} than {path} has registered MLTCP in this process; let MLTCP_TORCH_LIBRARY "
                           "and the path of Python name one of them")
    return library


_library = _load()
#: The same library for functions with Python objects: calls keep Python's lock, and raise the exceptions they set.
_objects = ctypes.PyDLL(_library._name)
_objects.mltcp_torch_make_device.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_objects.mltcp_torch_make_device.restype = ctypes.py_object
_objects.mltcp_torch_number_of.argtypes = [ctypes.py_object]
_objects.mltcp_torch_number_of.restype = ctypes.c_uint64
#: The inner groups of those that PyTorch's debugging has wrapped.
_inside: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()


def _make_device(interface: str) -> Any:
    try:
        return _objects.mltcp_torch_make_device(interface.encode(), b"")
    except RuntimeError as error:
        where = f"GLOO_SOCKET_IFNAME={interface}: " if interface else ""
        raise RuntimeError(f"{where}{error}; for causes and cures, see docs/how-to/torch.md") from None


def _make_group(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """A process group of "gloo" on devices of MLTCP: one for each interface in GLOO_SOCKET_IFNAME, as with "gloo", or
    one as MLTCP_DEVICE and MLTCP_ADDRESS define."""
    names = [name for name in os.environ.get("GLOO_SOCKET_IFNAME", "").split(",") if name]
    options = dist.ProcessGroupGloo._Options()
    options._devices = [_make_device(name) for name in names or [""]]
    options._threads = 2 * len(options._devices)
    options._timeout = timeout
    group = dist.ProcessGroupGloo(store, rank, size, options)
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        inner = group
        group = dist.distributed_c10d._create_process_group_wrapper(
            wrapped_pg=inner, store_prefix=BACKEND, store=store, rank=rank, world_size=size, timeout=timeout)
        _inside[group] = inner
    return group


# If this module is imported again, or under another name, the backend is registered already.
if not hasattr(dist.Backend, BACKEND.upper()):
    dist.Backend.register_backend(BACKEND, _make_group)


def _leave() -> None:
    """Ends process groups before the interpreter ends. A group's thread that is the last to hold a tensor needs
    Python's lock to free it. If the interpreter begins to end while the thread waits for it, Python ends the thread and
    the process, by "terminate called without an active exception", on any transport. Destroying a group releases the lock
    and waits for its threads."""
    if dist.is_initialized() and _library.mltcp_torch_devices():  # a fork has no threads of its parent's groups
        dist.destroy_process_group()
        time.sleep(0.001)  # releases the lock, for groups that the program still holds


def _leave_in_order(_: Any = None) -> None:
    """multiprocessing ends a child without the interpreter's end, which would destroy process groups. Data that is not
    acknowledged by then would leave the peers waiting; with TCP, the kernel would answer for the ended process."""
    multiprocessing.util.Finalize(None, _leave, exitpriority=0)


multiprocessing.util.register_after_fork(_leave_in_order, _leave_in_order)  # a fork does not inherit finalizers
_leave_in_order()
atexit.register(_leave)  # runs after functions that the program registers later


def _check(failed: int) -> None:
    if failed:
        raise LibraryError(_library.mltcp_torch_failure().decode())


class _Devices:
    """The devices of a process group, as arguments for the library; without a group, all of the process."""

    def __init__(self, group: Any = None) -> None:
        numbers = []
        if group is not None:
            options = getattr(_inside.get(group, group), "options", None)
            devices = getattr(options, "_devices", [])
            numbers = [number for number in map(_objects.mltcp_torch_number_of, devices) if number]
            if not numbers:
                raise ValueError("the process group does not use MLTCP; create it with backend \"mltcp\"")
        self.arguments = ((ctypes.c_uint64 * len(numbers))(*numbers), len(numbers))


def begin_iteration(size: int = 0, group: Any = None) -> None:
    """The next iteration of process group `group`, or of all groups, begins and will send `size` bytes to all peers in
    total; 0: not known. Until the first call with a size, iterations are found in other ways: see state()."""
    _check(_library.mltcp_torch_begin_iteration(*_Devices(group).arguments, size))


def end_iteration(group: Any = None) -> None:
    """The iteration's data is sent, and the job computes."""
    _check(_library.mltcp_torch_end_iteration(*_Devices(group).arguments))


@contextmanager
def iteration(size: int = 0, group: Any = None) -> Iterator[None]:
    begin_iteration(size, group)
    try:
        yield
    finally:
        end_iteration(group)


def _average(group: Any, bucket: Any) -> Any:
    """Like DistributedDataParallel without a hook: multiplies each gradient by 1/n, then sums."""
    tensor = bucket.buffer()
    tensor.mul_(1.0 / group.size())
    work = group.allreduce([tensor])
    return work.get_future().then(lambda future: future.value()[0])


def _average_views(ddp: torch.nn.parallel.DistributedDataParallel) -> Callable[[Any, Any], Any]:
    """Likewise for gradients that are views of their buckets: those that were views before the backward pass are
    divided by n in place, which rounds differently unless n is a power of two."""
    were: Dict[Any, int] = {}
    for parameter in ddp.parameters():
        if parameter.requires_grad:

            def note(_: Any, of: Any = parameter) -> None:  # called before the gradient is accumulated
                were[of] = of.grad.data_ptr() if of.grad is not None else 0

            parameter.register_hook(note)

    def average(group: Any, bucket: Any) -> Any:
        for gradient, parameter in zip(bucket.gradients(), bucket.parameters()):
            if were.get(parameter) == gradient.data_ptr():
                gradient.div_(group.size())
            else:
                gradient.mul_(1.0 / group.size())
        work = group.allreduce([bucket.buffer()])
        return work.get_future().then(lambda future: future.value()[0])

    return average


def mark_iterations(ddp: torch.nn.parallel.DistributedDataParallel, hook: Optional[Callable[[Any, Any], Any]] = None,
                    state: Any = None) -> None:
    """Marks the iterations of `ddp`: they begin with the first bucket of gradients and end with the last one. They are
    the iterations of its process group, which must use MLTCP. This occupies the communication hook; pass your own as
    `hook`, with its `state` (None: the process group), as in register_comm_hook()."""
    if not isinstance(ddp, torch.nn.parallel.DistributedDataParallel):
        raise TypeError(f"mark_iterations() takes a DistributedDataParallel, not a {type(ddp).__name__}; wrap the model first")
    group = ddp.process_group
    devices = _Devices(group).arguments
    size = group.size()
    # Used until an iteration has been counted: a ring sends 2 (n - 1) / n of all gradients.
    gradients = sum(one.numel() * one.element_size() for one in ddp.parameters() if one.requires_grad)
    expected = 2 * (size - 1) * gradients // size
    inner = hook
    if inner is None:
        inner = _average_views(ddp) if ddp.gradient_as_bucket_view and size & (size - 1) else _average
    of_inner = group if state is None else state

    # Buckets end in any order, on the process group's threads.
    lock = threading.Lock()
    under_way = 0
    last_has_begun = False

    def marked(_: None, bucket: Any) -> Any:
        nonlocal under_way, last_has_begun
        if bucket.index() == 0:
            _check(_library.mltcp_torch_begin_by_hook(*devices, expected))
        with lock:
            under_way = 1 if bucket.index() == 0 else under_way + 1
            last_has_begun = bucket.is_last()

        def ended(done: Any) -> Any:
            nonlocal under_way
            with lock:
                under_way -= 1
                all_have = last_has_begun and under_way == 0
            if all_have:
                _library.mltcp_torch_end_by_hook(*devices)
            return done.value()

        return inner(of_inner, bucket).then(ended)

    # DistributedDataParallel checks the annotations of hooks.
    marked.__annotations__ = {"bucket": dist.GradBucket, "return": torch.futures.Future[torch.Tensor]}
    ddp.register_comm_hook(None, marked)


def state() -> List[Dict[str, Union[int, float, str]]]:
    """For each existing device, the job's state as congestion control sees it: `iteration`, `bytes_sent` in it,
    `bytes_per_iteration` (0: not known), `connections`, `bytes_ratio`, `gain`; `bytes_posted` by all collectives;
    `packets_sent`, `lost_packets`, `retransmitted_packets`, `smoothed_rtt_ns` of the connections; and `iterations_by`,
    which determines the beginnings of iterations: "program" (begin_iteration()), "hook" (mark_iterations()),
    "collectives" (their order and sizes repeat), "traffic" (bytes and pauses), or "none" (the function has none)."""
    found: List[Dict[str, Union[int, float, str]]] = []
    for number in range(_library.mltcp_torch_devices()):
        counts = (ctypes.c_uint64 * 10)()
        shares = (ctypes.c_double * 2)()
        if _library.mltcp_torch_state(number, counts, shares) == 0:
            found.append({"iteration": counts[0], "bytes_sent": counts[1], "bytes_per_iteration": counts[2],
                          "connections": counts[3], "bytes_ratio": shares[0], "gain": shares[1],
                          "iterations_by": _ITERATIONS_BY[counts[4]], "bytes_posted": counts[5],
                          "packets_sent": counts[6], "lost_packets": counts[7], "retransmitted_packets": counts[8],
                          "smoothed_rtt_ns": counts[9]})
    return found
