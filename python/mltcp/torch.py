"""PyTorch over MLTCP. Importing this module registers the backend "mltcp" with torch.distributed:

    import mltcp.torch
    torch.distributed.init_process_group("mltcp")       # the rest is unchanged

Backend "mltcp" is PyTorch's backend "gloo" with MLTCP as its transport. Backend "gloo" itself uses MLTCP if the
environment contains GLOO_DEVICE_TRANSPORT=MLTCP.

A program needs the functions of this module only if it marks the beginnings of its iterations, or shows the state of
congestion control.
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

# The ways to determine where iterations begin, in the order of enum IterationsBy in plugins/gloo/device.h.
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
# The same library as `_library`, for functions that take or return Python objects. Calls through ctypes.PyDLL hold the
# interpreter lock and raise the exceptions that the functions set.
_objects = ctypes.PyDLL(_library._name)
_objects.mltcp_torch_make_device.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_objects.mltcp_torch_make_device.restype = ctypes.py_object
_objects.mltcp_torch_number_of.argtypes = [ctypes.py_object]
_objects.mltcp_torch_number_of.restype = ctypes.c_uint64
_objects.mltcp_torch_wait_until_idle.argtypes = [ctypes.py_object, ctypes.c_double]
_objects.mltcp_torch_wait_until_idle.restype = None
# Maps each process group that PyTorch wraps for debugging to the group inside the wrapper.
_inside: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()


def _make_device(interface: str) -> Any:
    try:
        return _objects.mltcp_torch_make_device(interface.encode(), b"")
    except RuntimeError as error:
        where = f"GLOO_SOCKET_IFNAME={interface}: " if interface else ""
        raise RuntimeError(f"{where}{error}; for causes and cures, see docs/how-to/torch.md") from None


def _make_group(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """Returns a process group of backend "gloo" on devices of MLTCP. As with "gloo", there is one device for each
    interface in GLOO_SOCKET_IFNAME. If that is not set, MLTCP_DEVICE and MLTCP_ADDRESS define the only device."""
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


# The backend is registered already if the program imports this module twice, or under two names.
if not hasattr(dist.Backend, BACKEND.upper()):
    dist.Backend.register_backend(BACKEND, _make_group)


def _leave() -> None:
    """Destroys process groups before the interpreter ends. A thread of a group may hold the last reference to a tensor,
    and needs the interpreter lock to free the tensor. If the interpreter ends while the thread waits for the lock,
    Python kills the process with "terminate called without an active exception". This happens on every transport.
    The program may still hold references to groups, so that destroy_process_group() does not destroy them. This waits
    for the threads of every group first. It waits for at most 5 s, because work whose peers do not take part ends only
    at the timeout of the group, which is 30 minutes by default."""
    if dist.is_initialized() and _library.mltcp_torch_devices():  # a forked child has no devices
        end = time.monotonic() + 5
        for group in list(dist.distributed_c10d._pg_map):
            _objects.mltcp_torch_wait_until_idle(_inside.get(group, group), end - time.monotonic())
        dist.destroy_process_group()


def _leave_in_order(_: Any = None) -> None:
    """Makes children of multiprocessing call _leave() when they end, because they skip the functions of atexit. If a
    process ends with data that is not acknowledged, its peers wait for the rest. With TCP, the kernel would still
    deliver the data."""
    multiprocessing.util.Finalize(None, _leave, exitpriority=0)


multiprocessing.util.register_after_fork(_leave_in_order, _leave_in_order)  # a forked child does not inherit finalizers
_leave_in_order()
# atexit runs the last registered function first, so _leave() runs after functions of the program.
atexit.register(_leave)


def _check(failed: int) -> None:
    if failed:
        raise LibraryError(_library.mltcp_torch_failure().decode())


class _Devices:
    """The devices of `group`, as arguments for the library. If `group` is None, all devices of the process."""

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
    """Begins the next iteration of process group `group`; None means all groups. `size` is the number of bytes that
    this process sends to all peers together in the iteration; 0 if it is not known. Until the first call with a size,
    MLTCP finds the iterations in one of the ways that state() lists."""
    _check(_library.mltcp_torch_begin_iteration(*_Devices(group).arguments, size))


def end_iteration(group: Any = None) -> None:
    """Marks the point at which the data of the iteration is sent, and the job begins to compute."""
    _check(_library.mltcp_torch_end_iteration(*_Devices(group).arguments))


@contextmanager
def iteration(size: int = 0, group: Any = None) -> Iterator[None]:
    begin_iteration(size, group)
    try:
        yield
    finally:
        end_iteration(group)


def _average(group: Any, bucket: Any) -> Any:
    """Averages the gradients of a bucket as DistributedDataParallel does without a hook: multiplies each gradient by
    1/n, where n is the size of the group, then sums over the group."""
    tensor = bucket.buffer()
    tensor.mul_(1.0 / group.size())
    work = group.allreduce([tensor])
    return work.get_future().then(lambda future: future.value()[0])


def _average_views(ddp: torch.nn.parallel.DistributedDataParallel) -> Callable[[Any, Any], Any]:
    """Returns a hook that averages gradients as DistributedDataParallel does if they are views of their buckets.
    Gradients that were views before the backward pass are divided by the group size n; all others are multiplied by
    1/n. Division and multiplication round differently unless n is a power of two."""
    were: Dict[Any, int] = {}
    for parameter in ddp.parameters():
        if parameter.requires_grad:

            def note(_: Any, of: Any = parameter) -> None:  # PyTorch calls note() before it adds to the gradient
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
    """Marks the iterations of the process group of `ddp`, which must use MLTCP. An iteration begins with the first
    bucket of gradients and ends with the last bucket. This function uses the communication hook of `ddp`. If the
    program needs a communication hook, pass it as `hook`, and its state as `state`, as for register_comm_hook(). If
    `state` is None, `hook` receives the process group."""
    if not isinstance(ddp, torch.nn.parallel.DistributedDataParallel):
        raise TypeError(f"mark_iterations() takes a DistributedDataParallel, not a {type(ddp).__name__}; wrap the model first")
    group = ddp.process_group
    devices = _Devices(group).arguments
    size = group.size()
    # The expected size of the first iteration: in a ring of n ranks, each sends 2 (n - 1) / n of all gradients.
    gradients = sum(one.numel() * one.element_size() for one in ddp.parameters() if one.requires_grad)
    expected = 2 * (size - 1) * gradients // size
    inner = hook
    if inner is None:
        inner = _average_views(ddp) if ddp.gradient_as_bucket_view and size & (size - 1) else _average
    of_inner = group if state is None else state

    # Buckets end in any order, on threads of the process group, so the lock protects the counters below.
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
    """Returns a dict for each device of this process, with the state of its job as congestion control sees it:

    - `iteration`: number of the current iteration; `bytes_sent`: bytes delivered in it
    - `bytes_per_iteration`: 0 if not known
    - `bytes_ratio`, `gain`: share of the iteration that is sent, and the resulting factor of the increase step
    - `bytes_posted`: payload of all collectives since the device was created
    - `connections`: number of connections of the transport, two for each peer
    - `packets_sent`, `lost_packets`, `retransmitted_packets`: sums over the open connections
    - `smoothed_rtt_ns`: the highest of the open connections
    - `iterations_by`: how the beginnings of iterations are found: "program" (by begin_iteration()), "hook" (by
      mark_iterations()), "collectives" (from their order and sizes, while these repeat), "traffic" (from its bytes and
      pauses), or "none" (the function of the job ignores iterations)
    """
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
