// Messages between the processes of an experiment, over TCP or a Unix socket. Unix sockets connect even processes in
// different network namespaces. A message is a text, preceded by its length as four bytes in network order. If both
// processes have a job's key, messages are sealed (transport/security/sealed_messages.h): the first text is a greeting,
// and all other texts are sealed.
//
// Only one thread may use a stream. The length of messages is limited, and so is the time that a peer may take to read
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/security/sealed_messages.h"

namespace mltcp::experiment {

/// The key that both processes use for a stream; null if messages are sent without encryption.
using StreamKey = std::shared_ptr<const security::JobKey>;

/// An address, written "HOST:PORT", "[2001:db8::1]:PORT" or "unix:/path".
struct StreamAddress {
  std::string host;  ///< name or IP address; empty for a Unix socket
  std::string port;  ///< number, 0 to 65535
  std::string path;
};
/// Parses an address. Throws InputError with cause and cure.
StreamAddress parse_stream_address(std::string_view text);
std::string to_text(const StreamAddress& address);

/// Returns the time of CLOCK_MONOTONIC.
Nanos wall_now();

/// Description of a peer for error messages: its name, the option that makes it listen, and the command that starts it.
struct StreamRole {
  std::string_view name;
  std::string_view option;
  std::string_view start;
  /// Text at the end of the error message if the peer cannot be reached; explains how to reach it.
  std::string_view reached = {};
};
inline constexpr StreamRole kCoordinatorRole{"coordinator", "--serve", "mltcp gen EXPERIMENT.toml --serve"};

/// Thrown if the peer has ended the stream or sent an invalid message. what() completes a sentence about the peer.
struct StreamError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown if both processes have different keys, or if only one of them has a key.
struct KeyMismatch : StreamError {
  using StreamError::StreamError;
};

class MessageStream {
 public:
  /// Takes ownership of `file`, a connected socket. With a key, messages are queued until the client's greeting has
  /// arrived.
  explicit MessageStream(int file, const StreamKey& key = nullptr);
  ~MessageStream();
  MessageStream(const MessageStream&) = delete;
  MessageStream& operator=(const MessageStream&) = delete;

  /// Connects to a listening peer. Tries for up to `limit`, because the peer may not listen yet. Stops early if
  /// `interrupted` returns a reason. Calls `waiting` once if the first attempt fails. With a key, also waits at most 10
  /// s for the peer's greeting. Throws RunError on failure.
  static std::unique_ptr<MessageStream> connect(const StreamAddress& address, Nanos limit,
                                                const std::function<std::string()>& interrupted,
                                                const StreamRole& role = kCoordinatorRole,
                                                const StreamKey& key = nullptr,
                                                const std::function<void()>& waiting = {});

  /// Sends a message. Blocks for at most 10 s while the peer does not read. Throws StreamError on failure.
  void send(std::string_view message);
  /// Returns the next message if it has arrived completely; empty if not. Does not block. Throws StreamError on
  /// failure.
  std::optional<std::string> receive();
  /// Waits until data may have arrived, for at most `limit` and never longer than 1 s.
  void wait(Nanos limit) const;
  /// Sets the maximum length of received messages in bytes, which is 64 KiB by default. Longer messages are errors.
  void set_longest(std::size_t bytes) { longest_ = bytes; }
  [[nodiscard]] int file() const { return file_; }
  /// Returns the IP address of the peer; empty for a Unix socket.
  [[nodiscard]] std::string peer() const;

 private:
  /// Sends the client's greeting and waits for the peer's greeting. Throws RunError on failure.
  void introduce(const security::JobKey& key, const StreamAddress& address,
                 const std::function<std::string()>& interrupted, const StreamRole& role);
  void send_bytes(std::string_view bytes);
  std::optional<std::string> receive_bytes();
  /// Handles the peer's greeting. Call only if there is a key. Throws KeyMismatch.
  void meet(const std::string& greeting);

  const int file_;
  std::unique_ptr<security::SealedMessages> seal_;  ///< null if there is no key
  bool is_client_ = false;
  std::vector<std::string> unsealed_;  ///< messages to send after the peer's greeting has arrived
  std::size_t longest_ = std::size_t{64} << 10U;
  std::string received_;  ///< received bytes; those before `next_` have been processed
  std::size_t next_ = 0;
};

class StreamListener {
 public:
  /// Listens at `address`. Throws RunError if that fails: address in use, unknown address, no permission.
  explicit StreamListener(const StreamAddress& address, const StreamRole& role = kCoordinatorRole,
                          StreamKey key = nullptr);
  ~StreamListener();
  StreamListener(const StreamListener&) = delete;
  StreamListener& operator=(const StreamListener&) = delete;

  /// Returns a new stream; null if no peer has connected. Does not block.
  std::unique_ptr<MessageStream> accept();
  [[nodiscard]] int file() const { return file_; }
  /// Returns the address on which this object listens, with the actual port if the requested port was 0.
  [[nodiscard]] const StreamAddress& address() const { return address_; }

 private:
  StreamAddress address_;
  StreamKey key_;
  int file_ = -1;
};

/// Waits until one of `files` can be read, for at most `limit` and never longer than 1 s.
void wait_for(const std::vector<int>& files, Nanos limit);

}  // namespace mltcp::experiment
