// A connection of the endpoint: one connection of the transport for ordered messages, two for messages by tag (control
// and data). The thread that drives the shard owns it; what others ask before they post stands at the top.
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

/// A message that no receive has asked for: one that is held here, in the frame that it came in, or one that waits at
/// its sender.
struct Unexpected {
  Link* link = nullptr;
  bool used = false;
  bool announced = false;  ///< waits at its sender
  bool claimed = false;    ///< peek() has taken it
  std::uint32_t generation = 1;
  std::uint32_t index = 0;
  std::uint32_t frame = 0;  ///< that holds it
  std::uint64_t tag = 0;
  std::uint64_t id = 0;  ///< announced: what its sender calls it
  Bytes length = 0;
  ListHook<Unexpected> in_link;
  ListHook<Unexpected> in_all;
  HashHook<Unexpected> by_source;
  HashHook<Unexpected> by_tag;
};

/// What only tagged connections have. Made when the connection is.
struct Tagged {
  Tagged(const EndpointConfig& config, Link& link);

  [[nodiscard]] std::span<std::byte> receive_frame(std::uint32_t frame) {
    return std::span(receive_memory.get() + frame * frame_bytes, frame_bytes);
  }
  [[nodiscard]] std::span<std::byte> send_frame(std::uint32_t frame) {
    return std::span(send_memory.get() + frame * frame_bytes, frame_bytes);
  }

  std::size_t frame_bytes;
  Bytes eager_limit;  ///< of both ends

  // Frames that come. They are dealt with in the order in which they were sent, which is that of the buffers.
  struct Posted {
    std::uint32_t frame = 0;
    std::uint32_t length = 0;
    bool arrived = false;
  };
  std::unique_ptr<std::byte[]> receive_memory;
  std::vector<std::uint32_t> free_receive_frames;
  GrowableRing<Posted> posted;
  /// Of the frame that was posted with `tag`.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t tag) const {
    return posted.begin() + (static_cast<std::uint32_t>(tag) - static_cast<std::uint32_t>(posted.begin()));
  }

  // Frames that go. Whose message one carries is told when it has arrived.
  std::unique_ptr<std::byte[]> send_memory;
  std::vector<std::uint32_t> free_send_frames;
  std::vector<Operation*> send_frame_of;
  std::vector<OperationHandle> announcement_of;  ///< of a send whose RTS the frame carries

  // Unexpected messages here. Counts are of all since the connection began.
  std::vector<Unexpected> entries;
  std::vector<std::uint32_t> free_entries;
  List<Unexpected, &Unexpected::in_link> unexpected;
  GrowableRing<std::uint64_t> taken_back;  ///< ids to be told of as CANCELLED; their entries are not released yet
  std::uint64_t came = 0;                  ///< EAGER and RTS
  std::uint64_t released = 0;              ///< of them, that are not unexpected (any more)
  std::uint64_t told = 0;                  ///< credit that the peer knows of

  // And at the peer.
  std::uint32_t peers_window = 0;
  std::uint64_t sent = 0;
  std::uint64_t credit = 0;

  OperationList held;       ///< sends that are not announced yet
  OperationList announced;  ///< and those that are
  /// For a CTS or GRANT, in their order.
  struct Granted {
    Operation* send = nullptr;  ///< null: nothing is sent for it
    bool gives_back = false;    ///< a GRANT
  };
  GrowableRing<Granted> granted;
  std::uint32_t given_back = 0;         ///< of them, those that give back: each is open at the peer yet
  std::uint32_t owed_nothing = 0;       ///< of them, those for a CTS of a send that has ended here
  std::uint32_t under_way = 0;          ///< sends in `granted`, and those that the data connection has
  Bytes bytes_under_way = 0;            ///< of these
  std::uint32_t eager_under_way = 0;    ///< sends that the control connection has
  OperationList matched;                ///< receives whose CTS has yet to be sent
  GrowableRing<std::uint64_t> cancels;  ///< ids to be told of as CANCEL
  std::vector<std::uint64_t> zombies;   ///< ids of announced sends that have ended here and may still be asked for

  // Grants ahead to the peer.
  std::uint64_t grants_given = 0;
  std::uint32_t grants_open = 0;            ///< of them, neither used nor given back
  GrowableRing<std::uint64_t> withdrawals;  ///< numbers of grants to be told of as WITHDRAW

  // And from the peer: those at hand, which nothing has been sent for yet, in the order of the data connection, where
  // they all come behind what is in `granted`.
  struct Ahead {
    std::uint64_t number = 0;
    std::uint64_t tag = 0;
    Bytes length = 0;
  };
  std::array<Ahead, kMaxAhead> at_hand;
  std::uint32_t count_at_hand = 0;
  std::uint64_t grants_got = 0;
  OperationList sent_ahead;  ///< sends for a grant that were not announced, until they have ended
  /// The latest messages that were sent as EAGER and RTS, by `sent`, which a grant may have crossed.
  struct Recent {
    std::uint64_t tag = 0;
    OperationHandle announced = 0;  ///< 0: EAGER
  };
  static constexpr std::uint64_t kRecent = 64;
  std::array<Recent, kRecent> recent;
  [[nodiscard]] Recent& recent_of(std::uint64_t number) { return recent[number % kRecent]; }
};

/// What any thread may know of a connection, in one word: what it carries, whether it may be posted on, and if not how
/// it has ended (while it closes: is ending).
struct Face {
  static constexpr std::uint64_t kMayPost = 0x10;
  static constexpr std::uint64_t kLeft =
      0x20;  ///< its place may be another's at any time: nothing but this is left of it

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
    connecting,  ///< this end has asked
    greeting,    ///< a connection came in, and has yet to say whose it is
    unpaired,    ///< control or data of a tagged connection, the other has yet to come
    open,
    closing,  ///< close() was called: what is posted still goes
    ended,    ///< its transport is going, or messages of it are still held
  };
  static constexpr std::uint32_t kControl = 0;  ///< or the only one
  static constexpr std::uint32_t kData = 1;

  /// For all threads: the generation above; below what may be done, and once nothing may be posted why. 0 below: there
  /// is none. What has ended leaves its face in its place until a new connection takes that, or close() forgets it.
  std::atomic<std::uint64_t> face{std::uint64_t{1} << 32};
  std::atomic<std::uint32_t> job{0};  ///< number of its slot and 1; 0: none

  State state = State::free;
  ConnectionKind kind = ConnectionKind::ordered;
  bool is_client = false;
  bool is_announced = false;   ///< the program knows of it: it is told of the end
  bool tells_failure = false;  ///< connects, and no operation tells how that went: the event of the end does
  bool is_forgotten = false;   ///< close() was called after its end: its handle goes with it
  bool has_event_place = false;
  bool counted = false;  ///< among max_connections
  bool closes_here = false;
  bool owes_answers_only = false;  ///< closing: all sends have ended, and the peer has so long to take the rest
  ListHook<Link> among_strangers;
  std::uint32_t slot = 0;
  ConnectionHandle handle = 0;
  Code end_code = Code::ok;
  Cause end_cause = Cause::none;
  EndpointAddress peer;  ///< as named (client), as it has introduced itself (server)
  Address remote{};      ///< of the transport
  std::uint64_t token = 0;
  Operation* connect = nullptr;

  std::array<ConnectionId, 2> transport{};  ///< 0: none, or gone
  std::array<bool, 2> greeted{};            ///< the peer's hello has come
  bool unpaired_data = false;               ///< unpaired: which of the two it is
  std::uint32_t peers_eager_limit = 0;
  std::uint32_t peers_window = 0;
  std::array<HelloBuffer, 2> hello_in{};
  std::array<HelloBuffer, 2> hello_out{};

  OperationList sends;                ///< ordered, held: not open yet, or no room
  OperationList receives;             ///< likewise
  std::uint32_t posted_receives = 0;  ///< by tag, that name it
  std::unique_ptr<Tagged> tagged;

  [[nodiscard]] bool is_gone() const { return transport[0] == 0 && transport[1] == 0; }
};

}  // namespace mltcp::endpoint
