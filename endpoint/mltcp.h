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
 * What the words mean is told where the C++ interface has them (endpoint/endpoint.h, docs/how-to/endpoint.md); this
 * says what is C's own. docs/reference/c-interface.md is the guide.
 *
 * Codes. Functions return an mltcp_code; 0 is success. mltcp_last_error() has one line for people, "cause; cure", of
 * the last call of this thread that did not return MLTCP_OK. No exception leaves the library, and it never ends the
 * process. A null pointer where something has to be is MLTCP_INVALID. What a failed call would have returned through a
 * pointer is 0 or NULL.
 *
 * Handles. Endpoints and queues are pointers, to be handed back and nothing else. One that was destroyed is remembered:
 * calls with it return MLTCP_DESTROYED. All others are numbers that name nothing once their object is gone:
 * MLTCP_UNKNOWN. 0 is never one.
 *
 * Structs begin with struct_size, which their _init function sets and the library looks at before anything else, so
 * that program and library may be of different versions. A shorter struct is of an older program: what it lacks is at
 * its default when read, and left out when written. A longer one is of a newer program: what this library does not know
 * has to be 0 when it reads it (else MLTCP_INVALID: it would be ignored in silence), and is set to 0 when it writes it.
 * A size that is no multiple of 8, below 8 or above 4096 is MLTCP_INVALID. Members are never moved or removed.
 *
 * Threads. Every function may be called from any thread at any time, but for mltcp_endpoint_destroy() and
 * mltcp_queue_destroy(), which are called once nobody else uses what they destroy, nor begins to. Callbacks come on the
 * thread that drives (with MLTCP_DRIVEN_BY_THREADS one of the library's); they may call everything that does not wait,
 * should be short, and must not leave by an exception or longjmp(). Functions that wait return MLTCP_UNSUPPORTED in a
 * callback.
 *
 * Memory. A message's bytes, and a buffer, are the program's again when their operation has ended, and not before.
 * Strings and structs that are handed over are copied in the call.
 *
 * After fork(2) the child can use none of it (MLTCP_FORKED), may destroy its handles, which then does nothing to the
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

/* Of this interface. MAJOR is the library's soname and changes with what would break a program; MINOR grows with what
 * is added. */
#define MLTCP_VERSION_MAJOR 1
#define MLTCP_VERSION_MINOR 4
/* To be compared with mltcp_version(). */
#define MLTCP_VERSION (MLTCP_VERSION_MAJOR << 16 | MLTCP_VERSION_MINOR)

/* Of the library that runs: MAJOR << 16 | MINOR. */
MLTCP_API uint32_t mltcp_version(void);
/* "mltcp 0.1.0, interface 1.4". */
MLTCP_API const char* mltcp_version_text(void);
/* How the devices are written that this library can open: "udp:, udp:IFACE, udp:IP; ...". */
MLTCP_API const char* mltcp_device_forms(void);

/* ---- Codes ------------------------------------------------------------------------------------------------------ */

/* What calls return, and how operations end. More may be added. */
typedef int32_t mltcp_code;
enum {
  MLTCP_OK = 0,
  MLTCP_TRUNCATED = 1,    /* received, but longer than the buffer, which has the beginning */
  MLTCP_NOTHING = 2,      /* there is nothing of what was looked for */
  MLTCP_TIMED_OUT = 3,    /* the time limit was there first */
  MLTCP_CANCELLED = 4,    /* by mltcp_cancel() */
  MLTCP_TOO_LATE = 5,     /* it can't be undone any more */
  MLTCP_QUEUE_FULL = 6,   /* as many operations as allowed are under way: post again after some end */
  MLTCP_NO_ROOM = 7,      /* as many connections, jobs or queues as allowed are there */
  MLTCP_CLOSED = 8,       /* the connection was closed, here or by the peer */
  MLTCP_REFUSED = 9,      /* nobody there accepts such connections */
  MLTCP_UNREACHABLE = 10, /* nothing was heard of the peer for peer_timeout_ns */
  MLTCP_ABORTED = 11,     /* the connection was ended at once, here or by the peer */
  MLTCP_WRONG_VERSION = 12,
  MLTCP_WRONG_PEER = 13,  /* another endpoint is at that address: it was started anew */
  MLTCP_PROTOCOL = 14,    /* the peer broke the protocol */
  MLTCP_BAD_ADDRESS = 15, /* the blob is no address: cut off, damaged, or something else */
  MLTCP_INVALID = 16,     /* an argument is out of range */
  MLTCP_UNKNOWN = 17,     /* the handle names nothing */
  MLTCP_TOO_LONG = 18,    /* above 4 GiB - 1 */
  MLTCP_UNSUPPORTED = 19, /* not by such connections, not in a callback, or not as this endpoint is driven */
  MLTCP_FORKED = 20,      /* this process is a fork of the one that opened the endpoint */
  MLTCP_DESTROYED = 21,   /* the endpoint was closed, or the handle destroyed */
  MLTCP_FAILED = 22,      /* the system failed, or memory ran out */
  MLTCP_NO_KEY = 23       /* since 1.3: the peer has no key in common with this endpoint: one has none, or another,
                             or only one encrypts */
};

/* "timed_out". Never NULL. */
MLTCP_API const char* mltcp_code_name(mltcp_code code);
/* "cause; cure", one line. Never NULL. */
MLTCP_API const char* mltcp_code_text(mltcp_code code);
/* Of this thread's last call that did not return MLTCP_OK, which says more than its code where more is known. "" if
 * there was none. Valid until the thread's next call. */
MLTCP_API const char* mltcp_last_error(void);

/* ---- Endpoints -------------------------------------------------------------------------------------------------- */

typedef struct mltcp_endpoint mltcp_endpoint;
typedef struct mltcp_queue mltcp_queue;
typedef uint64_t mltcp_connection;
typedef uint64_t mltcp_operation;
typedef uint64_t mltcp_job;
typedef uint64_t mltcp_memory;
typedef uint64_t mltcp_message; /* an unexpected message that mltcp_peek() has taken */

/* In place of a connection, of receives by tag and of peeks: whichever. */
#define MLTCP_ANY_CONNECTION UINT64_MAX
/* Every bit of the tag counts. */
#define MLTCP_WHOLE_TAG UINT64_MAX
/* Times are nanoseconds; this one never comes. */
#define MLTCP_FOREVER INT64_MAX

/* mltcp_completion::kind */
enum {
  MLTCP_CONNECTED = 1, /* mltcp_connect(): both ends know each other, or it failed */
  MLTCP_ACCEPTED = 2,  /* event: a peer has connected */
  MLTCP_SENT = 3,      /* ordered: in the peer's buffer. By tag: there, or held by the peer for a receive */
  MLTCP_RECEIVED = 4,
  MLTCP_PEEKED = 5,
  MLTCP_ENDED = 6 /* event: the connection is over */
};
/* mltcp_connect(): what the connection carries */
enum {
  MLTCP_ORDERED = 1, /* the n-th message sent lands in the n-th buffer posted: mltcp_send(), mltcp_receive() */
  MLTCP_TAGGED = 2   /* messages find buffers by tag: mltcp_send_tagged(), mltcp_receive_tagged(), mltcp_peek() */
};
/* mltcp_endpoint_options::driving */
enum {
  MLTCP_DRIVEN_BY_THREADS = 0, /* of the library's own, one a shard */
  MLTCP_DRIVEN_BY_CALLER = 1   /* by mltcp_progress(), and by what waits */
};
/* mltcp_endpoint_options::idle: what is done while there is nothing to do */
enum { MLTCP_IDLE_SPIN = 0, MLTCP_IDLE_PAUSE = 1, MLTCP_IDLE_SLEEP = 2 };

/* Something ended or happened. */
typedef struct mltcp_completion {
  uint32_t struct_size;
  int32_t kind;
  mltcp_code code;
  int32_t connection_kind;
  uint64_t operation;  /* 0 of events */
  uint64_t connection; /* of receives from any: that of the message, 0 if there was none */
  uint64_t tag;
  uint64_t bytes;   /* length of the message, also where it is longer than the buffer */
  uint64_t message; /* of peeks that have taken one */
  void* context;    /* as posted */
  uint32_t job;     /* received: the sender's number of it, if has_job is 1 */
  uint16_t iteration;
  uint8_t has_job;
  uint8_t cause;       /* for mltcp_completion_text() */
  uint8_t peer_ip[16]; /* IPv4 as ::ffff:a.b.c.d */
  uint16_t peer_port;  /* 0: the peer is not known */
  uint8_t reserved[6];
} mltcp_completion;

/* Called once, when what it was posted with has ended; `completion` is valid until it returns. */
typedef void (*mltcp_callback)(void* context, const mltcp_completion* completion);

typedef struct mltcp_endpoint_options {
  uint32_t struct_size;
  int32_t driving;     /* MLTCP_DRIVEN_BY_THREADS, or _CALLER */
  const char* device;  /* "udp:", "udp:eth0", a port of DPDK; NULL: "udp:" */
  const char* address; /* an own address that the peers reach, "10.0.0.1" or "10.0.0.1:62400"; no port: a free one.
                          NULL: that of the device's name, as in "udp:10.0.0.1" */
  const char* gateway; /* of devices whose packets the kernel does not route; NULL: none */
  const char* congestion_control; /* "cubic", or "./mine.so:mine" that is loaded; NULL: "reno" */
  const char* cores;        /* the CPU that the driving thread is bound to; NULL: not bound, or the first usable one */
  uint32_t prefix_bits;     /* of the own network, default 24 */
  uint32_t shards;          /* 1 to 256, default 1: threads, sockets, UDP ports */
  int32_t idle;             /* default MLTCP_IDLE_SLEEP */
  uint32_t accepts;         /* 1, the default: others may connect */
  uint32_t mtu;             /* 0: the interface's */
  uint32_t queues;          /* of a device of DPDK, default 1 */
  int64_t peer_timeout_ns;  /* a peer that was not heard for so long is gone; 10 ms to 1 h, default 10 s */
  uint32_t max_connections; /* of a shard, like all bounds; 1 to 65536, default 256 */
  uint32_t max_operations;  /* 1 to 2^20, default 4096 */
  uint32_t max_jobs;        /* 0 to 1024, default 64 */
  uint32_t max_memory_regions;   /* 0 to 64, default 64 */
  uint64_t eager_limit;          /* longer messages by tag wait at the sender for their receive; default 4096 */
  uint32_t unexpected_messages;  /* of a connection, 1 to 16384, default 128 */
  uint32_t control_frames;       /* 4 to 1024, default 32 */
  uint32_t max_sends;            /* of an ordered connection, 1 to 65536, default 1024 */
  uint32_t max_receives;         /* the same */
  uint64_t max_rate_bps;         /* of a connection, on the wire; 0, the default: no limit */
  uint32_t ecn;                  /* 1: packets say that they can be marked; needed by dctcp and dcqcn; default 0 */
  uint32_t full_integrity;       /* 1: CRC-32C over the payload, too; default 0 */
  uint32_t priority;             /* 0, the default, to 7 */
  uint32_t memory_mb;            /* of DPDK, for all endpoints on it: the first one's; 0: for eight like it */
  mltcp_callback event_callback; /* of events; NULL: they are in mltcp_endpoint_events() */
  void* event_context;
  /* Since 1.1. */
  const char* parameters; /* of the congestion control, "swift.base_target=40 us, swift.beta=0.7", as `mltcp algorithms`
                             lists them; NULL: their defaults */
  /* Since 1.3: the key of the job, which the endpoint's packets are sealed with; it accepts and reaches only peers that
   * have the same key. Give one of both. NULL: what MLTCP_KEY_FILE says (docs/explanation/security.md), or none: then
   * it accepts and reaches only peers without a key. */
  const char* key;       /* the path of a key file that `mltcp key` made, or "fd:3", a descriptor */
  const void* key_bytes; /* MLTCP_KEY_BYTES random bytes that the program has got itself */
  /* Since 1.4. */
  uint32_t authenticate; /* 1: packets are authenticated with the key and not encrypted, which both ends have to want;
                            0, the default: so it is only where MLTCP_KEY_FILE and MLTCP_AUTHENTICATE=1 say so */
  uint32_t reserved;
} mltcp_endpoint_options;

/* Of mltcp_endpoint_options::key_bytes. */
#define MLTCP_KEY_BYTES 32

/* How an operation tells of its end: by `callback` if it is not NULL, else through `queue`, and if that is NULL to who
 * asks by mltcp_wait() or mltcp_test(). A null pointer to options stands for a struct of zeros. */
typedef struct mltcp_post_options {
  uint32_t struct_size;
  uint32_t reserved;
  mltcp_callback callback;
  mltcp_queue* queue;    /* of the same endpoint; outlives the operation */
  void* context;         /* handed back */
  int64_t time_limit_ns; /* ends with MLTCP_TIMED_OUT if it has not before; 0 and MLTCP_FOREVER: no limit */
} mltcp_post_options;

static inline void mltcp_completion_init(mltcp_completion* completion) {
  memset(completion, 0, sizeof *completion);
  completion->struct_size = (uint32_t)sizeof *completion;
}
static inline void mltcp_post_options_init(mltcp_post_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_size = (uint32_t)sizeof *options;
}

/* Sets all defaults; to be called as mltcp_endpoint_options_init(&options), which says how long the struct is. */
MLTCP_API mltcp_code mltcp_endpoint_options_init_sized(mltcp_endpoint_options* options, size_t struct_size);
#define mltcp_endpoint_options_init(options) mltcp_endpoint_options_init_sized((options), sizeof *(options))

/* Opens it; it is ready for others' connections when this returns. MLTCP_INVALID: something about the options,
 * MLTCP_FAILED: about the machine; mltcp_last_error() says what. To open several at a time is fine. */
MLTCP_API mltcp_code mltcp_endpoint_open(const mltcp_endpoint_options* options, mltcp_endpoint** endpoint);
/* Ends all connections at once and with them all operations, with MLTCP_DESTROYED, and waits for that, 1 s at most
 * (not in a callback). From then on every call returns MLTCP_DESTROYED. May be called again, and at any time. */
MLTCP_API mltcp_code mltcp_endpoint_close(mltcp_endpoint* endpoint);
/* The same, and frees it. Queues may live on. In a callback of the endpoint it waits for nothing: what is left to do is
 * done when the callback has returned. NULL is fine. */
MLTCP_API mltcp_code mltcp_endpoint_destroy(mltcp_endpoint* endpoint);

/* Room for any address, and for one in hexadecimal with its end. */
#define MLTCP_ADDRESS_BYTES 64
#define MLTCP_ADDRESS_HEX_BYTES 129

/* What others connect by, a blob of up to MLTCP_ADDRESS_BYTES bytes to be handed over as the program likes; constant.
 * `size`: in, the room at `blob`; out, the bytes that are there. MLTCP_TOO_LONG: not enough room. */
MLTCP_API mltcp_code mltcp_endpoint_address(mltcp_endpoint* endpoint, void* blob, size_t* size);
/* An address as text for command lines and environments, and back. `room` and `size` as above. */
MLTCP_API mltcp_code mltcp_address_to_hex(const void* blob, size_t size, char* hex, size_t room);
MLTCP_API mltcp_code mltcp_address_from_hex(const char* hex, void* blob, size_t* size);
/* "10.0.0.1:62400 (2 shards, endpoint 5f3c9a01)". Checks the address: MLTCP_BAD_ADDRESS, MLTCP_WRONG_VERSION. */
MLTCP_API mltcp_code mltcp_address_text(const void* blob, size_t size, char* text, size_t room);
/* For people, of the datapath. Texts that don't fit are cut. */
MLTCP_API mltcp_code mltcp_endpoint_description(mltcp_endpoint* endpoint, char* text, size_t room);
/* What went wrong last where a code was MLTCP_FAILED; "" if nothing did. */
MLTCP_API mltcp_code mltcp_endpoint_failure(mltcp_endpoint* endpoint, char* text, size_t room);
/* The endpoint's clock. */
MLTCP_API mltcp_code mltcp_now(mltcp_endpoint* endpoint, int64_t* now_ns);

/* ---- Driving: MLTCP_DRIVEN_BY_CALLER ----------------------------------------------------------------------------- */

/* A round of all shards that nobody else drives just now; does not wait. `ended`, which may be NULL: how many
 * operations ended and events happened. */
MLTCP_API mltcp_code mltcp_progress(mltcp_endpoint* endpoint, size_t* ended);
/* For epoll(7): becomes readable when mltcp_progress() has something to do, once mltcp_endpoint_arm() has returned
 * MLTCP_NOTHING. To be waited for and nothing else. MLTCP_UNSUPPORTED where there is none; with threads, the queues'
 * files tell. */
MLTCP_API mltcp_code mltcp_endpoint_file(mltcp_endpoint* endpoint, int* file);
/* MLTCP_NOTHING: sleep now, the file will tell. MLTCP_OK: call mltcp_progress() first. */
MLTCP_API mltcp_code mltcp_endpoint_arm(mltcp_endpoint* endpoint);

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* Begins to connect; MLTCP_CONNECTED tells how it went. `connection` may be posted on at once. `operation` may be NULL:
 * then nobody asks how it ends unless `options` say so, and a failure is told by MLTCP_ENDED and by what is posted. */
MLTCP_API mltcp_code mltcp_connect(mltcp_endpoint* endpoint, const void* blob, size_t size, int32_t kind,
                                   const mltcp_post_options* options, mltcp_connection* connection,
                                   mltcp_operation* operation);
/* Waits for the next peer that connects: 0 is one look. Takes events from mltcp_endpoint_events() until it has found
 * one, MLTCP_ENDED included, which nobody is told then: for programs that learn of ends by their operations. Others
 * look after that queue themselves. `end`, which may be NULL: the event. */
MLTCP_API mltcp_code mltcp_accept(mltcp_endpoint* endpoint, mltcp_connection* connection, mltcp_completion* end,
                                  int64_t limit_ns);
/* A connection that has ended keeps its handle, and what is posted on it returns the code with which it ended, with the
 * cause in mltcp_last_error(), until mltcp_close() or mltcp_abort(), which return MLTCP_OK, or at least max_connections
 * others have come. */

/* Ends when all that was sent is in the peer's buffers, or held by the peer. The peer's sends of what has come here end
 * with MLTCP_OK, those of what has not with MLTCP_CLOSED. */
MLTCP_API mltcp_code mltcp_close(mltcp_endpoint* endpoint, mltcp_connection connection);
/* Ends at once, with MLTCP_ABORTED. */
MLTCP_API mltcp_code mltcp_abort(mltcp_endpoint* endpoint, mltcp_connection connection);
/* The peer's address, as mltcp_endpoint_address(). MLTCP_NOTHING before it has introduced itself. */
MLTCP_API mltcp_code mltcp_peer(mltcp_endpoint* endpoint, mltcp_connection connection, void* blob, size_t* size);

/* ---- Messages ---------------------------------------------------------------------------------------------------- */
/* 0 bytes to 4 GiB - 1. `options` may be NULL; `operation` may be only where they have a callback or a queue. */

/* Ordered connections. The tag is handed back and not sent. */
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
/* Looks for the earliest message that such a receive would take now, and ends at once: with its tag, length and
 * connection, or with MLTCP_NOTHING. take 1: takes it out of matching, for mltcp_receive_message() alone. */
MLTCP_API mltcp_code mltcp_peek(mltcp_endpoint* endpoint, mltcp_connection connection, uint64_t tag, uint64_t mask,
                                int32_t take, const mltcp_post_options* options, mltcp_operation* operation);
/* Receives what mltcp_peek() has taken. A buffer of 0 bytes drops it. */
MLTCP_API mltcp_code mltcp_receive_message(mltcp_endpoint* endpoint, mltcp_message message, void* buffer, size_t size,
                                           const mltcp_post_options* options, mltcp_operation* operation);

/* ---- Operations -------------------------------------------------------------------------------------------------- */

/* Asks for its end before its time; its completion tells whether that was MLTCP_CANCELLED. */
MLTCP_API mltcp_code mltcp_cancel(mltcp_endpoint* endpoint, mltcp_operation operation);
/* Waits for the end of an operation without callback and queue: 0 is one look, negative MLTCP_INVALID. MLTCP_OK: `end`,
 * which may be NULL, says how it ended, and the handle is gone. MLTCP_TIMED_OUT: it goes on. One thread waits for an
 * operation. */
MLTCP_API mltcp_code mltcp_wait(mltcp_endpoint* endpoint, mltcp_operation operation, mltcp_completion* end,
                                int64_t limit_ns);
/* One look that drives nothing. */
MLTCP_API mltcp_code mltcp_test(mltcp_endpoint* endpoint, mltcp_operation operation, mltcp_completion* end);
/* Nobody will ask how it ends. */
MLTCP_API mltcp_code mltcp_forget(mltcp_endpoint* endpoint, mltcp_operation operation);
/* "send of 10 bytes, tag 0x7, to 10.0.0.2:62400: the connection is closed; connect again (by the peer)". */
MLTCP_API mltcp_code mltcp_completion_text(const mltcp_completion* completion, char* text, size_t room);

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

/* For 1 to 2^20 completions. A queue never loses one: posting for one without a free place is MLTCP_QUEUE_FULL. */
MLTCP_API mltcp_code mltcp_queue_create(mltcp_endpoint* endpoint, uint32_t places, mltcp_queue** queue);
/* That of events, which goes with the endpoint. */
MLTCP_API mltcp_code mltcp_endpoint_events(mltcp_endpoint* endpoint, mltcp_queue** queue);
/* No operation that names it is under way. Before or after its endpoint. NULL is fine. */
MLTCP_API mltcp_code mltcp_queue_destroy(mltcp_queue* queue);
/* Moves up to `room` completions, oldest first, to `ends`, whose first has struct_size set, and `count` says how many.
 * MLTCP_OK also for none. Drives nothing. */
MLTCP_API mltcp_code mltcp_queue_poll(mltcp_queue* queue, mltcp_completion* ends, size_t room, size_t* count);
/* The same, and waits for the first one: MLTCP_TIMED_OUT. */
MLTCP_API mltcp_code mltcp_queue_wait(mltcp_queue* queue, mltcp_completion* ends, size_t room, size_t* count,
                                      int64_t limit_ns);
/* For poll(2) and epoll(7): readable from the first completion after mltcp_queue_arm() on. To be waited for and nothing
 * else. */
MLTCP_API mltcp_code mltcp_queue_file(mltcp_queue* queue, int* file);
/* MLTCP_NOTHING: there is none now, and the file will tell of the next. MLTCP_OK: there is one, poll first. */
MLTCP_API mltcp_code mltcp_queue_arm(mltcp_queue* queue);

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */
/* Jobs make the connections that are attached to them aware of their iterations. Functions of jobs but for
 * mltcp_job_begin_iteration() and mltcp_job_end_iteration() wait for other threads, for a millisecond or less. */

typedef struct mltcp_job_options {
  uint32_t struct_size;
  uint32_t number;       /* of the program's choice; carried in packets */
  const char* function;  /* of the increase step: "F1" to "F6" (docs/reference/algorithms.md), "polynomial 0.25 1.75 0";
                            NULL: none, and `weight` counts */
  double weight;         /* constant gain of the increase step, above 0; 0: 1, plain fairness */
  uint64_t max_rate_bps; /* of each shard's connections together; 0: no limit */
  uint32_t learn_iterations; /* 1: they are found in the traffic until mltcp_job_begin_iteration() names a size */
  uint32_t reserved;
} mltcp_job_options;

/* mltcp_job_plan::correction */
enum { MLTCP_CORRECT_AT_ONCE = 0, MLTCP_CORRECT_GRADUALLY = 1 };
/* What has become of a job's plan. */
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
  double tolerance;       /* lateness that is no drift, as a share of the period, 0 to 0.5; default 0.05 */
  double gradual_step;    /* most waiting per iteration, as a share of the period, 0.001 to 1; default 0.1 */
  int64_t valid_until_ns; /* default MLTCP_FOREVER */
  int64_t clock_bound_ns; /* the clocks of the job's hosts agree within this */
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
/* Its connections go on without a job. */
MLTCP_API mltcp_code mltcp_job_remove(mltcp_endpoint* endpoint, mltcp_job job);
/* What is sent on the connection from now on is the job's. */
MLTCP_API mltcp_code mltcp_job_attach(mltcp_endpoint* endpoint, mltcp_job job, mltcp_connection connection);
/* The next iteration begins, and will send `bytes` on the job's connections together; 0: not known. */
MLTCP_API mltcp_code mltcp_job_begin_iteration(mltcp_endpoint* endpoint, mltcp_job job, uint64_t bytes);
MLTCP_API mltcp_code mltcp_job_end_iteration(mltcp_endpoint* endpoint, mltcp_job job);
/* `state`, which may be NULL: MLTCP_PLAN_ACTIVE, or why there is none. */
MLTCP_API mltcp_code mltcp_job_set_plan(mltcp_endpoint* endpoint, mltcp_job job, const mltcp_job_plan* plan,
                                        int32_t* state);
MLTCP_API mltcp_code mltcp_job_clear_plan(mltcp_endpoint* endpoint, mltcp_job job);
/* Since 1.2. The slots that a cluster's scheduler hands to programs by the environment (MLTCP_SLOT_UNIX_NS,
 * MLTCP_SLOT_PERIOD_NS, MLTCP_CLOCK_BOUND_NS: docs/reference/environment.md), on the endpoint's clock; for jobs whose
 * iterations the program marks. MLTCP_NOTHING: there are none, and `plan` is as it was. MLTCP_INVALID: they are wrong.
 */
MLTCP_API mltcp_code mltcp_plan_from_environment(mltcp_endpoint* endpoint, mltcp_job_plan* plan);
MLTCP_API mltcp_code mltcp_job_set_rate(mltcp_endpoint* endpoint, mltcp_job job, uint64_t max_rate_bps);

/* ---- Reports ----------------------------------------------------------------------------------------------------- */

typedef struct mltcp_job_report {
  uint32_t struct_size;
  uint32_t connections;         /* the transport's: two for each tagged one */
  uint64_t iteration;           /* begun, or found; 0 before the first */
  uint64_t bytes_sent;          /* delivered in it */
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
  uint32_t unexpected_messages; /* by tag: held here, and not taken */
  uint32_t held_back;           /* by tag: sends that wait for credit */
  uint64_t packets_sent;        /* of what carries the data, like all that follow */
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
  uint32_t has_ended; /* 1: it has, and this tells how */
  mltcp_code end_code;
  /* Since 1.4: how long packets are, without the headers of IP and UDP. */
  uint32_t packet_bytes;        /* a full one now */
  uint32_t agreed_packet_bytes; /* what both ends accept; above packet_bytes where the path carries less */
} mltcp_connection_report;

/* Since the endpoint was opened. */
typedef struct mltcp_endpoint_report {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t operations; /* that have ended */
  uint64_t posts_in_place;
  uint64_t connections; /* that are there */
  uint64_t broken_protocols;
  uint64_t strangers;
  uint64_t wakeups;
  uint64_t packets_received;
  uint64_t packets_sent;
  uint64_t rejected_packets; /* truncated, foreign, damaged or malformed */
  uint64_t unknown_connection;
  uint64_t beyond_credit;
  uint64_t refused_connects;
  uint64_t missed_packets; /* there was no room for them here */
  uint64_t unsent_packets;
  /* Since 1.2: who is not believed; each is described in the guide to the transport. */
  uint64_t forged_packets; /* right connection, wrong tag */
  uint64_t beyond_holes;   /* would have left more holes than there is memory for */
  uint64_t retries_sent;   /* who connected was asked for a cookie first */
  uint64_t unproven_ended; /* connections whose peer did not answer ACCEPT */
  uint64_t resets_sent;
  uint64_t resets_taken; /* connections that a restarted peer did not know any more */
  uint64_t violations;   /* peers that acknowledged what was never sent */
  /* Since 1.4: how long packets may be on the way. */
  uint64_t black_holes; /* paths that were found to drop long packets: their connections went on with shorter ones */
  uint64_t size_probes_sent; /* packets that tried it */
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

/* Whole pages that devices shall read themselves, so that messages in them are sent without a copy; nothing is done
 * where the datapath reads as the CPU does. They outlive the registration, and that the messages in them. */
MLTCP_API mltcp_code mltcp_memory_register(mltcp_endpoint* endpoint, void* memory, size_t size, mltcp_memory* handle);
MLTCP_API mltcp_code mltcp_memory_unregister(mltcp_endpoint* endpoint, mltcp_memory handle);

#ifdef __cplusplus
}
#endif

#endif /* MLTCP_MLTCP_H */
