"""Access to libmltcp.so.1 through ctypes: its path, functions and structs (endpoint/mltcp.h)."""

from __future__ import annotations

import ctypes
import os
import re
import sysconfig
import threading
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p
from pathlib import Path
from typing import Any, Optional

from ._errors import Error, LibraryError, error_of

NAME = "libmltcp.so.1"
MAJOR = 1

ANY_CONNECTION = (1 << 64) - 1
FOREVER = (1 << 63) - 1
KEY_BYTES = 32
ORDERED, TAGGED = 1, 2
CONNECTED, ACCEPTED, SENT, RECEIVED, PEEKED, ENDED = 1, 2, 3, 4, 5, 6


class _Sized(ctypes.Structure):
    """A struct whose first member is the size of the struct."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.struct_size = ctypes.sizeof(self)


_TYPES = {"mltcp_code": c_int32, "mltcp_callback": c_void_p, "double": c_double, "int32_t": c_int32,
          "int64_t": c_int64, "uint8_t": c_uint8, "uint16_t": c_uint16, "uint32_t": c_uint32, "uint64_t": c_uint64}
_HEADER = re.sub(r"/\*.*?\*/", "", (Path(__file__).resolve().parent / "mltcp.h").read_text(), flags=re.DOTALL)


def _members(name: str) -> list:
    """Returns the members of a struct in mltcp.h, with their types."""
    members = []
    for const, kind, pointer, member, count in re.findall(
            r"(const )?(\w+)(\*?) (\w+)(?:\[(\d+)\])?;", re.search(r"struct %s {(.*?)}" % name, _HEADER, re.DOTALL)[1]):
        of = _TYPES[kind] if not pointer else c_char_p if const else c_void_p
        members.append((member, of * int(count) if count else of))
    return members


class CompletionStruct(_Sized):
    _fields_ = _members("mltcp_completion")


class EndpointOptions(ctypes.Structure):
    _fields_ = _members("mltcp_endpoint_options")


class PostOptions(_Sized):
    _fields_ = _members("mltcp_post_options")


class JobOptions(_Sized):
    _fields_ = _members("mltcp_job_options")


class JobPlan(_Sized):
    _fields_ = _members("mltcp_job_plan")


class JobReport(_Sized):
    _fields_ = _members("mltcp_job_report")


class ConnectionReport(_Sized):
    _fields_ = _members("mltcp_connection_report")


class EndpointReport(_Sized):
    _fields_ = _members("mltcp_endpoint_report")


def report_of(struct: _Sized) -> dict:
    """Returns the fields of a report, with their names in mltcp.h as keys."""
    left_out = ("struct_size", "reserved")
    return {name: getattr(struct, name) for name, _ in struct._fields_ if name not in left_out}


_SIZE = POINTER(c_size_t)
_U64 = POINTER(c_uint64)
_END = POINTER(CompletionStruct)
_POST = POINTER(PostOptions)
_POINTER = POINTER(c_void_p)

# Types of the arguments of each function. All these functions return a code.
_FUNCTIONS = {
    "endpoint_options_init_sized": [POINTER(EndpointOptions), c_size_t],
    "endpoint_open": [POINTER(EndpointOptions), _POINTER],
    "endpoint_close": [c_void_p],
    "endpoint_destroy": [c_void_p],
    "endpoint_address": [c_void_p, c_void_p, _SIZE],
    "endpoint_description": [c_void_p, c_char_p, c_size_t],
    "address_text": [c_char_p, c_size_t, c_char_p, c_size_t],
    "now": [c_void_p, POINTER(c_int64)],
    "connect": [c_void_p, c_char_p, c_size_t, c_int32, _POST, _U64, _U64],
    "close": [c_void_p, c_uint64],
    "abort": [c_void_p, c_uint64],
    "peer": [c_void_p, c_uint64, c_void_p, _SIZE],
    "send": [c_void_p, c_uint64, c_void_p, c_size_t, c_uint64, _POST, _U64],
    "receive": [c_void_p, c_uint64, c_void_p, c_size_t, c_uint64, _POST, _U64],
    "send_tagged": [c_void_p, c_uint64, c_void_p, c_size_t, c_uint64, _POST, _U64],
    "receive_tagged": [c_void_p, c_uint64, c_void_p, c_size_t, c_uint64, c_uint64, _POST, _U64],
    "peek": [c_void_p, c_uint64, c_uint64, c_uint64, c_int32, _POST, _U64],
    "receive_message": [c_void_p, c_uint64, c_void_p, c_size_t, _POST, _U64],
    "cancel": [c_void_p, c_uint64],
    "wait": [c_void_p, c_uint64, _END, c_int64],
    "test": [c_void_p, c_uint64, _END],
    "completion_text": [_END, c_char_p, c_size_t],
    "queue_create": [c_void_p, c_uint32, _POINTER],
    "endpoint_events": [c_void_p, _POINTER],
    "queue_destroy": [c_void_p],
    "queue_poll": [c_void_p, _END, c_size_t, _SIZE],
    "queue_wait": [c_void_p, _END, c_size_t, _SIZE, c_int64],
    "queue_file": [c_void_p, POINTER(c_int)],
    "queue_arm": [c_void_p],
    "job_create": [c_void_p, POINTER(JobOptions), _U64],
    "job_remove": [c_void_p, c_uint64],
    "job_attach": [c_void_p, c_uint64, c_uint64],
    "job_begin_iteration": [c_void_p, c_uint64, c_uint64],
    "job_end_iteration": [c_void_p, c_uint64],
    "job_set_plan": [c_void_p, c_uint64, POINTER(JobPlan), POINTER(c_int32)],
    "plan_from_environment": [c_void_p, POINTER(JobPlan)],
    "job_clear_plan": [c_void_p, c_uint64],
    "job_set_rate": [c_void_p, c_uint64, c_uint64],
    "report_job": [c_void_p, c_uint64, POINTER(JobReport)],
    "report_connection": [c_void_p, c_uint64, POINTER(ConnectionReport)],
    "report_endpoint": [c_void_p, POINTER(EndpointReport)],
}


class Library:
    """The library's functions. Their names have no prefix mltcp_."""

    def __init__(self, path: str) -> None:
        try:
            self._dll = ctypes.CDLL(path)
            self.path = path
            self._dll.mltcp_version.restype = c_uint32
            self.version = self._dll.mltcp_version()
            for name, restype in (("version_text", c_char_p), ("last_error", c_char_p), ("code_text", c_char_p),
                                  ("device_forms", c_char_p)):
                getattr(self._dll, "mltcp_" + name).restype = restype
            self._dll.mltcp_code_text.argtypes = [c_int32]
            for name, arguments in _FUNCTIONS.items():
                function = getattr(self._dll, "mltcp_" + name)
                function.argtypes = arguments
                function.restype = c_int32
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise LibraryError(f"{path} cannot be loaded: {error}; build the project (ninja -C build mltcp_c), install it, "
                               f"or set MLTCP_LIBRARY to its {NAME}") from error
        if self.version >> 16 != MAJOR:
            raise LibraryError(f"{path} has interface {self.version >> 16}.{self.version & 0xFFFF}, and this package "
                               f"knows {MAJOR}.x; install package and library of one version")

    def version_text(self) -> str:
        return self._dll.mltcp_version_text().decode()

    def device_forms(self) -> str:
        return self._dll.mltcp_device_forms().decode()

    def last_error(self) -> str:
        return self._dll.mltcp_last_error().decode(errors="replace")

    def check(self, code: int) -> None:
        """Raises the error that represents a code, unless the code is 0."""
        if code != 0:
            raise error_of(code, self.last_error())

    def error_of_end(self, end: CompletionStruct, completion: Any) -> Error:
        text = ctypes.create_string_buffer(512)
        self.completion_text(ctypes.byref(end), text, len(text))
        return error_of(end.code, text.value.decode(errors="replace"), completion)


def find(name: str, variable: str) -> str:
    """Returns the path of library `name`. The environment variable `variable` has priority, then the build folder of
    the source tree, then the prefix of this package. If the library is in none of them, returns the name, which the
    dynamic linker looks up."""
    named = os.environ.get(variable)
    if named:
        return named
    package = Path(__file__).resolve().parent
    # The package may be python/mltcp/ of a source tree.
    tree = package.parent.parent
    built = tree / "build" / "lib" / name
    if (tree / "endpoint" / "mltcp.h").exists() and built.exists():
        return str(built)
    # The package may be lib/python3/dist-packages/mltcp/ of an installation, with the library that belongs to it.
    libraries = package.parent.parent.parent
    for place in (libraries, libraries / (sysconfig.get_config_var("MULTIARCH") or "."), libraries.parent / "lib64"):
        if (place / name).exists():
            return str(place / name)
    return name


def _find() -> str:
    return find(NAME, "MLTCP_LIBRARY")


_lock = threading.Lock()
_library: Optional[Library] = None


def load() -> Library:
    """Loads the library at the first call. Raises LibraryError if it is missing or has another version."""
    global _library
    with _lock:
        if _library is None:
            _library = Library(_find())
        return _library


def library_path() -> str:
    """Returns the path of the library, and loads it if needed."""
    return load().path


def library_version() -> str:
    """Returns the library's version, for example "mltcp 0.1.0, interface 1.4"."""
    return load().version_text()


# ---- Memory of Python objects ----


class _PyBuffer(ctypes.Structure):
    """The struct Py_buffer of Python's C API."""

    _fields_ = [
        ("buf", c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", c_int), ("ndim", c_int), ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p),
        ("suboffsets", c_void_p), ("internal", c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, POINTER(_PyBuffer), c_int]
_get_buffer.restype = c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [POINTER(_PyBuffer)]
_release_buffer.restype = None


class Pinned:
    """The memory of an object with the buffer protocol. The memory stays in place until release(). Until then, for
    example, a bytearray cannot be resized."""

    def __init__(self, thing: Any, writable: bool) -> None:
        self._view = _PyBuffer()
        self._held = False
        _get_buffer(thing, ctypes.byref(self._view), 1 if writable else 0)  # 1: PyBUF_WRITABLE, 0: PyBUF_SIMPLE
        self._held = True
        self.address = self._view.buf
        self.size = self._view.len

    def release(self) -> None:
        if self._held:
            self._held = False
            _release_buffer(ctypes.byref(self._view))
