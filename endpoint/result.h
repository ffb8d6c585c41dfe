// Codes that an endpoint's calls return, and with which its operations end. Calls and operations share one list, so
// that a binding to another language needs only one table.
#pragma once

#include <cstdint>
#include <string_view>

namespace mltcp::endpoint {

/// Values are part of the binary interface: they never change, and new ones are added at the end.
enum class Code : std::uint8_t {
  ok = 0,
  truncated = 1,     ///< the message was received, but the buffer holds only its beginning
  nothing = 2,       ///< the call found no message or event
  timed_out = 3,     ///< the time limit has passed
  cancelled = 4,     ///< cancel() ended the operation, or the sender cancelled the message (see Completion::cause)
  too_late = 5,      ///< the operation can no longer be cancelled, and ends as if cancel() was not called
  queue_full = 6,    ///< max_operations operations are under way; post again after one has ended
  no_room = 7,       ///< the configured number of connections, jobs or queues is in use
  closed = 8,        ///< the connection was closed, here or by the peer
  refused = 9,       ///< no endpoint at that address accepts connections of this kind
  unreachable = 10,  ///< no packet arrived from the peer for EndpointConfig::peer_timeout
  aborted = 11,      ///< the connection was ended at once, here or by the peer
  version = 12,      ///< the peer, or the blob of its address, has another version than this endpoint
  wrong_peer = 13,   ///< another endpoint now uses the peer's address, for example after a restart
  protocol = 14,     ///< the peer broke the protocol; its connection was ended
  bad_address = 15,  ///< the blob is not the address of an endpoint: it is incomplete, damaged, or something else
  invalid = 16,      ///< an argument is out of range
  unknown = 17,      ///< the handle names no object, or an object that no longer exists
  too_long = 18,     ///< the message is longer than 4 GiB
  unsupported = 19,  ///< the call does not suit the kind of connection or the way of driving
  forked = 20,       ///< another process opened the endpoint, and this one is its fork
  destroyed = 21,    ///< the endpoint was closed
  failed = 22,       ///< the system or the datapath failed; Endpoint::failure() says how
  no_key = 23,       ///< the two ends do not have the same key, or only one of them encrypts
};
inline constexpr std::uint8_t kCodes = 24;

/// Returns the name of the code, such as "ok" or "timed_out", or "unknown code" for other values.
std::string_view name_of(Code code) noexcept;
/// Returns one line "cause; cure" about the code, for people.
std::string_view to_text(Code code) noexcept;

}  // namespace mltcp::endpoint
