// What the two processes of a measurement tell each other: JSON, a message each, over a MessageStream. Whoever listens
// believes nothing that it has not checked.
//
//   client                                               server
//   {"opening": true}                                    waits for longer: opening a NIC may take tens of seconds
//   {"hello": "mltcp.perf/1", "version", "cc"}, with "authenticate": true where the key is used for that alone
//                                                     -> {"address": hex, "device", "version"}  or {"error": text}
//   connects its endpoint                             -> {"connected": number}
//   {"batch": {"test", "bytes", "messages", "depth"}} -> {"ready": true}
//   ... the batch ...                                 -> {"done": nanoseconds}
//   {"bye": true}
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "mltcp/lab/experiment/perf/perf.h"

namespace mltcp::experiment::perf {

inline constexpr StreamRole kServerRole{"server", "--listen", "mltcp perf --listen"};

using Json = nlohmann::json;

inline constexpr const char* kProtocol = "mltcp.perf/1";
inline constexpr Bytes kMaxBytes = (Bytes{1} << 32) - 1;
inline constexpr std::uint64_t kMaxMessages = std::uint64_t{1} << 40;

struct Batch {
  PerfTest test = PerfTest::latency;
  Bytes bytes = 1;             ///< of a message
  std::uint64_t messages = 0;  ///< each way, on all connections together
  std::uint32_t depth = 1;
};

/// The other process is told, and this one ends.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How a sentence about the other process, with which `stream` has failed, goes on: "has gone; see what it says", or
/// why it has, if the last that it sent says so.
std::string why_gone(MessageStream& stream, const StreamError& error);

/// The next message. Throws StreamError, RunError if nothing comes within `limit` or the user interrupts, Refused for
/// what is no such message or is {"error"}. Meanwhile `drive` is called, at first and then once a millisecond or so: an
/// endpoint that this thread drives has a peer who may want to hear of it again, as where an acknowledgement was lost.
Json receive(MessageStream& stream, Nanos limit, const std::function<std::string()>& interrupted,
             const std::function<void()>& drive = {});
/// What a message says. Throws Refused likewise.
Json message_of(const std::string& text);
void send(MessageStream& stream, const Json& message);

Json to_json(const Batch& batch);
/// Throws Refused.
Batch batch_of(const Json& json);
/// A text of at most `longest` bytes. Throws Refused.
std::string text_of(const Json& json, const char* key, std::size_t longest = 400);

std::string to_hex(std::span<const std::byte> bytes);
std::vector<std::byte> from_hex(const std::string& text);

/// Of this end of a connected socket, without its port; 127.0.0.1 for a Unix socket. Throws RunError.
std::string own_ip(int socket);

}  // namespace mltcp::experiment::perf
