"""A first message from one machine to another, in Python. The program can exchange messages with hello.c and hello.cpp.

`hello.py 10.0.0.1` waits and prints its address. On another machine, `hello.py 10.0.0.2 ADDRESS` connects to it. The IP
address is that of the machine itself.
"""
import sys

import mltcp

if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
    print("hello.py OWN-IP waits, hello.py OWN-IP ADDRESS sends", file=sys.stderr)
    sys.exit(2)
try:
    with mltcp.Endpoint(sys.argv[1]) as endpoint:
        if len(sys.argv) > 2:
            endpoint.connect(sys.argv[2]).send(b"hello, you there", tag=1)
        else:
            print(endpoint.address.hex(), flush=True)
            print(endpoint.accept().receive(100, tag=1).decode(errors="replace"))
except (mltcp.Error, mltcp.LibraryError) as error:
    sys.exit(f"hello: {error}")
except KeyboardInterrupt:
    sys.exit(130)
