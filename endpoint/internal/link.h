// A connection of an endpoint. An ordered connection uses one connection of the transport. A tagged connection uses two
// (control and data). The thread that drives the shard owns the connection. Any thread may read the atomics `face` and
// `job`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/endpoint/internal/frames.h"
#include "mltcp/endpoint/internal/intrusive.h"
#include "mltcp/endpoint/internal/operation.h"
#include "mltcp/endpoint/types.h"
#include "mltcp/transport/types.h"

namespace mltcp::endpoint {

/// A message that no receive has matched. It is stored here in the frame in which it arrived, or it waits at its
/// sender.
struct Unexpected {
  Link* link = nullptr;
  bool used = false;
  bool announced = false;  ///< whether the message waits at its sender
  bool claimed = false;    ///< whether peek() has taken the message
  std::uint32_t generation = 1;
  std::uint32_t index = 0;
  std::uint32_t frame = 0;  ///< frame that contains the message
  std::uint64_t tag = 0;
  std::uint64_t id = 0;  ///< for an announced message, the sender's number of the message
  Bytes length = 0;
  ListHook<Unexpected> in_link;
  ListHook<Unexpected> in_all;
  HashHook<Unexpected> by_source;
  HashHook<Unexpected> by_tag;
};

/// The additional state of a tagged connection. It is allocated together with the connection.
struct Tagged {
  Tagged(const EndpointConfig& config, Link& link);

  [[nodiscard]] std::span<std::byte> receive_frame(std::uint32_t frame) {
    return std::span(receive_memory.get() + frame * frame_bytes, frame_bytes);
  }
  [[nodiscard]] std::span<std::byte> send_frame(std::uint32_t frame) {
    return std::span(send_memory.get() + frame * frame_bytes, frame_bytes);
  }

  std::size_t frame_bytes;
  Bytes eager_limit;  ///< the smaller of the two ends' limits, in bytes

  // Received frames. They are handled in the order in which they were sent, which is the order of the buffers.
  struct Posted {
    std::uint32_t frame = 0;
    std::uint32_t length = 0;
    bool arrived = false;
  };
  std::unique_ptr<std::byte[]> receive_memory;
  std::vector<std::uint32_t> free_receive_frames;
  GrowableRing<Posted> posted;
  /// Returns the position in `posted` of the frame that was posted with `tag`.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t tag) const {
    return posted.begin() + (static_cast<std::uint32_t>(tag) - static_cast<std::uint32_t>(posted.begin()));
  }

  // Frames to send. When the peer has received an EAGER frame, its send has ended. When the peer has received an RTS
  // frame, the announcement of its send is complete.
  std::unique_ptr<std::byte[]> send_memory;
  std::vector<std::uint32_t> free_send_frames;
  std::vector<Operation*> send_frame_of;
  std::vector<OperationHandle> announcement_of;  ///< for each frame, the send whose RTS it carries

  // Unexpected messages stored here. Each count is a total since the connection began.
  std::vector<Unexpected> entries;
  std::vector<std::uint32_t> free_entries;
  List<Unexpected, &Unexpected::in_link> unexpected;
  /// Ids of messages to confirm with CANCELLED; their entries are not released yet.
  GrowableRing<std::uint64_t> taken_back;
  std::uint64_t came = 0;         ///< number of EAGER and RTS received
  std::uint64_t released = 0;     ///< number of received messages that are no longer unexpected
  std::uint64_t credit_sent = 0;  ///< credit already sent to the peer

  // Unexpected messages at the peer.
  std::uint32_t peers_window = 0;
  std::uint64_t sent = 0;
  std::uint64_t credit = 0;

  OperationList held;       ///< sends that are not announced yet
  OperationList announced;  ///< sends that are announced
  /// Answers to CTS and GRANT frames, in the order in which these frames arrived.
  struct Granted {
    Operation* send = nullptr;  ///< null if the answer sends nothing
    bool gives_back = false;    ///< whether the answer gives back a GRANT
  };
  GrowableRing<Granted> granted;
  /// Number of entries in `granted` that give back a GRANT, which is still open at the peer.
  std::uint32_t given_back = 0;
  std::uint32_t owed_nothing = 0;       ///< number of entries in `granted` for a CTS whose send has already ended here
  std::uint32_t under_way = 0;          ///< number of sends in `granted` or on the data connection
  Bytes bytes_under_way = 0;            ///< bytes of the sends counted in `under_way`
  std::uint32_t eager_under_way = 0;    ///< number of sends on the control connection
  OperationList matched;                ///< receives whose CTS is not sent yet
  GrowableRing<std::uint64_t> cancels;  ///< ids of messages for which to send CANCEL
  std::vector<std::uint64_t> zombies;   ///< ids of announced sends that have ended, but may still be requested

  // Grants that this end has given to the peer before a message was announced.
  std::uint64_t grants_given = 0;
  std::uint32_t grants_open = 0;            ///< number of given grants that are neither used nor given back
  GrowableRing<std::uint64_t> withdrawals;  ///< numbers of grants for which to send WITHDRAW

  // Unused grants from the peer, in the order of the data connection. All of them come after the entries of `granted`.
  struct Ahead {
    std::uint64_t number = 0;
    std::uint64_t tag = 0;
    Bytes length = 0;
  };
  std::array<Ahead, kMaxAhead> at_hand;
  std::uint32_t count_at_hand = 0;
  std::uint64_t grants_got = 0;
  OperationList sent_ahead;  ///< sends that use a grant without an announcement, until they end
  /// The latest messages sent as EAGER or RTS, indexed by `sent`. The peer may have sent a grant before it received
  /// them.
  struct Recent {
    std::uint64_t tag = 0;
    OperationHandle announced = 0;  ///< handle of the announced send; 0 for EAGER
  };
  static constexpr std::uint64_t kRecent = 64;
  std::array<Recent, kRecent> recent;
  [[nodiscard]] Recent& recent_of(std::uint64_t number) { return recent[number % kRecent]; }
};

/// The state of a connection that any thread may read, in one word. It contains the kind, and whether operations may be
/// posted. If they may not, it contains how the connection has ended or is ending.
struct Face {
  static constexpr std::uint64_t kMayPost = 0x10;
  /// Set if only this word is left of the connection. A new connection may take its place at any time.
  static constexpr std::uint64_t kLeft = 0x20;

  static std::uint64_t open(std::uint32_t generation, ConnectionKind kind) {
    return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(kind) | kMayPost;
  }
  static std::uint64_t over(std::uint32_t generation, ConnectionKind kind, Code code, Cause cause) {
    return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(cause) << 16 |
           static_cast<std::uint64_t>(code) << 8 | static_cast<std::uint64_t>(kind);
  }
  static std::uint64_t none(std::uint32_t generation) { return std::uint64_t{generation} << 32; }
  static std::uint32_t generation(std::uint64_t face) { return static_cast<std::uint32_t>(face >> 32); }
  static std::uint32_t next(std::uint32_t generation) { return generation + 1 == 0 ? 1 : generation + 1; }
  static bool is_some(std::uint64_t face) { return (face & 0xF) != 0; }
  static ConnectionKind kind(std::uint64_t face) { return static_cast<ConnectionKind>(face & 0xF); }
  static Code code(std::uint64_t face) { return static_cast<Code>(face >> 8 & 0xFF); }
  static Cause cause(std::uint64_t face) { return static_cast<Cause>(face >> 16 & 0xFF); }
};

struct Link {
  enum class State : std::uint8_t {
    free,
    connecting,  ///< this end has sent its hello
    greeting,    ///< an incoming connection whose hello has not arrived
    unpaired,    ///< only one of the two transport connections (control or data) exists yet
    open,
    closing,  ///< one end has called close(); posted operations are still carried out
    ended,    ///< transport connections are ending, or unexpected messages are still stored
  };
  static constexpr std::uint32_t kControl = 0;  ///< index of the control connection, or of the only connection
  static constexpr std::uint32_t kData = 1;

  /// A Face, which any thread may read. The upper half is the generation. The lower half is the rest; it is 0 if there
  /// is no connection. After its end, a connection leaves its face here until a new connection takes the place, or
  /// until close() forgets the old connection.
  std::atomic<std::uint64_t> face{std::uint64_t{1} << 32};
  std::atomic<std::uint32_t> job{0};  ///< number of the job's slot plus 1; 0 if none

  State state = State::free;
  ConnectionKind kind = ConnectionKind::ordered;
  bool is_client = false;
  bool is_announced = false;     ///< whether the program knows the connection and gets an event when it ends
  bool reports_failure = false;  ///< connect() has no operation to report a failure, so the event of the end reports it
  /// Whether close() was called after the end; the handle is then freed with the connection.
  bool is_forgotten = false;
  bool has_event_place = false;
  bool counted = false;  ///< whether the connection counts towards max_connections
  bool closes_here = false;
  bool owes_answers_only = false;  ///< closing: all sends have ended, and only answers with a deadline are left
  ListHook<Link> among_unintroduced;
  std::uint32_t slot = 0;
  ConnectionHandle handle = 0;
  Code end_code = Code::ok;
  Cause end_cause = Cause::none;
  EndpointAddress peer;  ///< the address that the program named (client), or the address in the peer's hello (server)
  Address remote{};      ///< peer address of the transport connection
  std::uint64_t token = 0;
  Operation* connect = nullptr;

  std::array<ConnectionId, 2> transport{};  ///< 0 if the transport connection does not exist or has ended
  std::array<bool, 2> greeted{};            ///< whether the peer's hello has arrived
  /// Only in State::unpaired: true if the data connection exists, false if the control connection exists.
  bool unpaired_data = false;
  std::uint32_t peers_eager_limit = 0;
  std::uint32_t peers_window = 0;
  std::array<HelloBuffer, 2> hello_in{};
  std::array<HelloBuffer, 2> hello_out{};

  OperationList sends;     ///< ordered sends that wait until the connection opens or the transport has room
  OperationList receives;  ///< ordered receives that wait until the connection opens or the transport has room
  std::uint32_t posted_receives = 0;  ///< number of tagged receives that name this connection
  std::unique_ptr<Tagged> tagged;

  [[nodiscard]] bool is_gone() const { return transport[0] == 0 && transport[1] == 0; }
};

}  // namespace mltcp::endpoint
