// Sealed streams of messages (see sealed_messages.h).
#include "mltcp/transport/security/sealed_messages.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <span>

#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"

namespace mltcp::security {
namespace {

constexpr std::string_view kLabel = "mltcp-sealed/1 ";
constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kRandomDigits = 2 * std::tuple_size_v<EndRandom>;

constexpr std::uint64_t kSending = 1;  // serial numbers of the two keys of a stream
constexpr std::uint64_t kReceiving = 2;

EndRandom draw() {
  EndRandom drawn{};
  draw_system_random(drawn);
  return drawn;
}

/// Reads a hexadecimal number. Returns false unless the number takes up all of `digits` and fits `Number`.
template <typename Number>
bool read_hex(std::string_view digits, Number& number) {
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return problem == std::errc() && end == digits.data() + digits.size();
}

}  // namespace

bool SealedMessages::is_greeting(std::string_view message) { return message.starts_with(kLabel); }

SealedMessages::SealedMessages(const JobKey& key, bool is_client) : key_(key), own_(draw()), is_client_(is_client) {}

std::string SealedMessages::greeting() const {
  std::string text = fmt::format("{}{:016x} ", kLabel, key_.id());
  for (const std::byte byte : own_) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

void SealedMessages::meet(std::string_view greeting) {
  if (!is_greeting(greeting))
    throw GreetingError("uses no key: give it the key, too (--key FILE), or leave the key out here");
  greeting.remove_prefix(kLabel.size());
  EndRandom peer{};
  std::uint64_t id = 0;
  bool is_whole = greeting.size() == kIdDigits + 1 + kRandomDigits && greeting[kIdDigits] == ' ' &&
                  read_hex(greeting.substr(0, kIdDigits), id);
  for (std::size_t i = 0; is_whole && i < peer.size(); ++i) {
    unsigned byte = 0;
    is_whole = read_hex(greeting.substr(kIdDigits + 1 + 2 * i, 2), byte);
    peer[i] = static_cast<std::byte>(byte);
  }
  if (!is_whole) throw GreetingError("sends an invalid greeting");
  if (id != key_.id())
    throw GreetingError(
        fmt::format("has another key, {:016x}, than this end, {:016x}: give both the same", id, key_.id()));
  // If an attacker sent this end's own greeting back, both directions would have the same key.
  if (peer == own_) throw GreetingError("sends this end's own greeting back");
  const ConnectionSecrets secrets =
      is_client_ ? control_secrets(key_.secret(), own_, peer) : control_secrets(key_.secret(), peer, own_);
  sending_ = {traffic_key(is_client_ ? secrets.client : secrets.server), 0};
  receiving_ = {traffic_key(is_client_ ? secrets.server : secrets.client), 0};
  has_met_ = true;
}

std::string SealedMessages::seal(std::string_view message) {
  CopyWatch::look();
  is_copied_ = watch_.was_copied() || is_copied_;
  if (is_copied_)
    throw RunError(
        "this process was copied (by fork(), or by resuming its machine from a snapshot), and two processes must not "
        "use the same keys; start this one again");
  std::string sealed(kOverhead + message.size(), '\0');
  auto* const bytes = reinterpret_cast<std::byte*>(sealed.data());
  const std::array<std::span<const std::byte>, 1> pieces{std::as_bytes(std::span(message))};
  const Aead::Tag tag = aead_.seal({sending_.key, kSending, 0}, sending_.number++, {}, pieces, bytes + kOverhead);
  std::memcpy(bytes, tag.data(), tag.size());
  return sealed;
}

std::optional<std::string> SealedMessages::open(std::string_view sealed) {
  if (sealed.size() < kOverhead) return std::nullopt;
  Aead::Tag tag{};
  std::memcpy(tag.data(), sealed.data(), tag.size());
  sealed.remove_prefix(kOverhead);
  std::string message(sealed.size(), '\0');
  const std::array<std::span<const std::byte>, 1> pieces{std::as_bytes(std::span(sealed))};
  if (!aead_.open({receiving_.key, kReceiving, 0}, receiving_.number, {}, pieces, tag,
                  reinterpret_cast<std::byte*>(message.data())))
    return std::nullopt;
  ++receiving_.number;
  return message;
}

}  // namespace mltcp::security
