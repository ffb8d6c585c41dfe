"""Connections, their operations, and the results of operations."""

from __future__ import annotations

import ctypes
import ipaddress
import numbers
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Tuple, Union

from . import _library as lib
from ._errors import Code, Error, TruncatedError, error_of

if TYPE_CHECKING:
    from .endpoint import Endpoint

_WHOLE_TAG = (1 << 64) - 1
#: Maximum time that a thread spends in one call of the library, during which Ctrl-C has no effect.
_SLICE_NS = 200_000_000


def nanoseconds(seconds: Optional[float]) -> int:
    """Converts seconds to nanoseconds. None means no time limit."""
    if seconds is None:
        return lib.FOREVER
    if not isinstance(seconds, numbers.Real):
        raise TypeError(f"{seconds!r} is not a number of seconds; give 0 or more, or None for no limit")
    if seconds != seconds or seconds < 0:
        raise ValueError(f"a time of {seconds} s; give 0 or more, or None for no limit")
    return lib.FOREVER if seconds * 1e9 >= lib.FOREVER else int(seconds * 1e9)


class Completion(NamedTuple):
    """The result of a successful operation."""

    code: int
    #: Length of the message, even if the buffer was shorter.
    size: int
    tag: int
    #: Handle of the connection from which the message came, for receives from any connection.
    connection: int
    #: Address of shard 0 of the peer's endpoint, such as ("10.0.0.2", 62400); None if it is not known.
    peer: Optional[Tuple[str, int]]
    #: Number of the sender's job, if the message belongs to a job; otherwise None.
    job: Optional[int]


def completion_of(end: lib.CompletionStruct) -> Completion:
    peer = None
    if end.peer_port != 0:
        ip = ipaddress.IPv6Address(bytes(end.peer_ip))
        peer = (str(ip.ipv4_mapped or ip), end.peer_port)
    return Completion(end.code, end.bytes, end.tag, end.connection, peer, end.job if end.has_job else None)


class Operation:
    """An operation in progress. Its memory stays in place until it has ended, even if the program drops this object."""

    def __init__(self, endpoint: "Endpoint", handle: int, pinned: Optional[lib.Pinned]) -> None:
        self._endpoint = endpoint
        self._handle = handle
        self._pinned = pinned
        self._end: Optional[lib.CompletionStruct] = None
        self._looking = threading.Lock()

    def _ended(self, end: lib.CompletionStruct) -> None:
        self._end = end
        self._endpoint._pending.pop(self._handle, None)
        if self._pinned is not None:
            self._pinned.release()

    def _look(self, limit_ns: int) -> bool:
        if self._end is not None:
            return True
        # The library allows only one thread to wait for an operation.
        if not self._looking.acquire(timeout=limit_ns * 1e-9):
            return self._end is not None
        try:
            if self._end is None:
                end = lib.CompletionStruct()
                library = self._endpoint._lib
                code = library.wait(self._endpoint._pointer, self._handle, ctypes.byref(end), limit_ns)
                if code == Code.TIMED_OUT:
                    return False
                library.check(code)
                self._ended(end)
            return True
        finally:
            self._looking.release()

    @property
    def done(self) -> bool:
        """Whether the operation has ended. Does not wait."""
        return self._look(0)

    def wait(self, timeout: Optional[float] = None) -> Completion:
        """Waits for the end of the operation. Raises TimedOutError if the operation continues; then wait again or
        cancel it. Raises another Error if the operation ended with that error."""
        limit = nanoseconds(timeout)
        end = time.monotonic_ns() + limit
        while not self._look(min(_SLICE_NS, max(end - time.monotonic_ns(), 0))):
            if limit != lib.FOREVER and time.monotonic_ns() >= end:
                raise error_of(Code.TIMED_OUT, f"it is not complete after {timeout} s and continues; wait again, or "
                                                   "cancel it")
        return self._outcome()

    def _outcome(self) -> Completion:
        assert self._end is not None
        completion = completion_of(self._end)
        if self._end.code != Code.OK:
            raise self._endpoint._lib.error_of_end(self._end, completion)
        return completion

    def cancel(self) -> None:
        """Requests an early end. wait() raises an Error with Code.CANCELLED if the operation was cancelled. Has no
        effect if the operation has ended."""
        if self._end is None:
            code = self._endpoint._lib.cancel(self._endpoint._pointer, self._handle)
            if code not in (Code.OK, Code.UNKNOWN):
                self._endpoint._lib.check(code)


class PeekedMessage:
    """A message that Connection.take() has taken, so that no other receive matches it. Call receive() or drop()."""

    def __init__(self, endpoint: "Endpoint", end: lib.CompletionStruct) -> None:
        self._endpoint = endpoint
        self._message = end.message
        self.size: int = end.bytes
        self.tag: int = end.tag

    def receive_into(self, buffer: Any, timeout: Optional[float] = None) -> Completion:
        """Receives the message into a writable object with the buffer protocol."""
        return self._endpoint._run("receive_message", buffer, True, timeout, self._message)

    def receive(self, timeout: Optional[float] = None) -> bytes:
        buffer = bytearray(self.size)
        self.receive_into(buffer, timeout)
        return bytes(buffer)

    def drop(self) -> None:
        """Discards the message."""
        try:
            self.receive_into(bytearray())
        except TruncatedError:
            pass


class Connection:
    """A connection, which Endpoint.connect() or Endpoint.accept() returns.

    A tagged connection matches messages with receives by tag. On an ordered connection the n-th receive gets the n-th
    message, and tags are not sent.
    """

    def __init__(self, endpoint: "Endpoint", handle: int, kind: int) -> None:
        self._endpoint = endpoint
        self.handle = handle
        self.tagged = kind == lib.TAGGED
        #: True after accept(), connect() or finish() has seen the end of the connection.
        self.ended = False
        endpoint._know(self)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.close() if kind is None else self.abort()
        except Error:
            pass  # the connection has ended

    def __repr__(self) -> str:
        return f"<mltcp.Connection {self.handle:#x}, {'tagged' if self.tagged else 'ordered'}>"

    # ---- Messages ----

    def send(self, message: Any, tag: int = 0, timeout: Optional[float] = None) -> None:
        """Sends the bytes of any object with the buffer protocol, without a copy. Waits until they are in the peer's
        buffer or, on a tagged connection, stored by the peer. Raises TimedOutError if the message was not delivered. If
        part of it had been sent by then, an ordered connection ends."""
        self._endpoint._run(self._name("send"), message, False, timeout, self.handle, after=(tag,))

    def receive_into(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG,
                     timeout: Optional[float] = None) -> Completion:
        """Receives a message into a writable object with the buffer protocol. Completion.size is the length of the
        message. Raises TruncatedError if the message was longer than the buffer."""
        return self._endpoint._run(self._name("receive"), buffer, True, timeout, self.handle, after=self._match(tag, mask))

    def receive(self, most: int, tag: int = 0, mask: int = _WHOLE_TAG, timeout: Optional[float] = None) -> bytes:
        """Receives a message of at most `most` bytes. Raises TruncatedError if it was longer."""
        buffer = bytearray(most)
        return bytes(memoryview(buffer)[:self.receive_into(buffer, tag, mask, timeout).size])

    def begin_send(self, message: Any, tag: int = 0) -> Operation:
        """Like send(), but does not wait. Do not change the message until the operation has ended."""
        return self._endpoint._begin(self._name("send"), message, False, None, self.handle, after=(tag,))

    def begin_receive_into(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG) -> Operation:
        return self._endpoint._begin(self._name("receive"), buffer, True, None, self.handle, after=self._match(tag, mask))

    async def send_async(self, message: Any, tag: int = 0) -> None:
        """Like send(), for asyncio. Use asyncio.wait_for() to set a time limit."""
        await self._endpoint._run_async(self._name("send"), message, False, self.handle, after=(tag,))

    async def receive_into_async(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG) -> Completion:
        return await self._endpoint._run_async(self._name("receive"), buffer, True, self.handle,
                                               after=self._match(tag, mask))

    async def receive_async(self, most: int, tag: int = 0, mask: int = _WHOLE_TAG) -> bytes:
        buffer = bytearray(most)
        return bytes(memoryview(buffer)[:(await self.receive_into_async(buffer, tag, mask)).size])

    def peek(self, tag: int = 0, mask: int = _WHOLE_TAG) -> Optional[Completion]:
        """Returns the message that a receive with this tag and mask would take, or None if there is none. Only for
        tagged connections."""
        end = self._endpoint._peek(self.handle, tag, mask, 0)
        return None if end is None else completion_of(end)

    def take(self, tag: int = 0, mask: int = _WHOLE_TAG) -> Optional[PeekedMessage]:
        """Takes the message that peek() would return, so that no other receive matches it (as MPI_Mprobe does). Returns
        None if there is none."""
        end = self._endpoint._peek(self.handle, tag, mask, 1)
        return None if end is None else PeekedMessage(self._endpoint, end)

    # ---- The connection ----

    def close(self) -> None:
        """Ends the connection when all sent messages are in the peer's buffers or stored by the peer. Does not wait."""
        code = self._endpoint._lib.close(self._endpoint._pointer, self.handle)
        if code != Code.UNKNOWN:  # UNKNOWN: the connection had already ended
            self._endpoint._lib.check(code)

    def finish(self, timeout: Optional[float] = None) -> None:
        """Calls close() and waits until the connection has ended. Raises TimedOutError if the peer does not take the
        sent messages in time."""
        self.close()
        self.wait_ended(timeout)

    def wait_ended(self, timeout: Optional[float] = None) -> None:
        """Waits until one of the two ends has closed the connection."""
        self._endpoint._wait_for_event(lambda: self.ended, timeout, "the connection has not ended; check why the "
                                                                    "peer is late, or abort()")

    def abort(self) -> None:
        """Ends the connection at once, here and at the peer."""
        code = self._endpoint._lib.abort(self._endpoint._pointer, self.handle)
        if code != Code.UNKNOWN:
            self._endpoint._lib.check(code)

    @property
    def peer(self) -> Optional[bytes]:
        """The address of the peer's endpoint; None until it has introduced itself."""
        blob = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(64)
        code = self._endpoint._lib.peer(self._endpoint._pointer, self.handle, blob, ctypes.byref(size))
        if code == Code.NOTHING:
            return None
        self._endpoint._lib.check(code)
        return blob.raw[:size.value]

    def report(self) -> dict:
        """Returns counters and the state of congestion control, with their names in mltcp.h as keys."""
        report = lib.ConnectionReport()
        self._endpoint._lib.check(
            self._endpoint._lib.report_connection(self._endpoint._pointer, self.handle, ctypes.byref(report)))
        return lib.report_of(report)

    def _name(self, what: str) -> str:
        return what + "_tagged" if self.tagged else what

    def _match(self, tag: int, mask: int) -> Tuple[int, ...]:
        return (tag, mask) if self.tagged else (tag,)
