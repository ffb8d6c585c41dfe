"""MLTCP for programs in Python: endpoints that exchange messages, and the results of experiments.

    import mltcp

    with mltcp.Endpoint("10.0.0.1") as endpoint:          # an address of this machine
        peer = endpoint.connect(address_of_peer, timeout=10)
        peer.send(gradient, tag=7)                        # bytes, bytearray, memoryview, numpy: no copy
        peer.receive_into(other, tag=7, timeout=10)

Times are in seconds. Addresses are the bytes of Endpoint.address, or their hexadecimal text. Failures raise an Error,
which has a code and a text "cause; cure". docs/reference/python.md is the guide.

The first endpoint loads the library libmltcp.so.1. MLTCP_LIBRARY names the library. If it is not set, the package uses
the library that was built in its source tree, else the library below the prefix where the package is installed, else
the system's library.
"""

from ._errors import (BadAddressError, Code, ConnectionEndedError, Error, InvalidError, LibraryError, TimedOutError,
                      TruncatedError)
from ._library import library_path, library_version
from .connection import Completion, Connection, Operation, PeekedMessage
from .endpoint import Endpoint
from .job import Job
from .results import Results, load_results

__all__ = [
    "ANY_TAG", "BadAddressError", "Code", "Completion", "Connection", "ConnectionEndedError", "Endpoint", "Error",
    "InvalidError", "Job", "LibraryError", "Operation", "PeekedMessage", "Results", "TimedOutError", "TruncatedError",
    "WHOLE_TAG", "library_path", "library_version", "load_results",
]
__version__ = "0.1.0"

#: Masks of tagged receives. WHOLE_TAG compares every bit of the tag; ANY_TAG compares no bit.
WHOLE_TAG = (1 << 64) - 1
ANY_TAG = 0
