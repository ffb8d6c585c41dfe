"""Connections, their operations, and the results of these."""

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
    """Converts seconds; None: for ever."""
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
    #: Handle of the message's connection, for receives from any connection.
    connection: int
    #: Shard 0 of the peer's endpoint, as ("10.0.0.2", 62400); None if it is not known.
    peer: Optional[Tuple[str, int]]
    #: The job's number at the sender, if the message belongs to a job.
    job: Optional[int]


def completion_of(end: lib.CompletionStruct) -> Completion:
    peer = None
    if end.peer_port != 0:
        ip = ipaddress.IPv6Address(bytes(end.peer_ip))
        peer = (str(ip.ipv4_mapped or ip), end.peer_port)
    return Completion(end.code, end.bytes, end.tag, end.connection, peer, end.job if end.has_job else None)


class Operation:
    """A started operation. Keeps its memory in place until it has ended, even if the program drops the Operation."""

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
        # The library has one thread wait for an operation.
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
        """Whether it has ended. Does not wait."""
        return self._look(0)

    def wait(self, timeout: Optional[float] = None) -> Completion:
        """Waits for the end. TimedOutError: it continues; wait again or cancel it. Any other Error: it ended with that.
        """
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
        """Requests its end; wait() shows whether it ended with Code.CANCELLED. No effect if it has ended."""
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
        """Receives it into an object with the buffer protocol."""
        return self._endpoint._run("receive_message", buffer, True, timeout, self._message)

    def receive(self, timeout: Optional[float] = None) -> bytes:
        buffer = bytearray(self.size)
        self.receive_into(buffer, timeout)
        return bytes(buffer)

    def drop(self) -> None:
        """Discards it."""
        try:
            self.receive_into(bytearray())
        except TruncatedError:
            pass


class Connection:
    """A connection, made by Endpoint.connect() or accept().

    A tagged connection matches messages with receives by tag. On an ordered one the n-th message arrives in the n-th
    receive; tags are not sent.
    """

    def __init__(self, endpoint: "Endpoint", handle: int, kind: int) -> None:
        self._endpoint = endpoint
        self.handle = handle
        self.tagged = kind == lib.TAGGED
        #: Whether accept(), connect() or finish() has seen the connection's end.
        self.ended = False
        endpoint._know(self)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.close() if kind is None else self.abort()
        except Error:
            pass  # it has ended

    def __repr__(self) -> str:
        return f"<mltcp.Connection {self.handle:#x}, {'tagged' if self.tagged else 'ordered'}>"

    # ---- Messages ----

    def send(self, message: Any, tag: int = 0, timeout: Optional[float] = None) -> None:
        """Sends the bytes of any object with the buffer protocol, without a copy, and waits until they are in the
        peer's buffer (tagged: or stored by the peer). TimedOutError: the message was not delivered; an ordered
        connection ends if part of it had been sent."""
        self._endpoint._run(self._name("send"), message, False, timeout, self.handle, after=(tag,))

    def receive_into(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG,
                     timeout: Optional[float] = None) -> Completion:
        """Receives into a writable object with the buffer protocol; Completion.size is the length. TruncatedError:
        the message was longer."""
        return self._endpoint._run(self._name("receive"), buffer, True, timeout, self.handle, after=self._match(tag, mask))

    def receive(self, most: int, tag: int = 0, mask: int = _WHOLE_TAG, timeout: Optional[float] = None) -> bytes:
        """Receives a message of at most `most` bytes."""
        buffer = bytearray(most)
        return bytes(memoryview(buffer)[:self.receive_into(buffer, tag, mask, timeout).size])

    def begin_send(self, message: Any, tag: int = 0) -> Operation:
        """Like send(), without waiting. Do not change the message until the operation has ended."""
        return self._endpoint._begin(self._name("send"), message, False, None, self.handle, after=(tag,))

    def begin_receive_into(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG) -> Operation:
        return self._endpoint._begin(self._name("receive"), buffer, True, None, self.handle, after=self._match(tag, mask))

    async def send_async(self, message: Any, tag: int = 0) -> None:
        """Like send(), for asyncio; asyncio.wait_for() sets a time limit."""
        await self._endpoint._run_async(self._name("send"), message, False, self.handle, after=(tag,))

    async def receive_into_async(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG) -> Completion:
        return await self._endpoint._run_async(self._name("receive"), buffer, True, self.handle,
                                               after=self._match(tag, mask))

    async def receive_async(self, most: int, tag: int = 0, mask: int = _WHOLE_TAG) -> bytes:
        buffer = bytearray(most)
        return bytes(memoryview(buffer)[:(await self.receive_into_async(buffer, tag, mask)).size])

    def peek(self, tag: int = 0, mask: int = _WHOLE_TAG) -> Optional[Completion]:
        """The message that a receive with this tag and mask would take; None if there is none. Tagged connections."""
        end = self._endpoint._peek(self.handle, tag, mask, 0)
        return None if end is None else completion_of(end)

    def take(self, tag: int = 0, mask: int = _WHOLE_TAG) -> Optional[PeekedMessage]:
        """Likewise, but takes the message, so that no other receive matches it (MPI_Mprobe)."""
        end = self._endpoint._peek(self.handle, tag, mask, 1)
        return None if end is None else PeekedMessage(self._endpoint, end)

    # ---- The connection ----

    def close(self) -> None:
        """Ends the connection when sent messages are in the peer's buffers or stored by the peer. Does not wait."""
        code = self._endpoint._lib.close(self._endpoint._pointer, self.handle)
        if code != Code.UNKNOWN:  # it had already ended
            self._endpoint._lib.check(code)

    def finish(self, timeout: Optional[float] = None) -> None:
        """Calls close() and waits for the end. TimedOutError: the peer does not take the sent messages."""
        self.close()
        self.wait_ended(timeout)

    def wait_ended(self, timeout: Optional[float] = None) -> None:
        """Waits until either end has closed it."""
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
        """Counters and the state of congestion control, by their names in mltcp.h."""
        report = lib.ConnectionReport()
        self._endpoint._lib.check(
            self._endpoint._lib.report_connection(self._endpoint._pointer, self.handle, ctypes.byref(report)))
        return lib.report_of(report)

    def _name(self, what: str) -> str:
        return what + "_tagged" if self.tagged else what

    def _match(self, tag: int, mask: int) -> Tuple[int, ...]:
        return (tag, mask) if self.tagged else (tag,)
