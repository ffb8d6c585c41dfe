"""Endpoints: how to open them, connect, accept, and use them with asyncio."""

from __future__ import annotations

import asyncio
import collections
import ctypes
import operator
import os
import threading
import time
import weakref
from typing import Any, Callable, Deque, Dict, Optional, Tuple, Union

from . import _library as lib
from ._errors import Code, ConnectionEndedError, Error, TimedOutError, error_of
from .connection import Completion, Connection, Operation, completion_of, nanoseconds, _SLICE_NS, _WHOLE_TAG
from .job import Job

Address = Union[bytes, bytearray, str]


def _bytes_of(address: Address) -> bytes:
    if isinstance(address, str):
        try:
            return bytes.fromhex(address.strip())
        except ValueError:
            raise error_of(Code.BAD_ADDRESS, "the text is not a hexadecimal address; copy all of it, and nothing else"
                           ) from None
    return bytes(address)


def _option(name: str, kind: Any, value: Any) -> Any:
    """Converts an option to the type of its member in the C struct: text or a whole number. Raises TypeError or
    ValueError if this is not possible."""
    if kind is ctypes.c_char_p:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a text, but is {value!r}; write e.g. {name}=\"...\"")
        return value.encode()
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, but is {value!r}; write e.g. {name}=1") from None
    if kind(value).value != value:  # ctypes would drop the high bits without an error
        raise ValueError(f"{name} is {value}, which is out of range; see mltcp_endpoint_options in mltcp.h")
    return value


class _Async:
    """Connects an endpoint to an event loop of asyncio. The loop watches the file of a queue of completions and, after
    the first accept(), the file of the queue of events."""

    PLACES = 1 << 12

    def __init__(self, endpoint: "Endpoint", loop: asyncio.AbstractEventLoop) -> None:
        self.endpoint = endpoint
        self.loop = loop
        self.waiting: Dict[int, Tuple[asyncio.Future, Optional[lib.Pinned]]] = {}
        self.accepting: Deque[asyncio.Future] = collections.deque()
        self.next_token = 1
        self.queue = ctypes.c_void_p()
        check = endpoint._lib.check
        check(endpoint._lib.queue_create(endpoint._pointer, self.PLACES, ctypes.byref(self.queue)))
        self.files = [self._watch(self.queue, self._on_ends)]

    def _watch(self, queue: ctypes.c_void_p, call: Any) -> int:
        file = ctypes.c_int()
        self.endpoint._lib.check(self.endpoint._lib.queue_file(queue, ctypes.byref(file)))
        self.loop.add_reader(file.value, call)
        self.loop.call_soon(call)  # without this first call, the file would not be armed
        return file.value

    def post(self, begin: Any, pinned: Optional[lib.Pinned]) -> Tuple[asyncio.Future, int]:
        """Calls begin(options, operation), which posts an operation. Returns its future and its handle."""
        token = self.next_token
        self.next_token += 1
        options = lib.PostOptions(queue=self.queue, context=token)
        operation = ctypes.c_uint64()
        future = self.loop.create_future()
        self.waiting[token] = (future, pinned)
        code = begin(options, operation)
        if code != Code.OK:
            del self.waiting[token]
            if pinned is not None:
                pinned.release()
            self.endpoint._refuse(code, 0)
        return future, operation.value

    def _on_ends(self) -> None:
        library = self.endpoint._lib
        ends = (lib.CompletionStruct * 64)()
        ends[0].struct_size = ctypes.sizeof(lib.CompletionStruct)
        count = ctypes.c_size_t()
        while True:
            while library.queue_poll(self.queue, ends, len(ends), ctypes.byref(count)) == Code.OK and count.value > 0:
                for end in ends[:count.value]:
                    self._on_end(end)
            if library.queue_arm(self.queue) != Code.OK:
                return

    def _on_end(self, end: lib.CompletionStruct) -> None:
        future, pinned = self.waiting.pop(end.context)
        if pinned is not None:
            pinned.release()
        if future.done():
            return  # the program has cancelled the future
        completion = completion_of(end)
        if end.code == Code.OK:
            future.set_result(completion)
        else:
            future.set_exception(self.endpoint._lib.error_of_end(end, completion))

    def accept(self) -> asyncio.Future:
        future = self.loop.create_future()
        self.accepting.append(future)
        if len(self.files) == 1:
            self.files.append(self._watch(self.endpoint._events, self._on_events))
        else:
            self._on_events()
        return future

    def _on_events(self) -> None:
        endpoint = self.endpoint
        while True:
            endpoint._take_events()
            while self.accepting and self.accepting[0].done():
                self.accepting.popleft()
            while self.accepting and endpoint._accepted:
                self.accepting.popleft().set_result(endpoint._accepted.popleft())
            if endpoint._lib.queue_arm(endpoint._events) != Code.OK:
                return

    def end(self) -> None:
        """Ends the use of the loop when the endpoint is closed. Call this in the loop's thread, or after the loop has
        stopped."""
        self._on_ends()
        for future in self.accepting:
            if not future.done():
                future.set_exception(error_of(Code.DESTROYED, "the endpoint was closed; open another"))
        if not self.loop.is_closed():
            for file in self.files:
                self.loop.remove_reader(file)
        self.endpoint._lib.queue_destroy(self.queue)


class Endpoint:
    """An endpoint, to which peers can connect. The library's threads drive it.

    `address` is an address of this machine that the peers can reach, such as "10.0.0.1" or, with a UDP port,
    "10.0.0.1:62400". `device` is the port: "udp:" uses the kernel's sockets. `peer_timeout` is the idle timeout: a peer
    counts as dead after this time in seconds without a packet. Further options are the members of
    mltcp_endpoint_options: congestion_control="cubic", shards=2, eager_limit=8192, ...

    `key` is the job's key, which every peer must have: the path of a key file (made by `mltcp key FILE`), "fd:3" for a
    descriptor, or 32 random bytes. Without `key`, MLTCP_KEY_FILE may name the file. If both ends set authenticate=1,
    packets are authenticated with the key but not encrypted.

    Any thread may call any method. In a `with` statement the endpoint is closed at the end.
    """

    def __init__(self, address: Optional[str] = None, *, device: str = "udp:", peer_timeout: float = 10.0,
                 key: Union[str, os.PathLike, bytes, None] = None, **options: Any) -> None:
        self._pointer = ctypes.c_void_p()
        self._lib = lib.load()
        given = lib.EndpointOptions()
        self._lib.check(self._lib.endpoint_options_init_sized(ctypes.byref(given), ctypes.sizeof(given)))
        given.device = _option("device", ctypes.c_char_p, device)
        given.address = None if address is None else _option("address", ctypes.c_char_p, address)
        given.peer_timeout_ns = nanoseconds(peer_timeout)
        if isinstance(key, (bytes, bytearray)):
            if len(key) != lib.KEY_BYTES:
                raise ValueError(f"the key has {len(key)} bytes; give {lib.KEY_BYTES} random ones, or the name of a key "
                                 "file")
            given.key_bytes = bytes(key)
        elif key is not None:
            given.key = os.fsencode(key)
        theirs = {"struct_size", "driving", "event_callback", "event_context", "peer_timeout_ns", "key_bytes", "reserved"}
        known = {name: kind for name, kind in lib.EndpointOptions._fields_ if name not in theirs}
        for name, value in options.items():
            if name not in known:
                raise TypeError(f"an endpoint has no option {name!r}; there are {', '.join(sorted(known))}")
            setattr(given, name, _option(name, known[name], value))
        self._lib.check(self._lib.endpoint_open(ctypes.byref(given), ctypes.byref(self._pointer)))
        self._pending: Dict[int, Operation] = {}
        self._accepted: Deque[Connection] = collections.deque()
        self._loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Async]" = weakref.WeakKeyDictionary()
        self._connections: "weakref.WeakValueDictionary[int, Connection]" = weakref.WeakValueDictionary()
        #: Handles of connections that ended before their Connection object existed.
        self._ended: Deque[int] = collections.deque(maxlen=1024)
        self._lock = threading.Lock()
        self._events = ctypes.c_void_p()
        self._lib.check(self._lib.endpoint_events(self._pointer, ctypes.byref(self._events)))
        #: Whether close() was called.
        self.closed = False
        blob = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(64)
        self._lib.check(self._lib.endpoint_address(self._pointer, blob, ctypes.byref(size)))
        #: The address to which peers connect. It does not change.
        self.address: bytes = blob.raw[:size.value]

    def __enter__(self) -> "Endpoint":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<mltcp.Endpoint {self}{', closed' if self.closed else ''}>"

    def __str__(self) -> str:
        text = ctypes.create_string_buffer(200)
        self._lib.address_text(self.address, len(self.address), text, len(text))
        return text.value.decode()

    def __del__(self) -> None:
        # No other reference exists, so no thread is inside a call.
        if getattr(self, "_pointer", None):
            self._lib.endpoint_destroy(self._pointer)

    @property
    def description(self) -> str:
        """A description of the datapath for people."""
        text = ctypes.create_string_buffer(512)
        self._lib.endpoint_description(self._pointer, text, len(text))
        return text.value.decode(errors="replace")

    def now(self) -> float:
        """Returns the time of the endpoint's clock in seconds."""
        now = ctypes.c_int64()
        self._lib.check(self._lib.now(self._pointer, ctypes.byref(now)))
        return now.value * 1e-9

    def close(self) -> None:
        """Ends all connections and operations at once, with Code.DESTROYED. May be called again."""
        if self.closed:
            return
        self.closed = True
        code = self._lib.endpoint_close(self._pointer)
        if code == Code.FORKED:
            return  # after a fork: everything belongs to the parent
        self._lib.check(code)
        for operation in list(self._pending.values()):
            operation._look(0)
        for bridge in list(self._loops.values()):
            bridge.end()
        self._loops.clear()

    # ---- Connections ----

    def connect(self, address: Address, *, ordered: bool = False, timeout: Optional[float] = None) -> Connection:
        """Connects to an endpoint by its address, given as bytes or as hexadecimal text. Waits until both endpoints
        have introduced themselves."""
        connection, operation = self._begin_connect(address, ordered, timeout)
        self._finish(operation)
        return connection

    def accept(self, timeout: Optional[float] = None) -> Connection:
        """Returns the next incoming connection. Raises TimedOutError if there is none within `timeout` seconds."""
        self._wait_for_event(lambda: self._accepted, timeout, "nobody has connected; see that peers have the address")
        return self._accepted.popleft()

    async def connect_async(self, address: Address, *, ordered: bool = False) -> Connection:
        """Like connect(), for asyncio."""
        blob = _bytes_of(address)
        handle = ctypes.c_uint64()
        kind = lib.ORDERED if ordered else lib.TAGGED
        self._take_events()
        await self._await(lambda options, operation: self._lib.connect(
            self._pointer, blob, len(blob), kind, ctypes.byref(options), ctypes.byref(handle),
            ctypes.byref(operation)), None)
        return Connection(self, handle.value, kind)

    async def accept_async(self) -> Connection:
        """Like accept(), for asyncio."""
        return await self._bridge().accept()

    # ---- Tagged messages from any connection ----

    def receive_into(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG,
                     timeout: Optional[float] = None) -> Completion:
        """Like Connection.receive_into(), but receives from any tagged connection."""
        return self._run("receive_tagged", buffer, True, timeout, lib.ANY_CONNECTION, after=(tag, mask))

    def begin_receive_into(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG) -> Operation:
        return self._begin("receive_tagged", buffer, True, None, lib.ANY_CONNECTION, after=(tag, mask))

    async def receive_into_async(self, buffer: Any, tag: int = 0, mask: int = _WHOLE_TAG) -> Completion:
        return await self._run_async("receive_tagged", buffer, True, lib.ANY_CONNECTION, after=(tag, mask))

    def peek(self, tag: int = 0, mask: int = _WHOLE_TAG) -> Optional[Completion]:
        end = self._peek(lib.ANY_CONNECTION, tag, mask, 0)
        return None if end is None else completion_of(end)

    # ---- Jobs and reports ----

    def job(self, number: int = 0, *, function: Optional[str] = None, weight: Optional[float] = None, max_rate: int = 0,
            learn_iterations: bool = False) -> Job:
        """Creates a training job. `function` is one of MLTCP's functions, "F1" to "F6". With "turns F1", bursts also wait
        for other bursts and overtake them. For a constant gain, give only `weight`; 1 is plain fairness. The default is
        the function "F1"."""
        if function is None and weight is None:
            function = "F1"
        options = lib.JobOptions(number=number, function=None if function is None else function.encode(),
                                 weight=weight or 0, max_rate_bps=max_rate, learn_iterations=int(learn_iterations))
        handle = ctypes.c_uint64()
        self._lib.check(self._lib.job_create(self._pointer, ctypes.byref(options), ctypes.byref(handle)))
        return Job(self, handle.value)

    def report(self) -> dict:
        """Returns the endpoint's counters, with their names in mltcp.h as keys."""
        report = lib.EndpointReport()
        self._lib.check(self._lib.report_endpoint(self._pointer, ctypes.byref(report)))
        return lib.report_of(report)

    # ---- Internal ----

    def _begin_connect(self, address: Address, ordered: bool, timeout: Optional[float]
                       ) -> Tuple[Connection, Operation]:
        blob = _bytes_of(address)
        self._take_events()  # empties the queue of events, in which a new connection needs a free place
        handle = ctypes.c_uint64()
        operation = ctypes.c_uint64()
        options = lib.PostOptions(time_limit_ns=max(nanoseconds(timeout), 1))
        kind = lib.ORDERED if ordered else lib.TAGGED
        self._lib.check(self._lib.connect(self._pointer, blob, len(blob), kind, ctypes.byref(options),
                                          ctypes.byref(handle), ctypes.byref(operation)))
        return Connection(self, handle.value, kind), self._keep(operation.value, None)

    def _keep(self, handle: int, pinned: Optional[lib.Pinned]) -> Operation:
        operation = Operation(self, handle, pinned)
        self._pending[handle] = operation
        return operation

    def _finish(self, operation: Operation) -> Completion:
        try:
            return operation.wait()
        except Error:
            raise
        except BaseException:
            operation.cancel()  # Ctrl-C; the operation's memory stays in place until the operation has ended
            raise

    def _begin(self, name: str, buffer: Any, writable: bool, timeout: Optional[float], first: int,
               after: Tuple[int, ...] = ()) -> Operation:
        limit = max(nanoseconds(timeout), 1)
        pinned = lib.Pinned(buffer, writable)
        operation = ctypes.c_uint64()
        options = lib.PostOptions(time_limit_ns=limit)
        code = getattr(self._lib, name)(self._pointer, first, pinned.address, pinned.size, *after,
                                        ctypes.byref(options), ctypes.byref(operation))
        if code != Code.OK:
            pinned.release()
            self._refuse(code, lib.ANY_CONNECTION if name == "receive_message" else first)
        return self._keep(operation.value, pinned)

    def _refuse(self, code: int, connection: int) -> None:
        """Raises the error that a posting call has returned."""
        if code == Code.UNKNOWN and connection != lib.ANY_CONNECTION:
            raise ConnectionEndedError(code, "the connection has ended; connect again")
        self._lib.check(code)

    def _run(self, name: str, buffer: Any, writable: bool, timeout: Optional[float], first: int,
             after: Tuple[int, ...] = ()) -> Completion:
        return self._finish(self._begin(name, buffer, writable, timeout, first, after))

    def _peek(self, connection: int, tag: int, mask: int, take: int) -> Optional[lib.CompletionStruct]:
        operation = ctypes.c_uint64()
        self._lib.check(self._lib.peek(self._pointer, connection, tag, mask, take, None, ctypes.byref(operation)))
        kept = self._keep(operation.value, None)
        try:
            kept.wait()
        except Error as error:
            if error.code == Code.NOTHING:
                return None
            raise
        return kept._end

    def _know(self, connection: Connection) -> None:
        with self._lock:
            if connection.handle in self._ended:
                connection.ended = True
            else:
                self._connections[connection.handle] = connection

    def _wait_for_event(self, there: Callable[[], Any], timeout: Optional[float], why: str) -> None:
        """Waits until there() returns true. Raises TimedOutError after `timeout` seconds."""
        limit = nanoseconds(timeout)
        end = time.monotonic_ns() + limit
        event = lib.CompletionStruct()
        count = ctypes.c_size_t()
        while True:
            self._take_events()
            if there():
                return
            left = end - time.monotonic_ns()
            code = self._lib.queue_wait(self._events, ctypes.byref(event), 1, ctypes.byref(count),
                                        min(_SLICE_NS, max(left, 0)))
            if code == Code.OK:
                self._on_event(event)
            elif code != Code.TIMED_OUT:
                self._lib.check(code)
            elif limit != lib.FOREVER and left <= 0:
                raise TimedOutError(Code.TIMED_OUT, f"within {timeout} s {why}")

    def _take_events(self) -> None:
        event = lib.CompletionStruct()
        count = ctypes.c_size_t()
        while self._lib.queue_poll(self._events, ctypes.byref(event), 1, ctypes.byref(count)) == Code.OK:
            if count.value == 0:
                return
            self._on_event(event)

    def _on_event(self, event: lib.CompletionStruct) -> None:
        if event.kind == lib.ACCEPTED:
            self._accepted.append(Connection(self, event.connection, event.connection_kind))
        elif event.kind == lib.ENDED:
            with self._lock:
                connection = self._connections.pop(event.connection, None)
                if connection is None:
                    self._ended.append(event.connection)
            if connection is not None:
                connection.ended = True

    # ---- Asyncio ----

    def _bridge(self) -> _Async:
        loop = asyncio.get_running_loop()
        with self._lock:
            bridge = self._loops.get(loop)
            if bridge is None:
                for old in [other for other in self._loops if other.is_closed()]:
                    if not self._loops[old].waiting:
                        self._lib.queue_destroy(self._loops.pop(old).queue)
                bridge = self._loops[loop] = _Async(self, loop)
            return bridge

    async def _await(self, begin: Any, pinned: Optional[lib.Pinned]) -> Completion:
        future, operation = self._bridge().post(begin, pinned)
        try:
            return await future
        except asyncio.CancelledError:
            self._lib.cancel(self._pointer, operation)
            raise

    async def _run_async(self, name: str, buffer: Any, writable: bool, first: int,
                         after: Tuple[int, ...] = ()) -> Completion:
        pinned = lib.Pinned(buffer, writable)
        return await self._await(lambda options, operation: getattr(self._lib, name)(
            self._pointer, first, pinned.address, pinned.size, *after, ctypes.byref(options),
            ctypes.byref(operation)), pinned)
