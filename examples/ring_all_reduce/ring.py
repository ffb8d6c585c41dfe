"""A ring all-reduce in Python, as data-parallel training sums its gradients: each rank sends to the next one and
receives from the one before. Started once a rank, on one machine or several:

    ring.py RANK RANKS OWN-IP FOLDER

FOLDER is a new one that all share; there they leave each other their addresses. ring.c and ring.cpp are the same, and
more is told there; ranks of all three go together.
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
    """To the floats at `to`, a memoryview, those of another."""
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

    for step in range(ranks - 1):  # each part grows by what the ranks add, and is complete at one of them
        into = part(rank - step - 1)
        exchange(part(rank - step), spare[:len(into)])
        add(into, spare[:len(into)])
    for step in range(ranks - 1):  # from there it goes to all
        exchange(part(rank - step + 1), part(rank - step))


def main(rank, ranks, ip, folder):
    with mltcp.Endpoint(ip) as endpoint:
        own = os.path.join(folder, str(rank))
        if os.path.lexists(own + ".tmp"):
            os.remove(own + ".tmp")  # of a run that ended too soon
        with open(own + ".tmp", "xb") as stream:  # follows no link that somebody has left there
            stream.write(endpoint.address)
        os.rename(own + ".tmp", own)  # complete when it is there
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
        following.finish(PATIENCE)  # whoever sends closes, so that nothing that is still on its way is cut off
        previous.wait_ended(PATIENCE)
    print(f"rank {rank} of {ranks}: {ITERATIONS} iterations, all sums right")


if __name__ == "__main__":
    numbers = [int(word) if word.isascii() and word.isdigit() else -1 for word in sys.argv[1:3]]
    if len(sys.argv) != 5 or not (0 <= numbers[0] < numbers[1] and 2 <= numbers[1] <= 1000):
        print("write ring.py RANK RANKS OWN-IP FOLDER, with 2 to 1000 ranks and their numbers from 0 on", file=sys.stderr)
        sys.exit(2)
    try:
        main(*numbers, sys.argv[3], sys.argv[4])
    except OSError as error:  # those of the folder, and mltcp's of time limits
        sys.exit(f"ring: {error}; give a folder that all ranks share" if error.filename else f"ring: {error}")
    except (mltcp.Error, mltcp.LibraryError) as error:
        sys.exit(f"ring: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
