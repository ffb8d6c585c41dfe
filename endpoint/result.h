// The codes that an endpoint's calls return, and with which its operations end. Both use one list, so that bindings to
// other languages map one table.
#pragma once

#include <cstdint>
#include <string_view>

namespace mltcp::endpoint {

/// Values are part of the binary interface: they never change, and new ones are added at the end.
enum class Code : std::uint8_t {
  ok = 0,
  truncated = 1,     ///< received, but longer than the buffer: the buffer holds the beginning
  nothing = 2,       ///< nothing was found
  timed_out = 3,     ///< the time limit has passed
  cancelled = 4,     ///< by cancel(); a receive also by its sender, see Completion::cause
  too_late = 5,      ///< the operation cannot be cancelled any more; it ends as it would have
  queue_full = 6,    ///< max_operations are under way: post again after one has ended
  no_room = 7,       ///< the configured number of connections, jobs or queues is in use
  closed = 8,        ///< the connection was closed, here or by the peer
  refused = 9,       ///< no endpoint at that address accepts such connections
  unreachable = 10,  ///< no packet arrived from the peer for EndpointConfig::peer_timeout
  aborted = 11,      ///< the connection was ended at once, here or by the peer
  version = 12,      ///< the peer, or its address, has another version
  wrong_peer = 13,   ///< another endpoint now uses that address, for example after a restart
  protocol = 14,     ///< the peer broke the protocol; its connection was ended
  bad_address = 15,  ///< the blob is not an address of an endpoint: incomplete, damaged, or something else
  invalid = 16,      ///< an argument is out of range
  unknown = 17,      ///< the handle names nothing, or an object that no longer exists
  too_long = 18,     ///< above 4 GiB
  unsupported = 19,  ///< not for this kind of connection, or not with this way of driving
  forked = 20,       ///< another process opened the endpoint, and this one is its fork
  destroyed = 21,    ///< the endpoint was closed
  failed = 22,       ///< the system or the datapath failed; Endpoint::failure() says how
  no_key = 23,       ///< the ends have no key in common: one has none or another one, or only one encrypts
};
inline constexpr std::uint8_t kCodes = 24;

/// "ok", "timed_out", ...; "unknown code" for other values.
std::string_view name_of(Code code) noexcept;
/// One line "cause; cure", for people.
std::string_view to_text(Code code) noexcept;

}  // namespace mltcp::endpoint
