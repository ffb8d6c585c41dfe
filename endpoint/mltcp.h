/* MLTCP for programs in C, and in every language that can call C: endpoints that exchange messages with others, over
 * UDP sockets or the devices of DPDK, for training jobs. One header and one library, libmltcp.so.1.
 *
 *   mltcp_endpoint_options options;
 *   mltcp_endpoint_options_init(&options);
 *   options.address = "10.0.0.1";                        an address of this machine
 *   mltcp_endpoint* endpoint;
 *   if (mltcp_endpoint_open(&options, &endpoint) != MLTCP_OK) die(mltcp_last_error());
 *   mltcp_connect(endpoint, blob_of_peer, blob_size, MLTCP_TAGGED, NULL, &peer, NULL);
 *   mltcp_send_tagged(endpoint, peer, gradient, bytes, 7, NULL, &operation);
 *   mltcp_completion end;
 *   mltcp_completion_init(&end);
 *   if (mltcp_wait(endpoint, operation, &end, 10000000000) != MLTCP_OK || end.code != MLTCP_OK) ...
 *
 * docs/reference/c-interface.md is the guide. The C++ interface (endpoint/endpoint.h) describes each function in full;
 * this header adds what is special to C.
 *
 * Codes. Functions return an mltcp_code; 0 is success. mltcp_last_error() returns one line for people, "cause; cure",
 * for this thread's last call that did not return MLTCP_OK. No exception leaves the library, and it never ends the
 * process. A missing pointer is MLTCP_INVALID. When a call fails, it sets its results to 0 or NULL.
 *
 * Handles. Endpoints and queues are opaque pointers. The library remembers destroyed ones: calls with them return
 * MLTCP_DESTROYED. All other handles are numbers; after their object is gone, calls with them return MLTCP_UNKNOWN.
 * 0 is never a valid handle.
 *
 * Structs begin with struct_size, which their _init function sets and the library reads first, so that program and
 * library may have different versions. A shorter struct comes from an older program: members that it lacks have their
 * defaults when read, and are left out when written. A longer struct comes from a newer program: members that this
 * library does not know must be 0 when it reads them (else MLTCP_INVALID, because it would ignore a setting), and it
 * writes 0 into them. A size that is not a multiple of 8, is below 8 or above 4096 is MLTCP_INVALID. Members are never
 * moved or removed.
 *
 * Threads. Any thread may call any function at any time. The exceptions are mltcp_endpoint_destroy() and
 * mltcp_queue_destroy(): call them when no other thread uses the object or is about to. Callbacks run on the driving
 * thread (one of the library's with MLTCP_DRIVEN_BY_THREADS). They may call every function that does not wait, must be
 * short, and must not leave by an exception or longjmp(). Functions that wait return MLTCP_UNSUPPORTED in a callback.
 *
 * Memory. The program must not change a message or use a buffer until its operation has ended. Calls copy the strings
 * and structs that they receive.
 *
 * Fork. After fork(2) calls in the child return MLTCP_FORKED. The child may destroy its handles, without effect on the
 * parent, and may open endpoints of its own.
 */
#ifndef MLTCP_MLTCP_H
#define MLTCP_MLTCP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MLTCP_API __attribute__((visibility("default")))
#else
#define MLTCP_API
#endif

/* ---- Version ---------------------------------------------------------------------------------------------------- */

/* The version of this interface. MAJOR is the library's soname and grows with incompatible changes; MINOR grows with
 * additions. */
#define MLTCP_VERSION_MAJOR 1
#define MLTCP_VERSION_MINOR 4
/* To compare with mltcp_version(). */
#define MLTCP_VERSION (MLTCP_VERSION_MAJOR << 16 | MLTCP_VERSION_MINOR)

/* The version of the loaded library: MAJOR << 16 | MINOR. */
MLTCP_API uint32_t mltcp_version(void);
/* "mltcp 0.1.0, interface 1.4". */
MLTCP_API const char* mltcp_version_text(void);
/* The forms of device names that this library can open: "udp:, udp:IFACE, udp:IP; ...". */
MLTCP_API const char* mltcp_device_forms(void);

/* ---- Codes ------------------------------------------------------------------------------------------------------ */

/* Codes that calls return and operations end with. Later versions may add some. */
typedef int32_t mltcp_code;
enum {
  MLTCP_OK = 0,
  MLTCP_TRUNCATED = 1,    /* received, but longer than the buffer, which holds the beginning */
  MLTCP_NOTHING = 2,      /* nothing was found */
  MLTCP_TIMED_OUT = 3,    /* the time limit has passed */
  MLTCP_CANCELLED = 4,    /* by mltcp_cancel() */
  MLTCP_TOO_LATE = 5,     /* the operation cannot be cancelled any more */
  MLTCP_QUEUE_FULL = 6,   /* max_operations are under way: post again after one has ended */
  MLTCP_NO_ROOM = 7,      /* the configured number of connections, jobs or queues is in use */
  MLTCP_CLOSED = 8,       /* the connection was closed, here or by the peer */
  MLTCP_REFUSED = 9,      /* no endpoint at that address accepts such connections */
  MLTCP_UNREACHABLE = 10, /* no packet arrived from the peer for peer_timeout_ns */
  MLTCP_ABORTED = 11,     /* the connection was ended at once, here or by the peer */
  MLTCP_WRONG_VERSION = 12,
  MLTCP_WRONG_PEER = 13,  /* another endpoint now uses that address, for example after a restart */
  MLTCP_PROTOCOL = 14,    /* the peer broke the protocol */
  MLTCP_BAD_ADDRESS = 15, /* the blob is not an address: incomplete, damaged, or something else */
  MLTCP_INVALID = 16,     /* an argument is out of range */
  MLTCP_UNKNOWN = 17,     /* the handle names nothing */
  MLTCP_TOO_LONG = 18,    /* above 4 GiB - 1 */
  MLTCP_UNSUPPORTED = 19, /* not for this kind of connection, not in a callback, or not with this driving */
  MLTCP_FORKED = 20,      /* another process opened the endpoint, and this one is its fork */
  MLTCP_DESTROYED = 21,   /* the endpoint was closed, or the handle destroyed */
  MLTCP_FAILED = 22,      /* the system failed, or memory ran out */
  MLTCP_NO_KEY = 23       /* since 1.3: the ends have no key in common: one has none or another one, or only one
                             encrypts */
};

/* "timed_out". Never NULL. */
MLTCP_API const char* mltcp_code_name(mltcp_code code);
/* One line "cause; cure". Never NULL. */
MLTCP_API const char* mltcp_code_text(mltcp_code code);
/* One line "cause; cure" about this thread's last call that did not return MLTCP_OK, often with more details than its
 * code. "" if there was none. Valid until the thread's next call. */
MLTCP_API const char* mltcp_last_error(void);

/* ---- Endpoints -------------------------------------------------------------------------------------------------- */

typedef struct mltcp_endpoint mltcp_endpoint;
typedef struct mltcp_queue mltcp_queue;
typedef uint64_t mltcp_connection;
typedef uint64_t mltcp_operation;
typedef uint64_t mltcp_job;
typedef uint64_t mltcp_memory;
typedef uint64_t mltcp_message; /* an unexpected message that mltcp_peek() has taken */

/* Any connection; for mltcp_receive_tagged() and mltcp_peek(). */
#define MLTCP_ANY_CONNECTION UINT64_MAX
/* A mask that compares every bit of the tag. */
#define MLTCP_WHOLE_TAG UINT64_MAX
/* No time limit. Times are nanoseconds. */
#define MLTCP_FOREVER INT64_MAX

/* mltcp_completion::kind */
enum {
  MLTCP_CONNECTED = 1, /* mltcp_connect() has succeeded or failed */
  MLTCP_ACCEPTED = 2,  /* event: a peer has connected */
  MLTCP_SENT = 3,      /* in the peer's buffer; a tagged message may be stored at the peer for a receive */
  MLTCP_RECEIVED = 4,
  MLTCP_PEEKED = 5,
  MLTCP_ENDED = 6 /* event: the connection has ended */
};
/* mltcp_connect(): how messages find receives */
enum {
  MLTCP_ORDERED = 1, /* the n-th message sent arrives in the n-th buffer posted: mltcp_send(), mltcp_receive() */
  MLTCP_TAGGED = 2   /* messages match receives by tag: mltcp_send_tagged(), mltcp_receive_tagged(), mltcp_peek() */
};
/* mltcp_endpoint_options::driving */
enum {
  MLTCP_DRIVEN_BY_THREADS = 0, /* the library's own, one for each shard */
  MLTCP_DRIVEN_BY_CALLER = 1   /* in mltcp_progress() and in calls that wait */
};
/* mltcp_endpoint_options::idle: what a driving thread does while it has no work */
enum { MLTCP_IDLE_SPIN = 0, MLTCP_IDLE_PAUSE = 1, MLTCP_IDLE_SLEEP = 2 };

/* The end of an operation, or an event. */
typedef struct mltcp_completion {
  uint32_t struct_size;
  int32_t kind;
  mltcp_code code;
  int32_t connection_kind;
  uint64_t operation;  /* 0 for events */
  uint64_t connection; /* for MLTCP_ANY_CONNECTION: the message's connection, 0 without a message */
  uint64_t tag;
  uint64_t bytes;   /* length of the message, even if it is longer than the buffer */
  uint64_t message; /* mltcp_peek() with take 1 */
  void* context;    /* as posted */
  uint32_t job;     /* received: the number of the sender's job, if has_job is 1 */
  uint16_t iteration;
  uint8_t has_job;
  uint8_t cause;       /* for mltcp_completion_text() */
  uint8_t peer_ip[16]; /* IPv4 as ::ffff:a.b.c.d */
  uint16_t peer_port;  /* 0: the peer is not known */
  uint8_t reserved[6];
} mltcp_completion;

/* Called once, when the operation has ended; `completion` is valid until it returns. */
typedef void (*mltcp_callback)(void* context, const mltcp_completion* completion);

typedef struct mltcp_endpoint_options {
  uint32_t struct_size;
  int32_t driving;     /* MLTCP_DRIVEN_BY_THREADS, or _CALLER */
  const char* device;  /* "udp:", "udp:eth0", a port of DPDK; NULL: "udp:" */
  const char* address; /* this host's address, as peers reach it: "10.0.0.1" or "10.0.0.1:62400"; no port: a free
                          one. NULL: the address in the device's name, as in "udp:10.0.0.1" */
  const char* gateway; /* for devices whose packets the kernel does not route; NULL: none */
  const char* congestion_control; /* "cubic", or "./mine.so:mine" to load one; NULL: "reno" */
  const char* cores;              /* the CPU of the driving thread; NULL: not bound, or the first usable one */
  uint32_t prefix_bits;           /* of this host's network, default 24 */
  uint32_t shards;                /* 1 to 256, default 1: threads, sockets, UDP ports */
  int32_t idle;                   /* default MLTCP_IDLE_SLEEP */
  uint32_t accepts;               /* 1, the default: peers may connect */
  uint32_t mtu;                   /* 0: the interface's */
  uint32_t queues;                /* of a DPDK device, default 1 */
  int64_t peer_timeout_ns;     /* without packets for this long, a peer's connections end; 10 ms to 1 h, default 10 s */
  uint32_t max_connections;    /* for each shard, like all bounds; 1 to 65536, default 256 */
  uint32_t max_operations;     /* 1 to 2^20, default 4096 */
  uint32_t max_jobs;           /* 0 to 1024, default 64 */
  uint32_t max_memory_regions; /* 0 to 64, default 64 */
  uint64_t eager_limit;        /* longer tagged messages wait at the sender for their receive; default 4096 */
  uint32_t unexpected_messages;  /* for one connection, 1 to 16384, default 128 */
  uint32_t control_frames;       /* 4 to 1024, default 32 */
  uint32_t max_sends;            /* for an ordered connection, 1 to 65536, default 1024 */
  uint32_t max_receives;         /* the same */
  uint64_t max_rate_bps;         /* for one connection, on the wire; 0, the default: no limit */
  uint32_t ecn;                  /* 1: switches may mark packets (ECN); dctcp and dcqcn need it; default 0 */
  uint32_t full_integrity;       /* 1: CRC-32C over the payload as well; default 0 */
  uint32_t priority;             /* 0, the default, to 7 */
  uint32_t memory_mb;            /* for DPDK and all endpoints on it: the first endpoint's value counts; 0: enough for
                                    eight endpoints like it */
  mltcp_callback event_callback; /* receives events; NULL: they are in mltcp_endpoint_events() */
  void* event_context;
  /* Since 1.1. */
  const char* parameters; /* of the congestion control, as `mltcp algorithms` lists them, such as
                             "swift.base_target=40 us, swift.beta=0.7"; NULL: defaults */
  /* Since 1.3: the job's key; set at most one of the two. Packets are encrypted and authenticated, and only peers with
   * the same key can connect. Both NULL: the key of MLTCP_KEY_FILE (docs/explanation/security.md), else none: then only
   * peers without a key can connect. */
  const char* key;       /* the path of a key file made by `mltcp key`, or "fd:3", a descriptor */
  const void* key_bytes; /* MLTCP_KEY_BYTES random bytes that the program provides */
  /* Since 1.4. */
  uint32_t authenticate; /* 1: authenticate packets, but do not encrypt them; both ends must agree. 0, the default: the
                            same only if MLTCP_KEY_FILE names the key and MLTCP_AUTHENTICATE is 1 */
  uint32_t reserved;
} mltcp_endpoint_options;

/* The size of mltcp_endpoint_options::key_bytes. */
#define MLTCP_KEY_BYTES 32

/* How an operation reports its end: by `callback` if it is not NULL, else in `queue` if it is not NULL, else to
 * mltcp_wait() or mltcp_test(). A null pointer to options means a struct of zeros. */
typedef struct mltcp_post_options {
  uint32_t struct_size;
  uint32_t reserved;
  mltcp_callback callback;
  mltcp_queue* queue;    /* of the same endpoint; must outlive the operation */
  void* context;         /* returned in the completion */
  int64_t time_limit_ns; /* after this time it ends with MLTCP_TIMED_OUT; 0 and MLTCP_FOREVER: no limit */
} mltcp_post_options;

static inline void mltcp_completion_init(mltcp_completion* completion) {
  memset(completion, 0, sizeof *completion);
  completion->struct_size = (uint32_t)sizeof *completion;
}
static inline void mltcp_post_options_init(mltcp_post_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_size = (uint32_t)sizeof *options;
}

/* Sets all defaults. Call it as mltcp_endpoint_options_init(&options), which passes the struct's size. */
MLTCP_API mltcp_code mltcp_endpoint_options_init_sized(mltcp_endpoint_options* options, size_t struct_size);
#define mltcp_endpoint_options_init(options) mltcp_endpoint_options_init_sized((options), sizeof *(options))

/* Opens an endpoint; peers can connect when it returns. MLTCP_INVALID: the options are wrong. MLTCP_FAILED: the machine
 * is not ready. mltcp_last_error() says why. Several threads may open endpoints at once. */
MLTCP_API mltcp_code mltcp_endpoint_open(const mltcp_endpoint_options* options, mltcp_endpoint** endpoint);
/* Aborts all connections, ends all operations with MLTCP_DESTROYED, and waits for that for up to 1 s (in a callback it
 * does not wait). Afterwards every call returns MLTCP_DESTROYED. May be called again. */
MLTCP_API mltcp_code mltcp_endpoint_close(mltcp_endpoint* endpoint);
/* The same, and frees the endpoint. Queues may outlive it. In a callback of the endpoint it does not wait: the threads
 * finish after the callback has returned. Ignores NULL. */
MLTCP_API mltcp_code mltcp_endpoint_destroy(mltcp_endpoint* endpoint);

/* Room for any address, and for one in hexadecimal with its terminating zero. */
#define MLTCP_ADDRESS_BYTES 64
#define MLTCP_ADDRESS_HEX_BYTES 129

/* The address that peers connect to: a blob of up to MLTCP_ADDRESS_BYTES bytes, which the program hands to them by any
 * means. Constant. `size`: in, the room at `blob`; out, the bytes written. MLTCP_TOO_LONG: not enough room. */
MLTCP_API mltcp_code mltcp_endpoint_address(mltcp_endpoint* endpoint, void* blob, size_t* size);
/* An address as text for command lines and environments, and back. `room` and `size` as above. */
MLTCP_API mltcp_code mltcp_address_to_hex(const void* blob, size_t size, char* hex, size_t room);
MLTCP_API mltcp_code mltcp_address_from_hex(const char* hex, void* blob, size_t* size);
/* "10.0.0.1:62400 (2 shards, endpoint 5f3c9a01)". Checks the address: MLTCP_BAD_ADDRESS, MLTCP_WRONG_VERSION. */
MLTCP_API mltcp_code mltcp_address_text(const void* blob, size_t size, char* text, size_t room);
/* A description of the datapath, for people. Cut if `room` is too small, like all texts. */
MLTCP_API mltcp_code mltcp_endpoint_description(mltcp_endpoint* endpoint, char* text, size_t room);
/* The reason of the last MLTCP_FAILED; "" if there was none. */
MLTCP_API mltcp_code mltcp_endpoint_failure(mltcp_endpoint* endpoint, char* text, size_t room);
/* The endpoint's clock. */
MLTCP_API mltcp_code mltcp_now(mltcp_endpoint* endpoint, int64_t* now_ns);

/* ---- Driving: MLTCP_DRIVEN_BY_CALLER ----------------------------------------------------------------------------- */

/* Drives each shard once that no other thread is driving; does not wait. `ended`, which may be NULL: the number of
 * operations that ended plus events. */
MLTCP_API mltcp_code mltcp_progress(mltcp_endpoint* endpoint, size_t* ended);
/* A descriptor for epoll(7), only to wait on. Once mltcp_endpoint_arm() has returned MLTCP_NOTHING, it becomes readable
 * when mltcp_progress() has work. MLTCP_UNSUPPORTED if there is none; with MLTCP_DRIVEN_BY_THREADS use
 * mltcp_queue_file(). */
MLTCP_API mltcp_code mltcp_endpoint_file(mltcp_endpoint* endpoint, int* file);
/* MLTCP_NOTHING: the caller may sleep on the file. MLTCP_OK: call mltcp_progress() first. */
MLTCP_API mltcp_code mltcp_endpoint_arm(mltcp_endpoint* endpoint);

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* Begins to connect; ends with MLTCP_CONNECTED. Operations may be posted on `connection` at once. `operation` may be
 * NULL: then, without callback and queue, the event MLTCP_ENDED and the operations posted report a failure. */
MLTCP_API mltcp_code mltcp_connect(mltcp_endpoint* endpoint, const void* blob, size_t size, int32_t kind,
                                   const mltcp_post_options* options, mltcp_connection* connection,
                                   mltcp_operation* operation);
/* Waits for the next peer that connects; a limit of 0 looks once. Removes events from mltcp_endpoint_events() until it
 * finds one, and drops MLTCP_ENDED: for programs that learn of ends by their operations. Other programs read that queue
 * themselves. `end`, which may be NULL: the event. */
MLTCP_API mltcp_code mltcp_accept(mltcp_endpoint* endpoint, mltcp_connection* connection, mltcp_completion* end,
                                  int64_t limit_ns);
/* A connection that has ended keeps its handle until mltcp_close() or mltcp_abort(), which return MLTCP_OK, or until at
 * least max_connections later connections. Calls that post on it return the code with which it ended, with the cause in
 * mltcp_last_error(). */

/* Ends the connection when the peer has received or stored everything that was sent. The peer's sends end with MLTCP_OK
 * if their message has arrived here, else with MLTCP_CLOSED. */
MLTCP_API mltcp_code mltcp_close(mltcp_endpoint* endpoint, mltcp_connection connection);
/* Ends the connection at once, and its operations with MLTCP_ABORTED. */
MLTCP_API mltcp_code mltcp_abort(mltcp_endpoint* endpoint, mltcp_connection connection);
/* The peer's address, as mltcp_endpoint_address() writes it. MLTCP_NOTHING before the peer has introduced itself. */
MLTCP_API mltcp_code mltcp_peer(mltcp_endpoint* endpoint, mltcp_connection connection, void* blob, size_t* size);

/* ---- Messages ---------------------------------------------------------------------------------------------------- */
/* Messages have 0 bytes to 4 GiB - 1. `options` may be NULL; `operation` may be NULL if they name a callback or queue.
 */

/* Ordered connections. The tag is returned in the completion and not sent. */
MLTCP_API mltcp_code mltcp_send(mltcp_endpoint* endpoint, mltcp_connection connection, const void* message, size_t size,
                                uint64_t tag, const mltcp_post_options* options, mltcp_operation* operation);
MLTCP_API mltcp_code mltcp_receive(mltcp_endpoint* endpoint, mltcp_connection connection, void* buffer, size_t size,
                                   uint64_t tag, const mltcp_post_options* options, mltcp_operation* operation);

/* Tagged connections. A receive takes the earliest message with (its tag & mask) == (tag & mask). */
MLTCP_API mltcp_code mltcp_send_tagged(mltcp_endpoint* endpoint, mltcp_connection connection, const void* message,
                                       size_t size, uint64_t tag, const mltcp_post_options* options,
                                       mltcp_operation* operation);
MLTCP_API mltcp_code mltcp_receive_tagged(mltcp_endpoint* endpoint, mltcp_connection connection, void* buffer,
                                          size_t size, uint64_t tag, uint64_t mask, const mltcp_post_options* options,
                                          mltcp_operation* operation);
/* Finds the earliest message that such a receive would take now. Ends at once, with its tag, length and connection, or
 * with MLTCP_NOTHING. With `take` 1, only mltcp_receive_message() can receive it afterwards. */
MLTCP_API mltcp_code mltcp_peek(mltcp_endpoint* endpoint, mltcp_connection connection, uint64_t tag, uint64_t mask,
                                int32_t take, const mltcp_post_options* options, mltcp_operation* operation);
/* Receives a message that mltcp_peek() has taken. A buffer of 0 bytes drops it. */
MLTCP_API mltcp_code mltcp_receive_message(mltcp_endpoint* endpoint, mltcp_message message, void* buffer, size_t size,
                                           const mltcp_post_options* options, mltcp_operation* operation);

/* ---- Operations -------------------------------------------------------------------------------------------------- */

/* Requests an early end. The operation ends with MLTCP_CANCELLED, or as it would have if it is too late. */
MLTCP_API mltcp_code mltcp_cancel(mltcp_endpoint* endpoint, mltcp_operation operation);
/* Waits for the end of an operation without callback and queue. A limit of 0 looks once, a negative one is
 * MLTCP_INVALID. MLTCP_OK: `end`, which may be NULL, says how it ended, and the handle is no longer valid.
 * MLTCP_TIMED_OUT: the operation continues. Only one thread may wait for an operation. */
MLTCP_API mltcp_code mltcp_wait(mltcp_endpoint* endpoint, mltcp_operation operation, mltcp_completion* end,
                                int64_t limit_ns);
/* As mltcp_wait() with a limit of 0, but does not drive. */
MLTCP_API mltcp_code mltcp_test(mltcp_endpoint* endpoint, mltcp_operation operation, mltcp_completion* end);
/* The program will not wait for this operation. */
MLTCP_API mltcp_code mltcp_forget(mltcp_endpoint* endpoint, mltcp_operation operation);
/* One line, such as "send of 10 bytes, tag 0x7, to 10.0.0.2:62400: " with cause and cure. */
MLTCP_API mltcp_code mltcp_completion_text(const mltcp_completion* completion, char* text, size_t room);

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

/* Creates a queue for 1 to 2^20 completions. It never loses one: posting without a free place is MLTCP_QUEUE_FULL. */
MLTCP_API mltcp_code mltcp_queue_create(mltcp_endpoint* endpoint, uint32_t places, mltcp_queue** queue);
/* The queue of events. It belongs to the endpoint. */
MLTCP_API mltcp_code mltcp_endpoint_events(mltcp_endpoint* endpoint, mltcp_queue** queue);
/* Call it when no operation that names the queue is under way, before or after its endpoint ends. Ignores NULL. */
MLTCP_API mltcp_code mltcp_queue_destroy(mltcp_queue* queue);
/* Moves up to `room` completions, oldest first, to `ends`, and sets `count`. struct_size of the first element must be
 * set. MLTCP_OK even if there is none. Does not drive. */
MLTCP_API mltcp_code mltcp_queue_poll(mltcp_queue* queue, mltcp_completion* ends, size_t room, size_t* count);
/* The same, but waits for the first completion; MLTCP_TIMED_OUT if none comes. */
MLTCP_API mltcp_code mltcp_queue_wait(mltcp_queue* queue, mltcp_completion* ends, size_t room, size_t* count,
                                      int64_t limit_ns);
/* A descriptor for poll(2) and epoll(7), only to wait on: readable from the first completion after mltcp_queue_arm().
 */
MLTCP_API mltcp_code mltcp_queue_file(mltcp_queue* queue, int* file);
/* MLTCP_NOTHING: the queue is empty, and the caller may sleep on the file. MLTCP_OK: it is not; poll first. */
MLTCP_API mltcp_code mltcp_queue_arm(mltcp_queue* queue);

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */
/* The congestion control of a connection follows the iterations of the job that it is attached to. Functions of jobs
 * wait for other threads, usually for less than a millisecond; mltcp_job_begin_iteration() and
 * mltcp_job_end_iteration() do not wait. */

typedef struct mltcp_job_options {
  uint32_t struct_size;
  uint32_t number;       /* chosen by the program; data packets carry it */
  const char* function;  /* multiplies the increase step: "F1" to "F6" (docs/reference/algorithms.md), or "polynomial
                            0.25 1.75 0"; NULL: `weight` does */
  double weight;         /* constant gain of the increase step, above 0; 0: 1, plain fairness */
  uint64_t max_rate_bps; /* of the job's connections on one shard together; 0: no limit */
  uint32_t learn_iterations; /* 1: learn them from the traffic until mltcp_job_begin_iteration() gives a size */
  uint32_t reserved;
} mltcp_job_options;

/* mltcp_job_plan::correction */
enum { MLTCP_CORRECT_AT_ONCE = 0, MLTCP_CORRECT_GRADUALLY = 1 };
/* The state of a job's plan. */
enum {
  MLTCP_PLAN_NONE = 0,
  MLTCP_PLAN_ACTIVE = 1,
  MLTCP_PLAN_REMOVED = 2,
  MLTCP_PLAN_STALE = 3,
  MLTCP_PLAN_INVALID = 4,
  MLTCP_PLAN_MISFIT = 5,
  MLTCP_PLAN_NO_ITERATIONS = 6,
  MLTCP_PLAN_UNKNOWN_JOB = 7
};

/* When a job's iterations may begin to send: slot + k * period (docs/explanation/plans.md). Times are those of
 * mltcp_now(). */
typedef struct mltcp_job_plan {
  uint32_t struct_size;
  int32_t correction; /* default MLTCP_CORRECT_AT_ONCE */
  int64_t slot_ns;
  int64_t period_ns;
  double tolerance;       /* lateness that does not count as drift, as a share of the period, 0 to 0.5; default 0.05 */
  double gradual_step;    /* longest wait per iteration, as a share of the period, 0.001 to 1; default 0.1 */
  int64_t valid_until_ns; /* default MLTCP_FOREVER */
  int64_t clock_bound_ns; /* the largest difference between the clocks of the job's hosts */
} mltcp_job_plan;

static inline void mltcp_job_options_init(mltcp_job_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_size = (uint32_t)sizeof *options;
}
static inline void mltcp_job_plan_init(mltcp_job_plan* plan) {
  memset(plan, 0, sizeof *plan);
  plan->struct_size = (uint32_t)sizeof *plan;
  plan->tolerance = 0.05;
  plan->gradual_step = 0.1;
  plan->valid_until_ns = MLTCP_FOREVER;
}

/* `options` may be NULL: plain fairness. */
MLTCP_API mltcp_code mltcp_job_create(mltcp_endpoint* endpoint, const mltcp_job_options* options, mltcp_job* job);
/* The job's connections continue without a job. */
MLTCP_API mltcp_code mltcp_job_remove(mltcp_endpoint* endpoint, mltcp_job job);
/* The connection carries the job's data from now on. */
MLTCP_API mltcp_code mltcp_job_attach(mltcp_endpoint* endpoint, mltcp_job job, mltcp_connection connection);
/* Begins the next iteration, in which the job will send `bytes` on all its connections together; 0: not known. */
MLTCP_API mltcp_code mltcp_job_begin_iteration(mltcp_endpoint* endpoint, mltcp_job job, uint64_t bytes);
MLTCP_API mltcp_code mltcp_job_end_iteration(mltcp_endpoint* endpoint, mltcp_job job);
/* `state`, which may be NULL: MLTCP_PLAN_ACTIVE, or why the plan does not apply. */
MLTCP_API mltcp_code mltcp_job_set_plan(mltcp_endpoint* endpoint, mltcp_job job, const mltcp_job_plan* plan,
                                        int32_t* state);
MLTCP_API mltcp_code mltcp_job_clear_plan(mltcp_endpoint* endpoint, mltcp_job job);
/* Since 1.2. Reads the slots that a cluster's scheduler sets in the environment (MLTCP_SLOT_UNIX_NS,
 * MLTCP_SLOT_PERIOD_NS, MLTCP_CLOCK_BOUND_NS: docs/reference/environment.md), converted to the endpoint's clock; for
 * jobs whose iterations the program marks. MLTCP_NOTHING: none are set, and `plan` is unchanged. MLTCP_INVALID: they
 * are wrong. */
MLTCP_API mltcp_code mltcp_plan_from_environment(mltcp_endpoint* endpoint, mltcp_job_plan* plan);
MLTCP_API mltcp_code mltcp_job_set_rate(mltcp_endpoint* endpoint, mltcp_job job, uint64_t max_rate_bps);

/* ---- Reports ----------------------------------------------------------------------------------------------------- */

typedef struct mltcp_job_report {
  uint32_t struct_size;
  uint32_t connections;         /* of the transport: a tagged connection has two */
  uint64_t iteration;           /* begun or learned; 0 before the first */
  uint64_t bytes_sent;          /* delivered in this iteration */
  uint64_t bytes_per_iteration; /* 0: not known */
  double bytes_ratio;
  double gain; /* of the increase step */
  uint32_t between_iterations;
  int32_t plan_state;
  uint64_t on_slot;
  uint64_t corrections;
  double cwnd_bytes;
  uint64_t pacing_rate_bps;
  uint64_t delivery_rate_bps;
  int64_t smoothed_rtt_ns;
  int64_t min_rtt_ns;
  uint64_t packets_sent;
  uint64_t marked_packets;
  uint64_t lost_packets;
  uint64_t retransmitted_packets;
} mltcp_job_report;

typedef struct mltcp_connection_report {
  uint32_t struct_size;
  int32_t kind;
  uint32_t open;
  uint32_t shard;
  uint32_t unexpected_messages; /* tagged: stored here for a later receive */
  uint32_t held_back;           /* tagged: sends that wait for credit */
  uint64_t packets_sent;        /* of the transport's connection that carries the data, like all that follow */
  uint64_t bytes_sent;
  uint64_t packets_received;
  uint64_t retransmitted_packets;
  uint64_t lost_packets;
  uint64_t spurious_losses;
  uint64_t duplicate_packets;
  uint64_t congestion_events;
  uint64_t marked_packets;
  uint64_t in_flight_bytes;
  double cwnd_bytes;
  uint64_t pacing_rate_bps;
  uint64_t delivery_rate_bps;
  int64_t smoothed_rtt_ns;
  int64_t min_rtt_ns;
  /* Since 1.1. */
  uint32_t has_ended; /* 1: see end_code */
  mltcp_code end_code;
  /* Since 1.4: packet sizes, without the headers of IP and UDP. */
  uint32_t packet_bytes;        /* of a full packet now */
  uint32_t agreed_packet_bytes; /* that both ends accept; above packet_bytes if the path carries less */
} mltcp_connection_report;

/* Counters since the endpoint was opened. */
typedef struct mltcp_endpoint_report {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t operations; /* that have ended */
  uint64_t posts_in_place;
  uint64_t connections; /* current number */
  uint64_t broken_protocols;
  uint64_t unintroduced;
  uint64_t wakeups;
  uint64_t packets_received;
  uint64_t packets_sent;
  uint64_t rejected_packets; /* truncated, damaged or malformed, or of another protocol */
  uint64_t unknown_connection;
  uint64_t beyond_credit;
  uint64_t refused_connects;
  uint64_t missed_packets; /* dropped here for lack of room */
  uint64_t unsent_packets;
  /* Since 1.2: protection against attackers (docs/reference/limits.md). */
  uint64_t forged_packets; /* right connection, wrong tag */
  uint64_t beyond_holes;   /* packets that would leave more gaps than there is memory for */
  uint64_t retries_sent;   /* requests to a connecting peer to prove its address */
  uint64_t unproven_ended; /* connections that ended because their peer did not answer ACCEPT */
  uint64_t resets_sent;
  uint64_t resets_taken; /* connections that ended because their peer had restarted */
  uint64_t violations;   /* acknowledgements of data that was never sent */
  /* Since 1.4: packet sizes on the path. */
  uint64_t black_holes;      /* paths that drop long packets: their connections continue with shorter ones */
  uint64_t size_probes_sent; /* packets that test a size */
  uint64_t size_probes_lost;
} mltcp_endpoint_report;

static inline void mltcp_job_report_init(mltcp_job_report* report) {
  memset(report, 0, sizeof *report);
  report->struct_size = (uint32_t)sizeof *report;
}
static inline void mltcp_connection_report_init(mltcp_connection_report* report) {
  memset(report, 0, sizeof *report);
  report->struct_size = (uint32_t)sizeof *report;
}
static inline void mltcp_endpoint_report_init(mltcp_endpoint_report* report) {
  memset(report, 0, sizeof *report);
  report->struct_size = (uint32_t)sizeof *report;
}

MLTCP_API mltcp_code mltcp_report_job(mltcp_endpoint* endpoint, mltcp_job job, mltcp_job_report* report);
MLTCP_API mltcp_code mltcp_report_connection(mltcp_endpoint* endpoint, mltcp_connection connection,
                                             mltcp_connection_report* report);
MLTCP_API mltcp_code mltcp_report_endpoint(mltcp_endpoint* endpoint, mltcp_endpoint_report* report);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Lets devices read `memory` (whole pages), so that messages in it are sent without a copy. Does nothing if the CPU
 * reads for the datapath. The memory must outlive the registration, and the registration the messages. */
MLTCP_API mltcp_code mltcp_memory_register(mltcp_endpoint* endpoint, void* memory, size_t size, mltcp_memory* handle);
MLTCP_API mltcp_code mltcp_memory_unregister(mltcp_endpoint* endpoint, mltcp_memory handle);

#ifdef __cplusplus
}
#endif

#endif /* MLTCP_MLTCP_H */
