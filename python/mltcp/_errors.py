"""Codes of the library, and the exceptions that represent them."""

from __future__ import annotations

import enum
from typing import Any, Optional


class Code(enum.IntEnum):
    """How calls and operations end. The values are those of mltcp.h."""

    OK = 0
    TRUNCATED = 1
    NOTHING = 2
    TIMED_OUT = 3
    CANCELLED = 4
    TOO_LATE = 5
    QUEUE_FULL = 6
    NO_ROOM = 7
    CLOSED = 8
    REFUSED = 9
    UNREACHABLE = 10
    ABORTED = 11
    WRONG_VERSION = 12
    WRONG_PEER = 13
    PROTOCOL = 14
    BAD_ADDRESS = 15
    INVALID = 16
    UNKNOWN = 17
    TOO_LONG = 18
    UNSUPPORTED = 19
    FORKED = 20
    DESTROYED = 21
    FAILED = 22
    NO_KEY = 23


class Error(Exception):
    """A failure that the library reports."""

    def __init__(self, code: int, text: str, completion: Any = None) -> None:
        super().__init__(text)
        #: The Code of the failure; a plain int if a newer library has added the value.
        self.code = Code(code) if code in Code.__members__.values() else code
        self.text = text
        #: The Completion, if an operation ended with this failure; otherwise None.
        self.completion = completion

    def __reduce__(self):
        return type(self), (int(self.code), self.text)


class TimedOutError(Error, TimeoutError):
    """The time limit has passed."""


class ConnectionEndedError(Error, ConnectionError):
    """The peer is gone, it has closed or refused the connection, or another endpoint uses its address."""


class TruncatedError(Error):
    """The message was longer than the buffer. The buffer contains the beginning of the message."""


class InvalidError(Error, ValueError):
    """An argument is out of range."""


class BadAddressError(InvalidError):
    """The bytes are not the address of an endpoint."""


class LibraryError(ImportError):
    """libmltcp.so.1 is missing, or has another version."""


_KINDS = {
    Code.TRUNCATED: TruncatedError, Code.TIMED_OUT: TimedOutError, Code.CLOSED: ConnectionEndedError,
    Code.REFUSED: ConnectionEndedError, Code.UNREACHABLE: ConnectionEndedError, Code.ABORTED: ConnectionEndedError,
    Code.WRONG_VERSION: ConnectionEndedError, Code.WRONG_PEER: ConnectionEndedError,
    Code.PROTOCOL: ConnectionEndedError, Code.BAD_ADDRESS: BadAddressError, Code.INVALID: InvalidError,
    Code.TOO_LONG: InvalidError, Code.NO_KEY: ConnectionEndedError,
}


def error_of(code: int, text: str, completion: Optional[Any] = None) -> Error:
    """Returns the exception that represents a code."""
    return _KINDS.get(code, Error)(code, text, completion)
