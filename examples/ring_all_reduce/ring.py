"""A ring all-reduce in Python, as data-parallel training sums its gradients: each rank sends to the next rank
and receives from the previous one. Start the program once for each rank, on one machine or several:

    ring.py RANK RANKS OWN-IP FOLDER

FOLDER is a new folder that all ranks share, for the exchange of their addresses. ring.c and ring.cpp do the same, with
more comments. A ring may contain ranks of all three programs.
"""
import os
import sys
import time
from array import array

import mltcp

try:
    import numpy
except ImportError:
    numpy = None

COUNT = 1 << 20
ITERATIONS = 3
PATIENCE = 30  # s


def address_in(file):
    begun = time.monotonic()
    while not os.path.exists(file):
        if time.monotonic() - begun > PATIENCE:
            sys.exit(f"ring: {file} does not come; start all ranks")
        time.sleep(0.02)
    with open(file, "rb") as stream:
        return stream.read()


def add(to, what):
    """Adds the floats of the memoryview `what` to those of `to`."""
    if numpy is not None:
        numpy.frombuffer(to, numpy.float32)[:] += numpy.frombuffer(what, numpy.float32)
    else:
        to[:] = array("f", map(float.__add__, to, what))


def all_reduce(rank, ranks, following, previous, data, spare):
    def part(number):
        i = number % ranks
        return data[COUNT * i // ranks:COUNT * (i + 1) // ranks]

    def exchange(out, into):
        receiving = previous.begin_receive_into(into)
        following.send(out, timeout=PATIENCE)
        receiving.wait(PATIENCE)

    for step in range(ranks - 1):  # each rank adds its data to a part, until one rank has the complete sum
        into = part(rank - step - 1)
        exchange(part(rank - step), spare[:len(into)])
        add(into, spare[:len(into)])
    for step in range(ranks - 1):  # the complete sum of each part goes around the ring
        exchange(part(rank - step + 1), part(rank - step))


def main(rank, ranks, ip, folder):
    with mltcp.Endpoint(ip) as endpoint:
        own = os.path.join(folder, str(rank))
        if os.path.lexists(own + ".tmp"):
            os.remove(own + ".tmp")  # the file is left from an aborted run
        with open(own + ".tmp", "xb") as stream:  # "x" does not follow a link
            stream.write(endpoint.address)
        os.rename(own + ".tmp", own)  # other ranks never read an incomplete file
        following = endpoint.connect(address_in(os.path.join(folder, str((rank + 1) % ranks))), ordered=True,
                                     timeout=PATIENCE)
        previous = endpoint.accept(PATIENCE)
        job = endpoint.job(function="F1")
        job.attach(following)
        data = memoryview(bytearray(4 * COUNT)).cast("f")
        spare = memoryview(bytearray(4 * COUNT)).cast("f")
        for iteration in range(ITERATIONS):
            data[:] = array("f", (rank + i % 7 + iteration for i in range(COUNT)))
            with job.iteration(4 * COUNT * 2 * (ranks - 1) // ranks):
                all_reduce(rank, ranks, following, previous, data, spare)
            if data != array("f", (ranks * (ranks - 1) // 2 + ranks * (i % 7 + iteration) for i in range(COUNT))):
                sys.exit("ring: a sum is wrong, which should not be")
        following.finish(PATIENCE)  # the sender closes the connection, so that no data in flight is lost
        previous.wait_ended(PATIENCE)
    print(f"rank {rank} of {ranks}: {ITERATIONS} iterations, all sums right")


if __name__ == "__main__":
    numbers = [int(word) if word.isascii() and word.isdigit() else -1 for word in sys.argv[1:3]]
    if len(sys.argv) != 5 or not (0 <= numbers[0] < numbers[1] and 2 <= numbers[1] <= 1000):
        print("write ring.py RANK RANKS OWN-IP FOLDER, with 2 to 1000 ranks and their numbers from 0 on", file=sys.stderr)
        sys.exit(2)
    try:
        main(*numbers, sys.argv[3], sys.argv[4])
    except OSError as error:  # the folder cannot be used, or a time limit of mltcp is exceeded
        sys.exit(f"ring: {error}; give a folder that all ranks share" if error.filename else f"ring: {error}")
    except (mltcp.Error, mltcp.LibraryError) as error:
        sys.exit(f"ring: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
