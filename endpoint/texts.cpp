// Texts for people about codes, causes and completions.
#include <fmt/format.h>

#include <array>

#include "mltcp/endpoint/result.h"
#include "mltcp/endpoint/types.h"

namespace mltcp::endpoint {
namespace {

struct Words {
  std::string_view name;
  std::string_view text;
};

constexpr std::array<Words, kCodes> kWords{{
    {"ok", "it is done"},
    {"truncated", "the message is longer than the buffer, which has the first bytes; post a longer buffer"},
    {"nothing", "there is no such message or completion now; try again later"},
    {"timed_out", "the time limit expired; give a longer limit, or check why the peer is late"},
    {"cancelled", "the operation was cancelled and has no effect; post it again if it is still needed"},
    {"too_late", "the operation has progressed too far to be cancelled; wait for its completion"},
    {"queue_full",
     "the maximum number of operations is outstanding; post again after some are complete, or raise max_operations"},
    {"no_room", "the maximum number of connections, jobs or regions exists; close some, or raise the limit"},
    {"closed", "the connection is closed; connect again"},
    {"refused",
     "the peer does not accept the connection; check that its endpoint accepts connections and has room for one more"},
    {"unreachable",
     "no packet came from the peer for peer_timeout; check that its process runs and the network carries UDP"},
    {"aborted", "the connection was aborted; connect again"},
    {"version", "the peer has another version of the protocol; install the same build on both hosts"},
    {"wrong_peer", "another endpoint now has the peer's address; get the peer's new address"},
    {"protocol", "the peer broke the protocol, and its connection was ended; install the same build on both sides"},
    {"bad_address", "the bytes are not an endpoint's address; pass all bytes that address() returned"},
    {"invalid", "an argument is out of range; see the function's description"},
    {"unknown", "the handle is not valid, or no longer valid; use a handle only until its object ends"},
    {"too_long", "a message has at most 4 GiB; send it in pieces"},
    {"unsupported",
     "not allowed on this kind of connection, in a callback, or in this endpoint's mode; see the function's "
     "description"},
    {"forked", "the endpoint was opened before fork(), and this is the child process; open an endpoint after fork()"},
    {"destroyed", "the endpoint was closed; open another"},
    {"failed", "the system or the datapath failed; see failure()"},
    {"no_key",
     "the two ends have no key in common: their keys differ, one has none, or only one encrypts; give both the same "
     "key file and the same MLTCP_AUTHENTICATE, or no key"},
}};

std::string_view text_of(Cause cause) {
  switch (cause) {
    case Cause::none:
      return "";
    case Cause::here:
      return "by this end";
    case Cause::peer:
      return "by the peer";
    case Cause::silence:
      return "no packets from the peer";
    case Cause::nobody_listens:
      return "no endpoint listens there";
    case Cause::peer_full:
      return "the peer has no room for another connection";
    case Cause::no_introduction:
      return "the program at that address is not an endpoint";
    case Cause::other_endpoint:
      return "it is not the endpoint that its address named";
    case Cause::other_version:
      return "of the protocol";
    case Cause::malformed_frame:
      return "it sent a malformed message";
    case Cause::beyond_credit:
      return "it went beyond its credit";
    case Cause::unasked:
      return "it answered a request that was never sent";
    case Cause::wrong_length:
      return "it sent a length other than the announced one";
    case Cause::connections_in_use:
      return "all connections of the shard are in use";
    case Cause::end_of_endpoint:
      return "with its endpoint";
    case Cause::false_acknowledgement:
      return "it acknowledged packets that were never sent, or hid congestion marks";
  }
  return "";
}

std::string subject(const Completion& completion) {
  switch (completion.kind) {
    case Completion::Kind::connected:
      return "connecting to";
    case Completion::Kind::accepted:
      return "connection from";
    case Completion::Kind::sent:
      return fmt::format("send of {} bytes, tag {:#x}, to", completion.bytes, completion.tag);
    case Completion::Kind::received:
      return fmt::format("receive with tag {:#x} from", completion.tag);
    case Completion::Kind::peeked:
      return fmt::format("look for tag {:#x} from", completion.tag);
    case Completion::Kind::closed:
      return "connection with";
  }
  return "operation with";
}

}  // namespace

std::string_view name_of(Code code) noexcept {
  const auto number = static_cast<std::size_t>(code);
  return number < kWords.size() ? kWords[number].name : "unknown code";
}
std::string_view to_text(Code code) noexcept {
  const auto number = static_cast<std::size_t>(code);
  return number < kWords.size() ? kWords[number].text : "an unknown code; use one build of the library";
}

std::string to_text(Code code, Cause cause) {
  const std::string_view why = text_of(cause);
  return fmt::format("{}{}{}{}", to_text(code), why.empty() ? "" : " (", why, why.empty() ? "" : ")");
}

std::string to_text(const Completion& completion) {
  const std::string peer = completion.peer.port == 0 ? "any peer" : to_text(completion.peer);
  return fmt::format("{} {}: {}", subject(completion), peer, to_text(completion.code, completion.cause));
}

}  // namespace mltcp::endpoint
