// Control messages between the two processes of a measurement: JSON objects over a MessageStream. Each side checks
// everything that it receives.
//
//   client                                               server
//   {"opening": true}                                    waits longer, since opening a NIC may take tens of seconds
//   {"hello": "mltcp.perf/1", "version", "cc"}        -> {"address": hex, "device", "version"} or {"error": text}
//   connects its endpoint                             -> {"connected": number}
//   {"batch": {"test", "bytes", "messages", "depth"}} -> {"ready": true}
//   ... the batch ...                                 -> {"done": nanoseconds}
//   {"bye": true}
//
// "hello" contains "authenticate": true if messages are only authenticated, not encrypted.
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
  Bytes bytes = 1;             ///< length of each message
  std::uint64_t messages = 0;  ///< number of messages in each direction, on all connections together
  std::uint32_t depth = 1;
};

/// Thrown to end the session. The text is the reason. If the server throws, it also sends the reason to the client.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the end of a sentence about the other process after `stream` has failed, such as "closed the connection;
/// read its output". Uses the last data on `stream` if the data show the reason.
std::string why_gone(MessageStream& stream, const StreamError& error);

/// Returns the next message. Throws StreamError if the stream fails, RunError if nothing arrives within `limit` or the
/// user interrupts, and Refused if the message is not a JSON object or contains "error". Calls `drive` at once and then
/// about once per millisecond, so that this thread's endpoint can retransmit, for example, a lost acknowledgement.
Json receive(MessageStream& stream, Nanos limit, const std::function<std::string()>& interrupted,
             const std::function<void()>& drive = {});
/// Parses a message. Throws Refused if it is not a JSON object or contains "error".
Json message_of(const std::string& text);
void send(MessageStream& stream, const Json& message);

Json to_json(const Batch& batch);
/// Parses a batch. Throws Refused if a value is missing or out of range.
Batch batch_of(const Json& json);
/// Returns the text at `key`. Throws Refused if there is no text, or if the text is longer than `longest` bytes.
std::string text_of(const Json& json, const char* key, std::size_t longest = 400);

std::string to_hex(std::span<const std::byte> bytes);
std::vector<std::byte> from_hex(const std::string& text);

/// Returns the local IP address of a connected socket, without the port, or 127.0.0.1 for a Unix socket. Throws
/// RunError if the address is unknown.
std::string own_ip(int socket);

}  // namespace mltcp::experiment::perf
