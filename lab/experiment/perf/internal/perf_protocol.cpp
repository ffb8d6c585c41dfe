// See perf_protocol.h.
#include "mltcp/lab/experiment/perf/internal/perf_protocol.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::experiment::perf {
namespace {

std::uint64_t number_of(const Json& json, const char* key, std::uint64_t min, std::uint64_t max) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned() || *found < min || *found > max)
    throw Refused(fmt::format("the other side sent an invalid \"{}\"; use the same build on both", key));
  return found->get<std::uint64_t>();
}

}  // namespace

std::string why_gone(MessageStream& stream, const StreamError& error) {
  constexpr std::string_view gone = "closed the connection";
  std::string why = error.what();
  if (why != gone) return why;
  try {
    // After a failed send, the last message of the other side may still be unread. It can show why the other side left.
    static_cast<void>(stream.receive());
  } catch (const StreamError& last) {
    why = last.what();
  }
  return why == gone ? why + "; read its output" : why;
}

Json receive(MessageStream& stream, Nanos limit, const std::function<std::string()>& interrupted,
             const std::function<void()>& drive) {
  constexpr Nanos look{100'000'000};
  constexpr Nanos turn{1'000'000};
  const Nanos end = monotonic_now() + limit;
  for (;;) {
    if (drive) drive();
    if (const auto text = stream.receive()) return message_of(*text);
    if (const std::string why = interrupted ? interrupted() : std::string(); !why.empty()) throw RunError(why);
    const Nanos left = end - monotonic_now();
    if (left <= Nanos()) throw RunError("the other side does not answer; read its output");
    stream.wait(std::min(left, drive ? turn : look));
  }
}

Json message_of(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Refused("the other side is not mltcp perf; check which program listens there");
  if (json.contains("error")) throw Refused(one_line(text_of(json, "error", 1000)));
  return json;
}

void send(MessageStream& stream, const Json& message) {
  stream.send(message.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json to_json(const Batch& batch) {
  return {{"batch",
           {{"test", experiment::to_text(batch.test)},
            {"bytes", batch.bytes},
            {"messages", batch.messages},
            {"depth", batch.depth}}}};
}

Batch batch_of(const Json& json) {
  const auto found = json.find("batch");
  if (found == json.end() || !found->is_object())
    throw Refused("the other side did not send what to measure; use the same build on both");
  Batch batch;
  try {
    batch.test = perf_test_of(text_of(*found, "test"));
  } catch (const InputError& error) {
    throw Refused(error.what());
  }
  batch.bytes = number_of(*found, "bytes", 1, kMaxBytes);
  batch.messages = number_of(*found, "messages", 1, kMaxMessages);
  batch.depth = static_cast<std::uint32_t>(number_of(*found, "depth", 1, 1024));
  return batch;
}

std::string text_of(const Json& json, const char* key, std::size_t longest) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string() || found->get_ref<const std::string&>().size() > longest)
    throw Refused(fmt::format("the other side did not send its \"{}\"; use the same build on both", key));
  return found->get<std::string>();
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    std::uint8_t byte = 0;
    if (std::from_chars(&text[i], &text[i] + 2, byte, 16).ptr != &text[i] + 2) return {};
    bytes.push_back(std::byte{byte});
  }
  return bytes;
}

std::string own_ip(int socket) {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
    sockaddr_storage storage;
  } name{};
  socklen_t length = sizeof name;
  if (getsockname(socket, &name.any, &length) != 0)
    throw RunError("the address of this end of the connection is unknown; give it with --ip");
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (name.any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &name.v4.sin_addr, text.data(), text.size());
  } else if (name.any.sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &name.v6.sin6_addr, text.data(), text.size());
    // A dual-stack socket shows an IPv4 address as an IPv6 address with this prefix.
    const std::string_view mapped = "::ffff:";
    if (std::string_view(text.data()).starts_with(mapped) && IN6_IS_ADDR_V4MAPPED(&name.v6.sin6_addr))
      return std::string(text.data() + mapped.size());
  } else {
    return "127.0.0.1";
  }
  return text.data();
}

}  // namespace mltcp::experiment::perf
