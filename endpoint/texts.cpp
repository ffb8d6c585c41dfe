// What people read: codes, causes, completions.
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
    {"truncated", "the message is longer than the buffer, which has its beginning; post a longer one"},
    {"nothing", "there is nothing of that kind now; look again later"},
    {"timed_out", "the time limit was there first; allow more, or see what the peer waits for"},
    {"cancelled", "it was cancelled, and counts as never posted; post it again if it is still wanted"},
    {"too_late", "it has gone too far to be undone; wait for its end"},
    {"queue_full", "as many operations as allowed are under way; post again after some end, or raise max_operations"},
    {"no_room", "as many connections, jobs or regions as allowed are there; close some, or raise the limit"},
    {"closed", "the connection is closed; connect again"},
    {"refused", "nobody there accepts the connection; see that the peer's endpoint accepts and has room"},
    {"unreachable",
     "nothing was heard of the peer for peer_timeout; see that its process runs and the network carries"
     " UDP"},
    {"aborted", "the connection was ended at once; connect again"},
    {"version", "the other side speaks another version; install the same build on both"},
    {"wrong_peer", "another endpoint than the one named is at that address; fetch the peer's new address"},
    {"protocol", "the peer broke the protocol, and its connection was ended; install the same build on both sides"},
    {"bad_address", "the bytes are no address of an endpoint; hand over all that address() gave"},
    {"invalid", "an argument is out of range; see the function's description"},
    {"unknown", "the handle names nothing, or what is gone; use each until its end only"},
    {"too_long", "a message has at most 4 GiB; send it in pieces"},
    {"unsupported",
     "not on such a connection, in a callback, or as this endpoint is driven; see the function's "
     "description"},
    {"forked", "this process is a fork of the one that opened the endpoint; open one after fork()"},
    {"destroyed", "the endpoint was closed; open another"},
    {"failed", "the system or the datapath failed; see failure()"},
    {"no_key",
     "the peer and this end have no key in common, one has none or another one, or only one encrypts; give both "
     "the same key file and the same MLTCP_AUTHENTICATE, or no key"},
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
      return "the peer was silent";
    case Cause::nobody_listens:
      return "nobody listens there";
    case Cause::peer_full:
      return "the peer has no room for another connection";
    case Cause::no_introduction:
      return "who answers there does not introduce itself as an endpoint";
    case Cause::other_endpoint:
      return "it is not the endpoint that its address named";
    case Cause::other_version:
      return "of the protocol";
    case Cause::malformed_frame:
      return "what it said can't be";
    case Cause::beyond_credit:
      return "it went beyond its credit";
    case Cause::unasked:
      return "it answered what nobody had asked";
    case Cause::wrong_length:
      return "it sent another length than it had announced";
    case Cause::connections_in_use:
      return "all connections of the shard are in use";
    case Cause::end_of_endpoint:
      return "with its endpoint";
    case Cause::false_acknowledgement:
      return "what was never sent was acknowledged, or marks of congestion were hidden";
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
