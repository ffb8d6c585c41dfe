// What calls of an endpoint return, and how operations end: one list of codes for both, so that a caller in another
// language has one table to map.
#pragma once

#include <cstdint>
#include <string_view>

namespace mltcp::endpoint {

/// The values stay as they are: new ones are added at the end, so that they may cross a binary interface.
enum class Code : std::uint8_t {
  ok = 0,
  truncated = 1,     ///< received, but longer than the buffer: the buffer holds the beginning
  nothing = 2,       ///< there is nothing of what was looked for
  timed_out = 3,     ///< the time limit was there first
  cancelled = 4,     ///< by cancel(), here; of a receive also: by its sender, see Completion::cause
  too_late = 5,      ///< it can't be undone any more, and ends as it would have
  queue_full = 6,    ///< as many operations as the configuration allows are under way: post again after some end
  no_room = 7,       ///< as many connections, jobs or queues as the configuration allows are there
  closed = 8,        ///< the connection was closed, here or by the peer
  refused = 9,       ///< nobody there accepts such connections
  unreachable = 10,  ///< nothing was heard of the peer for EndpointConfig::peer_timeout
  aborted = 11,      ///< the connection was ended at once, here or by the peer
  version = 12,      ///< the other side speaks another version, or its address is of one
  wrong_peer = 13,   ///< another endpoint is at that address than the one that was named: it was started anew
  protocol = 14,     ///< the peer broke the protocol; its connection was ended
  bad_address = 15,  ///< the blob is no address of an endpoint: cut off, damaged, or something else
  invalid = 16,      ///< an argument is out of range
  unknown = 17,      ///< the handle names nothing, or what is not there any more
  too_long = 18,     ///< above 4 GiB
  unsupported = 19,  ///< not by such connections, or not the way that this endpoint is driven
  forked = 20,       ///< this process is a fork of the one that opened the endpoint
  destroyed = 21,    ///< the endpoint was closed
  failed = 22,       ///< the system or the datapath failed; Endpoint::failure() says how
  no_key =
      23,  ///< the peer has no key in common with this endpoint: one has none, or another one, or only one encrypts
};
inline constexpr std::uint8_t kCodes = 24;

/// "ok", "timed_out", ...; "unknown code" for what is none.
std::string_view name_of(Code code) noexcept;
/// "cause; cure" in one line, for people who see nothing else.
std::string_view to_text(Code code) noexcept;

}  // namespace mltcp::endpoint
