"""Tests the Python package over UDP sockets on the loopback: kinds of buffers, end of connections, errors, asyncio."""

import asyncio
import gc
import os
import pickle
import tempfile
import threading
import time
import unittest
import unittest.mock
from array import array
from pathlib import Path

import mltcp

try:
    import numpy
except ImportError:
    numpy = None

PATIENCE = 20


class Pair(unittest.TestCase):
    def setUp(self):
        self.left = mltcp.Endpoint("127.0.0.1", peer_timeout=0.5)
        self.right = mltcp.Endpoint("127.0.0.1", peer_timeout=0.5)
        self.addCleanup(self.left.close)
        self.addCleanup(self.right.close)

    def connect(self, ordered=False):
        here = self.left.connect(self.right.address, ordered=ordered, timeout=PATIENCE)
        return here, self.right.accept(PATIENCE)


class Messages(Pair):
    def test_any_buffer_is_sent_and_received_in_place(self):
        here, there = self.connect()
        for message in (b"bytes", bytearray(b"bytearray"), memoryview(b"a view of it")[2:6], array("d", [1.5, 2.5]), b"",
                        os.urandom(300_000)):
            sending = here.begin_send(message, tag=5)
            size = memoryview(message).nbytes
            buffer = bytearray(size + 10)
            self.assertEqual(there.receive_into(buffer, tag=5, timeout=PATIENCE).size, size)
            self.assertEqual(buffer[:size], bytes(memoryview(message).cast("B")) if size else b"")
            sending.wait(PATIENCE)
            self.assertTrue(sending.done)

    def test_a_view_of_a_part_is_written_and_no_more(self):
        here, there = self.connect()
        buffer = bytearray(b"." * 10)
        here.send(b"abc", tag=1)
        there.receive_into(memoryview(buffer)[3:6], tag=1, timeout=PATIENCE)
        self.assertEqual(buffer, b"...abc....")

    @unittest.skipUnless(numpy, "numpy is missing")
    def test_numpy_arrays_are_not_copied(self):
        here, there = self.connect()
        gradient = numpy.arange(100_000, dtype=numpy.float32)
        result = numpy.zeros((100, 1000), dtype=numpy.float32)
        sending = here.begin_send(gradient)
        there.receive_into(result, timeout=PATIENCE)
        sending.wait(PATIENCE)
        self.assertTrue((result.ravel() == gradient).all())
        with self.assertRaises((BufferError, ValueError)):
            here.begin_send(gradient[::2])  # a strided view is not contiguous
        gradient.flags.writeable = False
        with self.assertRaises((BufferError, ValueError)):
            there.begin_receive_into(gradient)

    def test_what_is_in_flight_keeps_its_memory(self):
        here, there = self.connect()
        buffer = bytearray(8)
        there.begin_receive_into(buffer, tag=1)  # nothing refers to the returned operation object
        gc.collect()
        with self.assertRaises(BufferError):
            buffer.extend(b"more")  # resizing would move the buffer's memory
        here.send(b"12345678", tag=1, timeout=PATIENCE)
        here.send(b"", tag=2, timeout=PATIENCE)
        there.receive(0, tag=2, timeout=PATIENCE)
        self.right.close()
        self.assertEqual(buffer, b"12345678")
        buffer.extend(b"more")

    def test_ordered_messages_land_one_after_the_other(self):
        here, there = self.connect(ordered=True)
        self.assertFalse(there.tagged)
        buffers = [bytearray(3) for _ in range(5)]
        receives = [there.begin_receive_into(buffer) for buffer in buffers]
        for i in range(5):
            here.send(bytes([i] * 3), timeout=PATIENCE)
        for i, receive in enumerate(receives):
            receive.wait(PATIENCE)
            self.assertEqual(buffers[i], bytes([i] * 3))
        with self.assertRaises(mltcp.Error) as caught:
            here.peek()
        self.assertEqual(caught.exception.code, mltcp.Code.UNSUPPORTED)

    def test_masks_and_any_connection(self):
        here, there = self.connect()
        here.send(b"a", tag=0x105)
        completion = self.right.receive_into(bytearray(1), tag=5, mask=0xFF, timeout=PATIENCE)
        self.assertEqual(completion.tag, 0x105)
        self.assertEqual(completion.connection, there.handle)
        self.assertEqual(completion.peer[0], "127.0.0.1")

    def test_peek_take_drop(self):
        here, there = self.connect()
        self.assertIsNone(there.peek(7))
        self.assertIsNone(there.take(7))
        for message in (b"first", b"second"):
            here.send(message, tag=7, timeout=PATIENCE)
        self.assertEqual(there.peek(7).size, 5)
        taken = there.take(7)
        self.assertEqual(taken.size, 5)
        self.assertEqual(self.right.peek(0, mltcp.ANY_TAG).size, 6)
        self.assertEqual(taken.receive(PATIENCE), b"first")
        there.take(7).drop()
        self.assertIsNone(there.peek(7))

    def test_a_message_that_is_too_long_is_told_with_its_length(self):
        here, there = self.connect()
        here.send(b"0123456789", timeout=PATIENCE)
        buffer = bytearray(4)
        with self.assertRaises(mltcp.TruncatedError) as caught:
            there.receive_into(buffer, timeout=PATIENCE)
        self.assertEqual(caught.exception.completion.size, 10)
        self.assertEqual(buffer, b"0123")


class Ends(Pair):
    def test_limits(self):
        here, there = self.connect()
        begun = time.monotonic()
        for wait in (lambda: there.receive(1, timeout=0.05), lambda: there.receive(1, timeout=0),
                     lambda: self.right.accept(0), lambda: self.right.accept(0.05)):
            with self.assertRaises(TimeoutError) as caught:
                wait()
            self.assertEqual(caught.exception.code, mltcp.Code.TIMED_OUT)
            self.assertIn(";", caught.exception.text)
        self.assertLess(time.monotonic() - begun, 5)
        for wrong in (-1, float("nan")):
            with self.assertRaises(ValueError):
                there.receive(1, timeout=wrong)
        receiving = there.begin_receive_into(bytearray(1))
        with self.assertRaises(mltcp.TimedOutError):
            receiving.wait(0.05)
        self.assertFalse(receiving.done)
        receiving.cancel()
        with self.assertRaises(mltcp.Error) as caught:
            receiving.wait(PATIENCE)
        self.assertEqual(caught.exception.code, mltcp.Code.CANCELLED)
        receiving.cancel()  # a second cancel has no effect
        with self.assertRaises(mltcp.Error):
            receiving.wait()

    def test_the_peer_goes(self):
        for how, codes in ((lambda there: there.abort(), {mltcp.Code.ABORTED, mltcp.Code.CLOSED}),
                           (lambda there: self.right.close(), {mltcp.Code.ABORTED, mltcp.Code.CLOSED,
                                                              mltcp.Code.UNREACHABLE})):
            here, there = self.connect()
            receiving = here.begin_receive_into(bytearray(1))
            how(there)
            with self.assertRaises(ConnectionError) as caught:
                receiving.wait(PATIENCE)
            self.assertIn(caught.exception.code, codes)

    def test_finish_waits_for_the_end(self):
        here, there = self.connect(ordered=True)
        with self.assertRaises(mltcp.TimedOutError):
            here.wait_ended(0.1)
        sending = here.begin_send(b"x")
        with self.assertRaises(mltcp.TimedOutError):
            here.finish(0.1)  # the send cannot finish, because the peer has posted no buffer
        self.assertEqual(there.receive(1, timeout=PATIENCE), b"x")
        sending.wait(PATIENCE)
        here.finish(PATIENCE)
        there.wait_ended(PATIENCE)
        self.assertTrue(here.ended and there.ended)
        here.close()
        here.abort()

    def test_closing_ends_what_others_wait_for(self):
        here, there = self.connect()
        outcome = []

        def wait():
            try:
                there.receive(1)
            except mltcp.Error as error:
                outcome.append(error.code)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.1)
        self.right.close()
        thread.join(PATIENCE)
        self.assertEqual(outcome, [mltcp.Code.DESTROYED])
        self.right.close()
        for call in (lambda: there.send(b""), lambda: self.right.connect(self.left.address), lambda: self.right.job(),
                     lambda: self.right.accept(1)):
            with self.assertRaises(mltcp.Error) as caught:
                call()
            self.assertEqual(caught.exception.code, mltcp.Code.DESTROYED)

    def test_bad_addresses(self):
        for wrong in (b"", self.right.address[:-1], self.right.address.hex()[:-2], "zz", b"x" * 48):
            with self.assertRaises(mltcp.BadAddressError) as caught:
                self.left.connect(wrong)
            self.assertIsInstance(caught.exception, ValueError)
        self.left.connect(self.right.address.hex(), timeout=PATIENCE)
        address = self.right.address
        self.right.close()
        with self.assertRaises(ConnectionError) as caught:
            self.left.connect(address)
        self.assertEqual(caught.exception.code, mltcp.Code.UNREACHABLE)

    def test_wrong_options(self):
        with self.assertRaises(mltcp.InvalidError) as caught:
            mltcp.Endpoint("127.0.0.1", shards=0)
        self.assertIn("shards", str(caught.exception))
        with self.assertRaisesRegex(mltcp.InvalidError, "swift beta of 1.5 is out of range; give"):
            mltcp.Endpoint("127.0.0.1", congestion_control="swift", parameters="swift.beta=1.5")
        mltcp.Endpoint("127.0.0.1", congestion_control="swift", parameters="swift.beta=0.7").close()
        with self.assertRaisesRegex(TypeError, "colour"):
            mltcp.Endpoint("127.0.0.1", colour="red")
        with self.assertRaises(ValueError):
            mltcp.Endpoint("elsewhere")
        with self.assertRaises(ValueError):
            mltcp.Endpoint()
        for options, kind, words in (({"shards": "two"}, TypeError, "shards must be a whole number, but is 'two'"),
                                     ({"shards": 1.5}, TypeError, "shards must be a whole number, but is 1.5"),
                                     ({"shards": (1 << 32) + 1}, ValueError, "shards is 4294967297, which is out of"),
                                     ({"mtu": -1}, ValueError, "mtu is -1, which is out of range"),
                                     ({"congestion_control": b"cubic"}, TypeError, "congestion_control must be a text"),
                                     ({"device": 5}, TypeError, "device must be a text, but is 5"),
                                     ({"peer_timeout": "10"}, TypeError, "'10' is not a number of seconds")):
            with self.assertRaisesRegex(kind, words):
                mltcp.Endpoint("127.0.0.1", **options)
        with self.assertRaisesRegex(TypeError, "address must be a text, but is 5"):
            mltcp.Endpoint(5)

    def test_times(self):
        from mltcp.connection import nanoseconds
        forever = (1 << 63) - 1
        self.assertEqual([nanoseconds(time) for time in (0, 1.5, 1e300, float("inf"), None)],
                         [0, 1_500_000_000, forever, forever, forever])
        for wrong in (-1, float("nan")):
            self.assertRaises(ValueError, nanoseconds, wrong)

    def test_errors_are_pickled(self):
        error = pickle.loads(pickle.dumps(mltcp.TimedOutError(3, "late; wait longer")))
        self.assertEqual((error.code, error.text), (mltcp.Code.TIMED_OUT, "late; wait longer"))
        self.assertEqual(mltcp.Error(99, "of a newer library").code, 99)

    def test_a_fork_can_use_none_of_it(self):
        here, there = self.connect()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                here.send(b"x")
            except mltcp.Error as error:
                status = 0 if error.code == mltcp.Code.FORKED else 2
            self.left.close()
            os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        here.send(b"x", timeout=PATIENCE)
        self.assertEqual(there.receive(1, timeout=PATIENCE), b"x")

    def test_many_connections_come_and_go(self):
        left = mltcp.Endpoint("127.0.0.1", max_connections=4)
        right = mltcp.Endpoint("127.0.0.1", max_connections=4)
        with left, right:
            for _ in range(40):  # more connections than the queue of unread events can hold
                here = left.connect(right.address, timeout=PATIENCE)
                there = right.accept(PATIENCE)
                there.abort()
                with self.assertRaises(ConnectionError):
                    here.receive(1, timeout=PATIENCE)


class Keys(unittest.TestCase):
    def open(self, **options):
        endpoint = mltcp.Endpoint("127.0.0.1", peer_timeout=0.5, **options)
        self.addCleanup(endpoint.close)
        return endpoint

    def test_the_same_key_connects_and_another_or_none_is_told(self):
        key = os.urandom(32)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "job.key"
            file.write_text(f"mltcp-key-1 {key.hex()}\n")
            file.chmod(0o644)
            with self.assertRaisesRegex(mltcp.InvalidError, "job.key: users other than its owner may use this key file"):
                self.open(key=file)
            file.chmod(0o600)
            right = self.open(key=file)
            with unittest.mock.patch.dict(os.environ, MLTCP_KEY_FILE=str(file)):
                third = self.open()
            with open(file) as descriptor:
                fourth = self.open(key=f"fd:{descriptor.fileno()}")
        for left in (self.open(key=key), third, fourth):
            here = left.connect(right.address, timeout=PATIENCE)
            there = right.accept(PATIENCE)
            sending = here.begin_send(b"sealed", tag=1)
            self.assertEqual(there.receive(10, tag=1, timeout=PATIENCE), b"sealed")
            sending.wait(PATIENCE)
        for unknown_peer in (self.open(), self.open(key=os.urandom(32))):
            with self.assertRaisesRegex(mltcp.ConnectionEndedError, "no key in common.*same key file") as caught:
                unknown_peer.connect(right.address, timeout=PATIENCE)
            self.assertEqual(caught.exception.code, mltcp.Code.NO_KEY)

    def test_a_key_that_authenticates_only_is_for_both_ends(self):
        key = os.urandom(32)
        right = self.open(key=key, authenticate=1)
        left = self.open(key=key, authenticate=1)
        here = left.connect(right.address, timeout=PATIENCE)
        there = right.accept(PATIENCE)
        here.begin_send(b"to be read", tag=1)
        self.assertEqual(there.receive(20, tag=1, timeout=PATIENCE), b"to be read")
        report = here.report()
        self.assertEqual(report["packet_bytes"], report["agreed_packet_bytes"])
        self.assertEqual(left.report()["black_holes"], 0)
        with self.assertRaisesRegex(mltcp.ConnectionEndedError, "only one encrypts"):
            self.open(key=key).connect(right.address, timeout=PATIENCE)
        with self.assertRaisesRegex(mltcp.InvalidError, "authenticate: there is no key"):
            self.open(authenticate=1)

    def test_bytes_that_are_no_key_are_refused(self):
        with self.assertRaisesRegex(ValueError, "the key has 31 bytes; give 32"):
            self.open(key=bytes(31))
        with self.assertRaises(TypeError):
            self.open(key=5)


class Jobs(Pair):
    def test_iterations_are_followed(self):
        here, there = self.connect(ordered=True)
        with self.left.job(7) as job:  # F1
            job.attach(here)
            with job.iteration(2000):
                receiving = there.begin_receive_into(bytearray(1000))
                here.send(bytes(1000), timeout=PATIENCE)
                self.assertEqual(receiving.wait(PATIENCE).job, 7)
                self.assertEqual(job.report()["bytes_ratio"], 0.5)
                self.assertEqual(job.report()["gain"], 1.125)
            self.assertEqual(job.report()["between_iterations"], 1)
            job.set_rate(10**9)
            self.assertEqual(job.set_plan(self.left.now(), 0.1), "active")
            job.clear_plan()
            self.assertEqual(job.set_plan_from_environment(), "none")
            with unittest.mock.patch.dict(os.environ, MLTCP_SLOT_UNIX_NS="1700000000000000000"):
                with self.assertRaisesRegex(mltcp.Error, "MLTCP_SLOT_PERIOD_NS is not"):
                    job.set_plan_from_environment()
                with unittest.mock.patch.dict(os.environ, MLTCP_SLOT_PERIOD_NS="40000000"):
                    self.assertEqual(job.set_plan_from_environment(), "active")
        with self.assertRaises(mltcp.Error):
            job.report()
        with self.left.job(8, weight=1) as fair:
            self.assertEqual(fair.report()["gain"], 1)
        with self.assertRaises(ValueError):
            self.left.job(function="F9")
        self.assertEqual(here.report()["open"], 1)
        self.assertEqual(self.left.report()["connections"], 1)
        self.assertEqual(here.peer, self.right.address)


class Asyncio(Pair):
    def test_messages_and_connections(self):
        async def run():
            accepting = asyncio.ensure_future(self.right.accept_async())
            here = await self.left.connect_async(self.right.address)
            there = await asyncio.wait_for(accepting, PATIENCE)
            receives = [asyncio.ensure_future(there.receive_async(100_000, tag=i)) for i in range(20)]
            await asyncio.gather(*(here.send_async(bytes([i]) * (i * 1000), tag=i) for i in range(20)))
            for i, message in enumerate(await asyncio.wait_for(asyncio.gather(*receives), PATIENCE)):
                self.assertEqual(message, bytes([i]) * (i * 1000))
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(there.receive_async(1, tag=99), 0.05)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.right.accept_async(), 0.05)
            there.abort()
            with self.assertRaises(ConnectionError):
                await asyncio.wait_for(here.receive_async(1), PATIENCE)
            with self.assertRaises(ValueError):
                await self.left.connect_async(b"nothing")

        for _ in range(3):  # three event loops in succession use the same endpoints
            asyncio.run(run())

    def test_the_loop_goes_on_meanwhile(self):
        async def run():
            waiting = asyncio.ensure_future(self.right.accept_async())
            ticks = 0
            while ticks < 20:
                await asyncio.sleep(0.001)
                ticks += 1
            self.assertFalse(waiting.done())
            self.right.close()
            with self.assertRaises(mltcp.Error):
                await waiting

        asyncio.run(asyncio.wait_for(run(), PATIENCE))


if __name__ == "__main__":
    unittest.main()
