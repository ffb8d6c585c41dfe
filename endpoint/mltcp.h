/* C interface of MLTCP, for programs in C and in every language that can call C. Endpoints exchange messages for
 * training jobs, over UDP sockets or DPDK devices. Programs need this header and the library libmltcp.so.1.
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
 * process. A call returns MLTCP_INVALID if a required pointer is NULL. A call that fails sets its results to 0 or NULL.
 *
 * Handles. Endpoints and queues are opaque pointers. Calls with a destroyed endpoint or queue return MLTCP_DESTROYED.
 * All other handles are numbers. When the object of a handle is gone, calls with that handle return MLTCP_UNKNOWN.
 * 0 is never a valid handle.
 *
 * Structs begin with struct_size, which their _init function sets and the library reads first. So the program and the
 * library may have different versions. The struct of an older program lacks some members. The library uses the
 * defaults of these members, and does not write them. The struct of a newer program has members that this library does
 * not know. The program must set these to 0 in a struct that the library reads, or the call returns MLTCP_INVALID,
 * because the library would ignore a setting. In a struct that the library writes, the library sets them to 0.
 * struct_size must be a multiple of 8, from 8 to 4096, or the call returns MLTCP_INVALID. New versions never move or
 * remove members.
 *
 * Threads. Any thread may call any function at any time, with two exceptions: call mltcp_endpoint_destroy() and
 * mltcp_queue_destroy() only when no other thread uses the object or will use it. Callbacks run on the driving thread,
 * which with MLTCP_DRIVEN_BY_THREADS is a thread of the library. A callback may call every function that does not wait,
 * must be short, and must not leave by an exception or longjmp(). Functions that wait return MLTCP_UNSUPPORTED in a
 * callback.
 *
 * Memory. The program must not change a message or use a buffer until its operation has ended. Calls copy the strings
 * and structs that they receive.
 *
 * Fork. After fork(2), calls in the child return MLTCP_FORKED. The child may destroy its handles, which has no effect
 * on the parent, and may open new endpoints.
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

/* ---- Version ---- */

/* The version of this interface. MAJOR is the number in the library's soname and increases with incompatible changes.
 * MINOR increases with additions. */
#define MLTCP_VERSION_MAJOR 1
#define MLTCP_VERSION_MINOR 4
/* The version of this header, for comparison with mltcp_version(). */
#define MLTCP_VERSION (MLTCP_VERSION_MAJOR << 16 | MLTCP_VERSION_MINOR)

/* Returns the version of the loaded library: MAJOR << 16 | MINOR. */
MLTCP_API uint32_t mltcp_version(void);
/* Returns the versions of the library and of its interface, such as "mltcp 0.1.0, interface 1.4". */
MLTCP_API const char* mltcp_version_text(void);
/* Returns the forms of device names that this library can open: "udp:, udp:IFACE, udp:IP; ...". */
MLTCP_API const char* mltcp_device_forms(void);

/* ---- Codes ---- */

/* Codes that calls return and that operations end with. Later versions may add codes. */
typedef int32_t mltcp_code;
enum {
  MLTCP_OK = 0,
  MLTCP_TRUNCATED = 1,    /* the message was received, but the buffer holds only its beginning */
  MLTCP_NOTHING = 2,      /* the call found no message or event */
  MLTCP_TIMED_OUT = 3,    /* the time limit has passed */
  MLTCP_CANCELLED = 4,    /* mltcp_cancel() ended the operation, or the sender cancelled the message */
  MLTCP_TOO_LATE = 5,     /* the operation can no longer be cancelled */
  MLTCP_QUEUE_FULL = 6,   /* max_operations operations are under way; post again after one has ended */
  MLTCP_NO_ROOM = 7,      /* the configured number of connections, jobs or queues is in use */
  MLTCP_CLOSED = 8,       /* the connection was closed, here or by the peer */
  MLTCP_REFUSED = 9,      /* no endpoint at that address accepts connections of this kind */
  MLTCP_UNREACHABLE = 10, /* no packet arrived from the peer for peer_timeout_ns */
  MLTCP_ABORTED = 11,     /* the connection was ended at once, here or by the peer */
  MLTCP_WRONG_VERSION = 12,
  MLTCP_WRONG_PEER = 13,  /* another endpoint now uses the peer's address, for example after a restart */
  MLTCP_PROTOCOL = 14,    /* the peer broke the protocol */
  MLTCP_BAD_ADDRESS = 15, /* the blob is not an address: it is incomplete, damaged, or something else */
  MLTCP_INVALID = 16,     /* an argument is out of range */
  MLTCP_UNKNOWN = 17,     /* the handle names no object */
  MLTCP_TOO_LONG = 18,    /* the message is longer than 4 GiB, or a buffer for a text or an address is too short */
  /* The call does not suit the kind of connection or the way of driving, or is not allowed in a callback. */
  MLTCP_UNSUPPORTED = 19,
  MLTCP_FORKED = 20,    /* another process opened the endpoint, and this one is its fork */
  MLTCP_DESTROYED = 21, /* the endpoint was closed, or the handle was destroyed */
  MLTCP_FAILED = 22,    /* the system failed, or memory ran out */
  MLTCP_NO_KEY = 23     /* since 1.3: the two ends do not have the same key, or only one of them encrypts */
};

/* Returns the name of the code, such as "timed_out". Never NULL. */
MLTCP_API const char* mltcp_code_name(mltcp_code code);
/* Returns one line "cause; cure" about the code. Never NULL. */
MLTCP_API const char* mltcp_code_text(mltcp_code code);
/* Returns one line "cause; cure" about this thread's last call that did not return MLTCP_OK, often with more details
 * than the code's own text. Returns "" if there was no such call. The text is valid until the thread's next call. */
MLTCP_API const char* mltcp_last_error(void);

/* ---- Endpoints ---- */

typedef struct mltcp_endpoint mltcp_endpoint;
typedef struct mltcp_queue mltcp_queue;
typedef uint64_t mltcp_connection;
typedef uint64_t mltcp_operation;
typedef uint64_t mltcp_job;
typedef uint64_t mltcp_memory;
typedef uint64_t mltcp_message; /* an unexpected message that mltcp_peek() has taken */

/* Stands for any connection in mltcp_receive_tagged() and mltcp_peek(). */
#define MLTCP_ANY_CONNECTION UINT64_MAX
/* A mask that compares every bit of the tag. */
#define MLTCP_WHOLE_TAG UINT64_MAX
/* No time limit. All time limits are in nanoseconds. */
#define MLTCP_FOREVER INT64_MAX

/* Values of mltcp_completion::kind. */
enum {
  MLTCP_CONNECTED = 1, /* mltcp_connect() has succeeded or failed */
  MLTCP_ACCEPTED = 2,  /* event: a peer has connected */
  /* The message is in the peer's buffer; a tagged message may also be stored at the peer until a receive matches. */
  MLTCP_SENT = 3,
  MLTCP_RECEIVED = 4,
  MLTCP_PEEKED = 5,
  MLTCP_ENDED = 6 /* event: the connection has ended */
};
/* Kinds of connections for mltcp_connect(), which differ in how messages find their receives. */
enum {
  MLTCP_ORDERED = 1, /* the n-th message sent arrives in the n-th buffer posted: mltcp_send(), mltcp_receive() */
  MLTCP_TAGGED = 2   /* messages match receives by tag: mltcp_send_tagged(), mltcp_receive_tagged(), mltcp_peek() */
};
/* Values of mltcp_endpoint_options::driving: which threads drive the endpoint. */
enum {
  MLTCP_DRIVEN_BY_THREADS = 0, /* threads of the library, one for each shard */
  MLTCP_DRIVEN_BY_CALLER = 1   /* the program's threads, in mltcp_progress() and in calls that wait */
};
/* Values of mltcp_endpoint_options::idle: what a driving thread does while it has no work. */
enum { MLTCP_IDLE_SPIN = 0, MLTCP_IDLE_PAUSE = 1, MLTCP_IDLE_SLEEP = 2 };

/* The end of an operation, or an event. */
typedef struct mltcp_completion {
  uint32_t struct_size;
  int32_t kind;
  mltcp_code code;
  int32_t connection_kind;
  uint64_t operation; /* 0 for events */
  /* Connection of the operation; with MLTCP_ANY_CONNECTION, connection of the message, or 0 if there is no message. */
  uint64_t connection;
  uint64_t tag;
  uint64_t bytes;   /* length of the message, even if it is longer than the buffer */
  uint64_t message; /* the message that mltcp_peek() took, if its `take` was 1 */
  void* context;    /* mltcp_post_options::context of the operation */
  uint32_t job;     /* MLTCP_RECEIVED: number of the sender's job; valid if has_job is 1 */
  uint16_t iteration;
  uint8_t has_job;
  uint8_t cause;       /* number of the reason for `code`; mltcp_completion_text() puts the reason into words */
  uint8_t peer_ip[16]; /* an IPv4 address is written as ::ffff:a.b.c.d */
  uint16_t peer_port;  /* 0 if the peer is not known */
  uint8_t reserved[6];
} mltcp_completion;

/* Called once when an operation has ended. `completion` is valid until the callback returns. */
typedef void (*mltcp_callback)(void* context, const mltcp_completion* completion);

typedef struct mltcp_endpoint_options {
  uint32_t struct_size;
  int32_t driving;    /* MLTCP_DRIVEN_BY_THREADS, the default, or MLTCP_DRIVEN_BY_CALLER */
  const char* device; /* "udp:", "udp:eth0" or a port of DPDK; NULL means "udp:" */
  /* The address by which peers reach this host: "10.0.0.1" or "10.0.0.1:62400". If it contains no port, the endpoint
   * uses a free port. NULL means the address in the device's name, as in "udp:10.0.0.1". */
  const char* address;
  const char* gateway; /* gateway for devices whose packets the kernel does not route; NULL if there is none */
  /* Name such as "cubic", or "./mine.so:mine" to load an algorithm; NULL means "reno". */
  const char* congestion_control;
  const char* cores;    /* CPU of the driving thread; NULL: the datapath binds it to the first usable CPU, or to none */
  uint32_t prefix_bits; /* length of the prefix of this host's network, default 24 */
  uint32_t shards;      /* number of shards, each with its thread, socket and UDP port; 1 to 256, default 1 */
  int32_t idle;         /* default MLTCP_IDLE_SLEEP */
  uint32_t accepts;     /* 1, the default, if peers may connect; 0 if not */
  uint32_t mtu;         /* in bytes; 0 means the MTU of the interface */
  uint32_t queues;      /* number of queues of a DPDK device, default 1 */
  /* A peer's connections end if no packet arrives from it for this time; 10 ms to 1 h, default 10 s. */
  int64_t peer_timeout_ns;
  uint32_t max_connections;    /* limit for each shard; 1 to 65536, default 256 */
  uint32_t max_operations;     /* limit for each shard; 1 to 2^20, default 4096 */
  uint32_t max_jobs;           /* limit for each shard; 0 to 1024, default 64 */
  uint32_t max_memory_regions; /* limit for the whole endpoint; 0 to 64, default 64 */
  uint64_t eager_limit; /* in bytes; longer tagged messages wait at the sender until a receive matches; default 4096 */
  uint32_t unexpected_messages; /* unexpected messages of one connection; 1 to 16384, default 128 */
  uint32_t control_frames;      /* control frames in flight for one connection; 4 to 1024, default 32 */
  uint32_t max_sends;           /* sends in progress on an ordered connection; 1 to 65536, default 1024 */
  uint32_t max_receives;        /* receives in progress on an ordered connection; 1 to 65536, default 1024 */
  uint64_t max_rate_bps;        /* rate of one connection on the wire; 0, the default, means no limit */
  uint32_t ecn;                 /* 1: switches may mark packets (ECN), which dctcp and dcqcn need; default 0 */
  uint32_t full_integrity;      /* 1: a CRC-32C covers payloads as well as headers; default 0 */
  uint32_t priority;            /* priority of packets, 0 to 7, default 0 */
  /* Memory in MiB for all endpoints of the process on DPDK devices together. Only the value of the first of these
   * endpoints applies. 0 means enough for eight endpoints like this one. */
  uint32_t memory_mb;
  mltcp_callback event_callback; /* called for each event; if NULL, events go to the queue of mltcp_endpoint_events() */
  void* event_context;
  /* Since 1.1: parameters of the congestion control, and of jobs under turns, as `mltcp algorithms` lists them, such as
   * "swift.base_target=40 us, swift.beta=0.7". NULL means the defaults. */
  const char* parameters;
  /* Members since 1.3: the job's key. Set at most one of `key` and `key_bytes`. With a key, packets are encrypted and
   * authenticated, and only peers with the same key can connect. If both are NULL, the key of MLTCP_KEY_FILE applies
   * (docs/explanation/security.md). If MLTCP_KEY_FILE is not set either, only peers without a key can connect. */
  const char* key;       /* path of a key file made by `mltcp key`, or a descriptor such as "fd:3" */
  const void* key_bytes; /* MLTCP_KEY_BYTES random bytes that the program provides */
  /* Since 1.4. 1: packets are authenticated, but not encrypted. Both ends must use the same setting. 0, the default,
   * has the effect of 1 only if MLTCP_KEY_FILE names the key and MLTCP_AUTHENTICATE is 1. */
  uint32_t authenticate;
  uint32_t reserved;
} mltcp_endpoint_options;

/* Number of bytes at mltcp_endpoint_options::key_bytes. */
#define MLTCP_KEY_BYTES 32

/* How an operation reports its end. If `callback` is not NULL, it is called. If only `queue` is not NULL, the
 * completion is added to that queue. If both are NULL, mltcp_wait() or mltcp_test() returns the completion. A null
 * pointer to these options means a struct of zeros. */
typedef struct mltcp_post_options {
  uint32_t struct_size;
  uint32_t reserved;
  mltcp_callback callback;
  mltcp_queue* queue; /* queue of the same endpoint; must outlive the operation */
  void* context;      /* returned in the completion */
  /* After this time the operation ends with MLTCP_TIMED_OUT; 0 or MLTCP_FOREVER means no limit. */
  int64_t time_limit_ns;
} mltcp_post_options;

static inline void mltcp_completion_init(mltcp_completion* completion) {
  memset(completion, 0, sizeof *completion);
  completion->struct_size = (uint32_t)sizeof *completion;
}
static inline void mltcp_post_options_init(mltcp_post_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_size = (uint32_t)sizeof *options;
}

/* Sets all members to their defaults. Call it as mltcp_endpoint_options_init(&options), which passes the size of the
 * struct. */
MLTCP_API mltcp_code mltcp_endpoint_options_init_sized(mltcp_endpoint_options* options, size_t struct_size);
#define mltcp_endpoint_options_init(options) mltcp_endpoint_options_init_sized((options), sizeof *(options))

/* Opens an endpoint. Peers can connect when the call returns. Returns MLTCP_INVALID if the options are wrong, and
 * MLTCP_FAILED if the machine is not ready; mltcp_last_error() describes the reason. Several threads may open endpoints
 * at the same time. */
MLTCP_API mltcp_code mltcp_endpoint_open(const mltcp_endpoint_options* options, mltcp_endpoint** endpoint);
/* Aborts all connections, and ends all operations with MLTCP_DESTROYED. Waits up to 2 s until this is done, but does
 * not wait in a callback. Every later call returns MLTCP_DESTROYED. May be called again. */
MLTCP_API mltcp_code mltcp_endpoint_close(mltcp_endpoint* endpoint);
/* Closes the endpoint like mltcp_endpoint_close(), and frees it. Queues may outlive the endpoint. In a callback of the
 * endpoint this call does not wait. The endpoint's threads then end after the callback has returned. Ignores NULL. */
MLTCP_API mltcp_code mltcp_endpoint_destroy(mltcp_endpoint* endpoint);

/* Sizes of buffers that hold any address: as a blob, and as hexadecimal text with a terminating zero. */
#define MLTCP_ADDRESS_BYTES 64
#define MLTCP_ADDRESS_HEX_BYTES 129

/* Writes the endpoint's address into `blob`, at most MLTCP_ADDRESS_BYTES bytes. The program gives these bytes to its
 * peers, which pass them to mltcp_connect(). The address does not change. `size` is the size of the buffer before the
 * call, and the number of bytes written after it. Returns MLTCP_TOO_LONG if the buffer is too small. */
MLTCP_API mltcp_code mltcp_endpoint_address(mltcp_endpoint* endpoint, void* blob, size_t* size);
/* Converts an address to text for command lines and environments, and back. The buffer of the text has `capacity`
 * bytes. mltcp_address_from_hex() reads the size of the buffer `blob` from `size`, and writes the number of bytes of
 * the address there. Both return MLTCP_TOO_LONG if the buffer is too small. */
MLTCP_API mltcp_code mltcp_address_to_hex(const void* blob, size_t size, char* hex, size_t capacity);
MLTCP_API mltcp_code mltcp_address_from_hex(const char* hex, void* blob, size_t* size);
/* Writes a description of an address for people: "10.0.0.1:62400 (2 shards, endpoint 5f3c9a01)". Returns
 * MLTCP_BAD_ADDRESS or MLTCP_WRONG_VERSION if the address is not usable. */
MLTCP_API mltcp_code mltcp_address_text(const void* blob, size_t size, char* text, size_t capacity);
/* Writes a description of the datapath for people. If `capacity` is too small, this and the other functions that write
 * a `text` cut it and return MLTCP_TOO_LONG. */
MLTCP_API mltcp_code mltcp_endpoint_description(mltcp_endpoint* endpoint, char* text, size_t capacity);
/* Writes the reason of the last MLTCP_FAILED, or "" if there was none. */
MLTCP_API mltcp_code mltcp_endpoint_failure(mltcp_endpoint* endpoint, char* text, size_t capacity);
/* Reads the endpoint's clock, in nanoseconds. */
MLTCP_API mltcp_code mltcp_now(mltcp_endpoint* endpoint, int64_t* now_ns);

/* ---- Driving an endpoint with MLTCP_DRIVEN_BY_CALLER ---- */

/* Drives each shard once, except those that another thread is driving. Does not wait. `ended` receives the number of
 * operations that ended plus the number of events. `ended` may be NULL. */
MLTCP_API mltcp_code mltcp_progress(mltcp_endpoint* endpoint, size_t* ended);
/* Returns a descriptor to wait on, for example with epoll(7). Once mltcp_endpoint_arm() has returned MLTCP_NOTHING, the
 * descriptor becomes readable when mltcp_progress() has work. Returns MLTCP_UNSUPPORTED if the datapath has no
 * descriptor. With MLTCP_DRIVEN_BY_THREADS use mltcp_queue_file(). */
MLTCP_API mltcp_code mltcp_endpoint_file(mltcp_endpoint* endpoint, int* file);
/* Prepares for sleeping. Returns MLTCP_NOTHING if the caller may sleep until the descriptor of mltcp_endpoint_file() is
 * readable, and MLTCP_OK if it must call mltcp_progress() first. */
MLTCP_API mltcp_code mltcp_endpoint_arm(mltcp_endpoint* endpoint);

/* ---- Connections ---- */

/* Begins to connect. The operation ends with MLTCP_CONNECTED. Operations may be posted on `connection` at once.
 * `operation` may be NULL. If it is NULL and the options name no callback and no queue, a failure is reported by the
 * event MLTCP_ENDED and by the operations posted on the connection. */
MLTCP_API mltcp_code mltcp_connect(mltcp_endpoint* endpoint, const void* blob, size_t size, int32_t kind,
                                   const mltcp_post_options* options, mltcp_connection* connection,
                                   mltcp_operation* operation);
/* Waits for the next peer that connects; with a limit of 0 it only checks. It removes events from
 * mltcp_endpoint_events() until it finds such a peer, and drops MLTCP_ENDED. So use mltcp_accept() only if the program
 * learns from its operations that a connection has ended. Otherwise read that queue instead of calling mltcp_accept().
 * `end` receives the event, and may be NULL. */
MLTCP_API mltcp_code mltcp_accept(mltcp_endpoint* endpoint, mltcp_connection* connection, mltcp_completion* end,
                                  int64_t limit_ns);
/* The handle of an ended connection stays valid until mltcp_close() or mltcp_abort(), which return MLTCP_OK, or until
 * at least max_connections further connections have been made. Calls that post on an ended connection return the code
 * with which it ended, and mltcp_last_error() returns the cause. */

/* Ends the connection when the peer has received or stored everything that this end sent. A send of the peer ends with
 * MLTCP_OK if its message has arrived here, and otherwise with MLTCP_CLOSED. */
MLTCP_API mltcp_code mltcp_close(mltcp_endpoint* endpoint, mltcp_connection connection);
/* Ends the connection at once. Its operations end with MLTCP_ABORTED. */
MLTCP_API mltcp_code mltcp_abort(mltcp_endpoint* endpoint, mltcp_connection connection);
/* Writes the peer's address like mltcp_endpoint_address(). Returns MLTCP_NOTHING until the peer has introduced
 * itself. */
MLTCP_API mltcp_code mltcp_peer(mltcp_endpoint* endpoint, mltcp_connection connection, void* blob, size_t* size);

/* ---- Messages ---- */
/* A message has 0 bytes to 4 GiB. `options` may be NULL. `operation` may be NULL if the options name a callback or
 * a queue. */

/* Send and receive on ordered connections. The completion returns `tag`, which is not sent to the peer. */
MLTCP_API mltcp_code mltcp_send(mltcp_endpoint* endpoint, mltcp_connection connection, const void* message, size_t size,
                                uint64_t tag, const mltcp_post_options* options, mltcp_operation* operation);
MLTCP_API mltcp_code mltcp_receive(mltcp_endpoint* endpoint, mltcp_connection connection, void* buffer, size_t size,
                                   uint64_t tag, const mltcp_post_options* options, mltcp_operation* operation);

/* Send and receive on tagged connections. A receive takes the earliest message for which (its tag & mask) == (tag &
 * mask). */
MLTCP_API mltcp_code mltcp_send_tagged(mltcp_endpoint* endpoint, mltcp_connection connection, const void* message,
                                       size_t size, uint64_t tag, const mltcp_post_options* options,
                                       mltcp_operation* operation);
MLTCP_API mltcp_code mltcp_receive_tagged(mltcp_endpoint* endpoint, mltcp_connection connection, void* buffer,
                                          size_t size, uint64_t tag, uint64_t mask, const mltcp_post_options* options,
                                          mltcp_operation* operation);
/* Finds the earliest message that mltcp_receive_tagged() with these arguments would take now. The operation ends at
 * once, with the message's tag, length and connection, or with MLTCP_NOTHING. If `take` is 1, only
 * mltcp_receive_message() can receive the message afterwards. */
MLTCP_API mltcp_code mltcp_peek(mltcp_endpoint* endpoint, mltcp_connection connection, uint64_t tag, uint64_t mask,
                                int32_t take, const mltcp_post_options* options, mltcp_operation* operation);
/* Receives a message that mltcp_peek() has taken. If the buffer has 0 bytes, the message is dropped. */
MLTCP_API mltcp_code mltcp_receive_message(mltcp_endpoint* endpoint, mltcp_message message, void* buffer, size_t size,
                                           const mltcp_post_options* options, mltcp_operation* operation);

/* ---- Operations ---- */

/* Requests an early end of the operation. The operation ends with MLTCP_CANCELLED. If the request comes too late, the
 * operation ends as if there was no request. */
MLTCP_API mltcp_code mltcp_cancel(mltcp_endpoint* endpoint, mltcp_operation operation);
/* Waits for the end of an operation that has no callback and no queue. A limit of 0 checks once; a negative limit gives
 * MLTCP_INVALID. Returns MLTCP_OK if the operation has ended: the handle is then no longer valid, and `end`, which may
 * be NULL, holds the completion. Returns MLTCP_TIMED_OUT if the operation continues. Only one thread may wait for an
 * operation. */
MLTCP_API mltcp_code mltcp_wait(mltcp_endpoint* endpoint, mltcp_operation operation, mltcp_completion* end,
                                int64_t limit_ns);
/* Checks once, like mltcp_wait() with a limit of 0, but does not drive the endpoint. */
MLTCP_API mltcp_code mltcp_test(mltcp_endpoint* endpoint, mltcp_operation operation, mltcp_completion* end);
/* Tells the library that the program will not wait for this operation. */
MLTCP_API mltcp_code mltcp_forget(mltcp_endpoint* endpoint, mltcp_operation operation);
/* Writes one line with cause and cure, such as "send of 10 bytes, tag 0x7, to 10.0.0.2:62400: ...". */
MLTCP_API mltcp_code mltcp_completion_text(const mltcp_completion* completion, char* text, size_t capacity);

/* ---- Queues ---- */

/* Creates a queue for `places` completions, 1 to 2^20. The queue never loses a completion, because posting an operation
 * reserves a place in its queue. If no place is free, the posting call returns MLTCP_QUEUE_FULL. */
MLTCP_API mltcp_code mltcp_queue_create(mltcp_endpoint* endpoint, uint32_t places, mltcp_queue** queue);
/* Returns the endpoint's queue of events. It belongs to the endpoint, so do not destroy it. */
MLTCP_API mltcp_code mltcp_endpoint_events(mltcp_endpoint* endpoint, mltcp_queue** queue);
/* Destroys a queue, before or after its endpoint is destroyed. Call it when no operation that names the queue is under
 * way. Ignores NULL. */
MLTCP_API mltcp_code mltcp_queue_destroy(mltcp_queue* queue);
/* Moves up to `capacity` completions to `ends`, the oldest first, and sets `count` to their number. Set struct_size of
 * the first element before the call. Returns MLTCP_OK even if the queue is empty. Does not drive the endpoint. */
MLTCP_API mltcp_code mltcp_queue_poll(mltcp_queue* queue, mltcp_completion* ends, size_t capacity, size_t* count);
/* Moves completions like mltcp_queue_poll(), but waits until the queue holds a completion. Returns MLTCP_TIMED_OUT if
 * it holds none within the limit. */
MLTCP_API mltcp_code mltcp_queue_wait(mltcp_queue* queue, mltcp_completion* ends, size_t capacity, size_t* count,
                                      int64_t limit_ns);
/* Returns a descriptor to wait on with poll(2) or epoll(7). After mltcp_queue_arm() the descriptor becomes readable
 * when the next completion arrives. */
MLTCP_API mltcp_code mltcp_queue_file(mltcp_queue* queue, int* file);
/* Prepares for sleeping. Returns MLTCP_NOTHING if the queue is empty, so that the caller may sleep on the descriptor.
 * Returns MLTCP_OK if it is not empty: poll the queue first. */
MLTCP_API mltcp_code mltcp_queue_arm(mltcp_queue* queue);

/* ---- Jobs ---- */
/* The congestion control of a connection follows the iterations of the job to which the connection is attached.
 * Functions of jobs wait for other threads, usually for less than 1 ms. The exceptions are mltcp_job_begin_iteration()
 * and mltcp_job_end_iteration(), which do not wait. */

typedef struct mltcp_job_options {
  uint32_t struct_size;
  uint32_t number; /* chosen by the program; data packets carry it */
  /* Function that multiplies the increase step: "F1" to "F6" (docs/reference/algorithms.md), or "polynomial 0.25 1.75
   * 0". With "turns F1", bursts also wait for other bursts and overtake them (docs/explanation/turns.md); "turns" is
   * the same. If NULL, `weight` multiplies it. */
  const char* function;
  double weight;         /* constant gain of the increase step, above 0; 0 means 1, plain fairness */
  uint64_t max_rate_bps; /* limit for the job's connections on one shard together; 0 means no limit */
  /* 1: iterations are learned from the traffic until mltcp_job_begin_iteration() gives a size. */
  uint32_t learn_iterations;
  uint32_t reserved;
} mltcp_job_options;

/* Values of mltcp_job_plan::correction. */
enum { MLTCP_CORRECT_AT_ONCE = 0, MLTCP_CORRECT_GRADUALLY = 1 };
/* States of a job's plan. */
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

/* A plan: a job's iterations may begin to send at the times slot + k * period (docs/explanation/plans.md). Times are
 * those of mltcp_now(). */
typedef struct mltcp_job_plan {
  uint32_t struct_size;
  int32_t correction; /* default MLTCP_CORRECT_AT_ONCE */
  int64_t slot_ns;
  int64_t period_ns;
  double tolerance;       /* Lateness that does not count as drift, as a share of the period, 0 to 0.5; default 0.05. */
  double gradual_step;    /* maximum wait per iteration, as a share of the period, 0.001 to 1; default 0.1 */
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

/* Creates a job. `options` may be NULL, which means plain fairness. */
MLTCP_API mltcp_code mltcp_job_create(mltcp_endpoint* endpoint, const mltcp_job_options* options, mltcp_job* job);
/* Removes the job. Its connections continue without a job. */
MLTCP_API mltcp_code mltcp_job_remove(mltcp_endpoint* endpoint, mltcp_job job);
/* Attaches the connection to the job. From now on the connection carries the job's data. */
MLTCP_API mltcp_code mltcp_job_attach(mltcp_endpoint* endpoint, mltcp_job job, mltcp_connection connection);
/* Begins the job's next iteration. `bytes` is the number of bytes that the job sends in this iteration on all its
 * connections together; 0 if not known. */
MLTCP_API mltcp_code mltcp_job_begin_iteration(mltcp_endpoint* endpoint, mltcp_job job, uint64_t bytes);
MLTCP_API mltcp_code mltcp_job_end_iteration(mltcp_endpoint* endpoint, mltcp_job job);
/* Sets the job's plan. `state`, which may be NULL, receives MLTCP_PLAN_ACTIVE or the reason why the plan does not
 * apply. */
MLTCP_API mltcp_code mltcp_job_set_plan(mltcp_endpoint* endpoint, mltcp_job job, const mltcp_job_plan* plan,
                                        int32_t* state);
MLTCP_API mltcp_code mltcp_job_clear_plan(mltcp_endpoint* endpoint, mltcp_job job);
/* Since 1.2. Reads the slots that a cluster's scheduler sets in the environment (MLTCP_SLOT_UNIX_NS,
 * MLTCP_SLOT_PERIOD_NS, MLTCP_CLOCK_BOUND_NS: docs/reference/environment.md), and converts them to the endpoint's
 * clock. The plan is meant for jobs whose program marks the iterations. Returns MLTCP_NOTHING if no slots are set, and
 * leaves `plan` unchanged. Returns MLTCP_INVALID if the slots are wrong. */
MLTCP_API mltcp_code mltcp_plan_from_environment(mltcp_endpoint* endpoint, mltcp_job_plan* plan);
MLTCP_API mltcp_code mltcp_job_set_rate(mltcp_endpoint* endpoint, mltcp_job job, uint64_t max_rate_bps);

/* ---- Reports ---- */

typedef struct mltcp_job_report {
  uint32_t struct_size;
  uint32_t connections;         /* transport connections; a tagged connection consists of two */
  uint64_t iteration;           /* number of the latest iteration, begun or learned; 0 before the first */
  uint64_t bytes_sent;          /* bytes delivered in this iteration */
  uint64_t bytes_per_iteration; /* 0 if not known */
  double bytes_ratio;
  double gain; /* gain of the increase step */
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
  uint32_t unexpected_messages; /* tagged: messages that are stored here until a receive matches */
  uint32_t held_back;           /* tagged: sends that wait for credit */
  uint64_t packets_sent; /* this member and those below describe the transport connection that carries the data */
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
  /* Members since 1.1. */
  uint32_t has_ended; /* 1 if the connection has ended with end_code */
  mltcp_code end_code;
  /* Members since 1.4: packet sizes, without the headers of IP and UDP. */
  uint32_t packet_bytes;        /* current size of a full packet */
  uint32_t agreed_packet_bytes; /* maximum that both ends accept; above packet_bytes if the path carries less */
} mltcp_connection_report;

/* Counters since the endpoint was opened. */
typedef struct mltcp_endpoint_report {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t operations; /* operations that have ended */
  uint64_t posts_in_place;
  uint64_t connections; /* current number of connections */
  uint64_t broken_protocols;
  uint64_t unintroduced;
  uint64_t wakeups;
  uint64_t packets_received;
  uint64_t packets_sent;
  uint64_t rejected_packets; /* packets that were truncated, damaged, malformed or of another protocol */
  uint64_t unknown_connection;
  uint64_t beyond_credit;
  uint64_t refused_connects;
  uint64_t missed_packets; /* packets that were dropped here for lack of buffers */
  uint64_t unsent_packets;
  /* Members since 1.2: protection against attackers (docs/reference/limits.md). */
  /* Packets of a known connection that its peer did not send: their tag or authentication is wrong. */
  uint64_t forged_packets;
  uint64_t beyond_holes;   /* packets that would leave more gaps in the received data than there is memory for */
  uint64_t retries_sent;   /* packets that asked a connecting peer to prove its address */
  uint64_t unproven_ended; /* connections that ended because their peer did not answer ACCEPT */
  uint64_t resets_sent;
  uint64_t resets_taken; /* connections that ended because their peer had restarted */
  uint64_t violations;   /* acknowledgements of data that was never sent */
  /* Members since 1.4: packet sizes on the path. */
  uint64_t black_holes;      /* paths that drop long packets, so that their connections continue with shorter packets */
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

/* ---- Memory ---- */

/* Lets devices read `memory`, which must consist of whole pages, so that messages in it are sent without a copy. Does
 * nothing if the datapath reads messages by the CPU. The memory must outlive the registration, and the registration
 * must outlive the messages. */
MLTCP_API mltcp_code mltcp_memory_register(mltcp_endpoint* endpoint, void* memory, size_t size, mltcp_memory* handle);
MLTCP_API mltcp_code mltcp_memory_unregister(mltcp_endpoint* endpoint, mltcp_memory handle);

#ifdef __cplusplus
}
#endif

#endif /* MLTCP_MLTCP_H */
