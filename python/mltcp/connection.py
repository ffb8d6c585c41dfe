"""Connections, what is posted on them, and how that ends."""

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
#: For so long a thread is within the library, and does not see Ctrl-C.
_SLICE_NS = 200_000_000


def nanoseconds(seconds: Optional[float]) -> int:
    """None: for ever."""
    if seconds is None:
        return lib.FOREVER
    if not isinstance(seconds, numbers.Real):
        raise TypeError(f"a time is a number of seconds, and {seconds!r} is none; give 0 or more, or None for no limit")
    if seconds != seconds or seconds < 0:
        raise ValueError(f"a time of {seconds} s; give 0 or more, or None for no limit")
    return lib.FOREVER if seconds * 1e9 >= lib.FOREVER else int(seconds * 1e9)


class Completion(NamedTuple):
    """How an operation ended, where it ended well."""

    code: int
    #: Length of the message, also where it was longer than the buffer.
    size: int
    tag: int
    #: Of receives from any connection: the handle of that of the message.
    connection: int
    #: Shard 0 of the peer's endpoint, as ("10.0.0.2", 62400); None where it is not known.
    peer: Optional[Tuple[str, int]]
    #: The sender's number of its job, if the message was one's.
    job: Optional[int]


def completion_of(end: lib.CompletionStruct) -> Completion:
    peer = None
    if end.peer_port != 0:
        ip = ipaddress.IPv6Address(bytes(end.peer_ip))
        peer = (str(ip.ipv4_mapped or ip), end.peer_port)
    return Completion(end.code, end.bytes, end.tag, end.connection, peer, end.job if end.has_job else None)


class Operation:
    """Something that was begun. Keeps its memory in place until it has ended, even if nobody asks for it any more."""

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
        """Waits for the end. TimedOutError: it goes on, and may be waited for again. Any other Error: it has ended so.
        """
        limit = nanoseconds(timeout)
        end = time.monotonic_ns() + limit
        while not self._look(min(_SLICE_NS, max(end - time.monotonic_ns(), 0))):
            if limit != lib.FOREVER and time.monotonic_ns() >= end:
                raise error_of(Code.TIMED_OUT, f"it has not ended within {timeout} s and goes on; wait again, or "
                                                   "cancel it")
        return self._outcome()

    def _outcome(self) -> Completion:
        assert self._end is not None
        completion = completion_of(self._end)
        if self._end.code != Code.OK:
            raise self._endpoint._lib.error_of_end(self._end, completion)
        return completion

    def cancel(self) -> None:
        """Asks for its end; wait() tells whether that was Code.CANCELLED. Nothing, where it has ended."""
        if self._end is None:
            code = self._endpoint._lib.cancel(self._endpoint._pointer, self._handle)
            if code not in (Code.OK, Code.UNKNOWN):
                self._endpoint._lib.check(code)


class PeekedMessage:
    """A message that Connection.take() has taken out of matching: for receive() here, or drop()."""

    def __init__(self, endpoint: "Endpoint", end: lib.CompletionStruct) -> None:
        self._endpoint = endpoint
        self._message = end.message
        self.size: int = end.bytes
        self.tag: int = end.tag

    def receive_into(self, buffer: Any, timeout: Optional[float] = None) -> Completion:
        """Into an object with the buffer protocol."""
        return self._endpoint._run("receive_message", buffer, True, timeout, self._message)

    def receive(self, timeout: Optional[float] = None) -> bytes:
        buffer = bytearray(self.size)
        self.receive_into(buffer, timeout)
        return bytes(buffer)

    def drop(self) -> None:
        """Nobody wants it."""
        try:
            self.receive_into(bytearray())
        except TruncatedError:
            pass


class Connection:
    """A connection, made by Endpoint.connect() or accept().

    A tagged one matches messages with receives by their tags. On an ordered one the n-th message lands in the n-th
    receive; tags stay on their own side.
    """

    def __init__(self, endpoint: "Endpoint", handle: int, kind: int) -> None:
        self._endpoint = endpoint
        self.handle = handle
        self.tagged = kind == lib.TAGGED
        #: Whether its end has been seen, by accept(), connect() or finish() of the endpoint.
        self.ended = False
        endpoint._know(self)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.close() if kind is None else self.abort()
        except Error:
            pass  # it is over

    def __repr__(self) -> str:
        return f"<mltcp.Connection {self.handle:#x}, {'tagged' if self.tagged else 'ordered'}>"

    # ---- Messages ----

    def send(self, message: Any, tag: int = 0, timeout: Optional[float] = None) -> None:
        """Sends the bytes of any object with the buffer protocol, without a copy, and waits until they are in the
        peer's buffer (by tag: there, or held by the peer). TimedOutError: it has not happened; where the message had
        begun, an ordered connection ends with that."""
        self._endpoint._run(self._name("send"), message, False, timeout, self.handle, after=(tag,))

    def receive_into(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG,
                     timeout: Optional[float] = None) -> Completion:
        """Receives into a writable object with the buffer protocol; Completion.size says how much. TruncatedError:
        the message was longer."""
        return self._endpoint._run(self._name("receive"), buffer, True, timeout, self.handle, after=self._match(tag, mask))

    def receive(self, most: int, tag: int = 0, mask: int = _WHOLE_TAG, timeout: Optional[float] = None) -> bytes:
        """A message of at most so many bytes."""
        buffer = bytearray(most)
        return bytes(memoryview(buffer)[:self.receive_into(buffer, tag, mask, timeout).size])

    def begin_send(self, message: Any, tag: int = 0) -> Operation:
        """As send(), without waiting. The message is to stay as it is until the operation has ended."""
        return self._endpoint._begin(self._name("send"), message, False, None, self.handle, after=(tag,))

    def begin_receive_into(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG) -> Operation:
        return self._endpoint._begin(self._name("receive"), buffer, True, None, self.handle, after=self._match(tag, mask))

    async def send_async(self, message: Any, tag: int = 0) -> None:
        """As send(), for asyncio; to be given a limit by asyncio.wait_for()."""
        await self._endpoint._run_async(self._name("send"), message, False, self.handle, after=(tag,))

    async def receive_into_async(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG) -> Completion:
        return await self._endpoint._run_async(self._name("receive"), buffer, True, self.handle,
                                               after=self._match(tag, mask))

    async def receive_async(self, most: int, tag: int = 0, mask: int = _WHOLE_TAG) -> bytes:
        buffer = bytearray(most)
        return bytes(memoryview(buffer)[:(await self.receive_into_async(buffer, tag, mask)).size])

    def peek(self, tag: int = 0, mask: int = _WHOLE_TAG) -> Optional[Completion]:
        """The message that such a receive would take now; None if there is none. Tagged connections."""
        end = self._endpoint._peek(self.handle, tag, mask, 0)
        return None if end is None else completion_of(end)

    def take(self, tag: int = 0, mask: int = _WHOLE_TAG) -> Optional[PeekedMessage]:
        """The same, and takes it out of matching (MPI_Mprobe)."""
        end = self._endpoint._peek(self.handle, tag, mask, 1)
        return None if end is None else PeekedMessage(self._endpoint, end)

    # ---- The connection ----

    def close(self) -> None:
        """Ends once what was sent is in the peer's buffers, or held by the peer. Does not wait for that."""
        code = self._endpoint._lib.close(self._endpoint._pointer, self.handle)
        if code != Code.UNKNOWN:  # it was over before
            self._endpoint._lib.check(code)

    def finish(self, timeout: Optional[float] = None) -> None:
        """close(), and waits for the end. TimedOutError: the peer does not take what was sent."""
        self.close()
        self.wait_ended(timeout)

    def wait_ended(self, timeout: Optional[float] = None) -> None:
        """Until it is over, by whichever end."""
        self._endpoint._wait_for_event(lambda: self.ended, timeout, "the connection has not ended; see what the peer "
                                                                    "waits for, or abort()")

    def abort(self) -> None:
        """Ends at once, here and at the peer."""
        code = self._endpoint._lib.abort(self._endpoint._pointer, self.handle)
        if code != Code.UNKNOWN:
            self._endpoint._lib.check(code)

    @property
    def peer(self) -> Optional[bytes]:
        """The address of the peer's endpoint; None as long as it has not introduced itself."""
        blob = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(64)
        code = self._endpoint._lib.peer(self._endpoint._pointer, self.handle, blob, ctypes.byref(size))
        if code == Code.NOTHING:
            return None
        self._endpoint._lib.check(code)
        return blob.raw[:size.value]

    def report(self) -> dict:
        """Counters and what congestion control sees, by their names in mltcp.h."""
        report = lib.ConnectionReport()
        self._endpoint._lib.check(
            self._endpoint._lib.report_connection(self._endpoint._pointer, self.handle, ctypes.byref(report)))
        return lib.report_of(report)

    def _name(self, what: str) -> str:
        return what + "_tagged" if self.tagged else what

    def _match(self, tag: int, mask: int) -> Tuple[int, ...]:
        return (tag, mask) if self.tagged else (tag,)
