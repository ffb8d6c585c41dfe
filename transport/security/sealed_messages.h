// Messages between processes over a byte stream (TCP, a Unix socket), sealed under a job's key. Without the key, an
// attacker can neither take part nor read, change, repeat, omit or reorder messages, but can end the stream.
//
// Each end first sends a greeting in the clear, a line of text: "mltcp-sealed/1 ID RANDOM" with the key's id (16
// hexadecimal digits) and 16 random bytes (32 digits). The keys of both directions are derived from both ends' random
// bytes and the key (key_schedule.h, "control"). If the first sealed message of an end can be opened, that end has the
// key. A sealed message consists of a tag of 12 bytes and the ciphertext. Messages are numbered from 0.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "mltcp/transport/security/aead.h"
#include "mltcp/transport/security/copy_watch.h"
#include "mltcp/transport/security/job_key.h"

namespace mltcp::security {

/// Thrown for a greeting that is invalid or names another key than this end's key. what() completes a sentence about
/// the peer, such as "has another key, ...".
struct GreetingError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One end of a stream. Only one thread at a time may use it.
class SealedMessages {
 public:
  /// Bytes that sealing adds to a message.
  static constexpr std::size_t kOverhead = Aead::kTagBytes;
  /// Maximum length of a greeting, in bytes.
  static constexpr std::size_t kLongestGreeting = 80;

  /// Returns whether `message` is a greeting, so that an end without a key can report that the peer requires one.
  static bool is_greeting(std::string_view message);

  /// `is_client` is true at the end that connected.
  SealedMessages(const JobKey& key, bool is_client);

  /// Returns the greeting. Send it before all other messages, in the clear.
  [[nodiscard]] std::string greeting() const;
  /// Processes the peer's greeting, its first message. Throws GreetingError if it is invalid or belongs to another key.
  void meet(std::string_view greeting);
  [[nodiscard]] bool has_met() const { return has_met_; }

  // Call the following functions only after meet().

  /// Returns the sealed message. Throws RunError if this process was copied (copy_watch.h), because two processes then
  /// have the same keys.
  std::string seal(std::string_view message);
  /// Returns the opened message. Empty if `sealed` is not the peer's next message; close the stream in that case.
  std::optional<std::string> open(std::string_view sealed);

 private:
  struct Direction {
    TrafficKey key;
    std::uint64_t number = 0;
  };

  JobKey key_;
  EndRandom own_;
  bool is_client_;
  bool has_met_ = false;
  CopyWatch watch_;
  bool is_copied_ = false;
  Aead aead_{1};
  Direction sending_;
  Direction receiving_;
};

}  // namespace mltcp::security
