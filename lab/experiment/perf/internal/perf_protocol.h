// Control messages between the two processes of a measurement: JSON objects over a MessageStream. Each side checks
// everything that it receives.
//
//   client                                               server
//   {"opening": true}                                    waits for longer: opening a NIC may take tens of seconds
//   {"hello": "mltcp.perf/1", "version", "cc"}, with "authenticate": true if the key does not encrypt
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
  std::uint64_t messages = 0;  ///< in each direction, on all connections together
  std::uint32_t depth = 1;
};

/// Ends the session for this reason; the server also sends it to the client.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The rest of a sentence about the other process after `stream` has failed: "closed the connection; read its output",
/// or the reason that its last data shows.
std::string why_gone(MessageStream& stream, const StreamError& error);

/// Returns the next message. Throws StreamError, RunError if nothing arrives within `limit` or the user interrupts,
/// Refused if the message is not a JSON object or contains "error". Calls `drive` first and then about once a
/// millisecond: this thread's endpoint may have to repeat e.g. a lost acknowledgement.
Json receive(MessageStream& stream, Nanos limit, const std::function<std::string()>& interrupted,
             const std::function<void()>& drive = {});
/// Parses a message. Throws Refused likewise.
Json message_of(const std::string& text);
void send(MessageStream& stream, const Json& message);

Json to_json(const Batch& batch);
/// Throws Refused.
Batch batch_of(const Json& json);
/// A text of at most `longest` bytes. Throws Refused.
std::string text_of(const Json& json, const char* key, std::size_t longest = 400);

std::string to_hex(std::span<const std::byte> bytes);
std::vector<std::byte> from_hex(const std::string& text);

/// Address of this end of a connected socket, without its port; 127.0.0.1 for a Unix socket. Throws RunError.
std::string own_ip(int socket);

}  // namespace mltcp::experiment::perf
