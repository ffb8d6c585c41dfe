// Messages between the processes of an experiment, over TCP or a Unix socket, which works across network namespaces.
// A message is its length, four bytes in network order, and that number of bytes of text. If both ends have a job's
// key, messages are sealed (transport/security/sealed_messages.h): the first text is a greeting, all others are sealed
// texts.
//
// One thread per stream. The length of messages and the time that a peer may take to read them are limited.
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

/// The key of both ends of a stream; null: no key, messages are sent in the clear.
using StreamKey = std::shared_ptr<const security::JobKey>;

/// "HOST:PORT", "[2001:db8::1]:PORT" or "unix:/path".
struct StreamAddress {
  std::string host;  ///< name or IP address; empty: a Unix socket
  std::string port;  ///< number, 0 to 65535
  std::string path;
};
/// Throws InputError with cause and cure.
StreamAddress parse_stream_address(std::string_view text);
std::string to_text(const StreamAddress& address);

/// The time of CLOCK_MONOTONIC.
Nanos wall_now();

/// The other end, for messages: its name, the option that makes it listen, and the command that starts it.
struct StreamRole {
  std::string_view name;
  std::string_view option;
  std::string_view start;
  std::string_view reached = {};  ///< end of the message if it can't be reached: how to reach it
};
inline constexpr StreamRole kCoordinatorRole{"coordinator", "--serve", "mltcp gen EXPERIMENT.toml --serve"};

/// The peer has ended the stream or sent an invalid message; what() completes a sentence about the peer.
struct StreamError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The ends have different keys, or only one of them has a key.
struct KeyMismatch : StreamError {
  using StreamError::StreamError;
};

class MessageStream {
 public:
  /// Owns `file`, a connected socket. With a key, messages are sent when the client's greeting has arrived.
  explicit MessageStream(int file, const StreamKey& key = nullptr);
  ~MessageStream();
  MessageStream(const MessageStream&) = delete;
  MessageStream& operator=(const MessageStream&) = delete;

  /// Tries for up to `limit`, as the other side may start later, or until `interrupted` returns a reason to stop. Calls
  /// `waiting` once if the first attempt fails. With a key, then waits for the other side's greeting, at most 10 s.
  /// Throws RunError.
  static std::unique_ptr<MessageStream> connect(const StreamAddress& address, Nanos limit,
                                                const std::function<std::string()>& interrupted,
                                                const StreamRole& role = kCoordinatorRole,
                                                const StreamKey& key = nullptr,
                                                const std::function<void()>& waiting = {});

  /// Waits while the peer doesn't read, at most 10 s. Throws StreamError.
  void send(std::string_view message);
  /// The next message if it has arrived completely; doesn't wait. Throws StreamError.
  std::optional<std::string> receive();
  /// Waits until data may have arrived, at most for `limit` and 1 s.
  void wait(Nanos limit) const;
  /// Received messages longer than this are an error; 64 KiB by default.
  void set_longest(std::size_t bytes) { longest_ = bytes; }
  [[nodiscard]] int file() const { return file_; }
  /// The IP address of the other end; empty for a Unix socket.
  [[nodiscard]] std::string peer() const;

 private:
  /// For the client: sends a greeting and waits for the other side's. Throws RunError.
  void introduce(const security::JobKey& key, const StreamAddress& address,
                 const std::function<std::string()>& interrupted, const StreamRole& role);
  void send_bytes(std::string_view bytes);
  std::optional<std::string> receive_bytes();
  /// Handles the peer's greeting; with a key only. Throws KeyMismatch.
  void meet(const std::string& greeting);

  const int file_;
  std::unique_ptr<security::SealedMessages> seal_;  ///< null without a key
  bool is_client_ = false;
  std::vector<std::string> unsealed_;  ///< messages to send after the greeting has arrived
  std::size_t longest_ = std::size_t{64} << 10U;
  std::string received_;  ///< received bytes; those before next_ are used
  std::size_t next_ = 0;
};

class StreamListener {
 public:
  /// Throws RunError if it can't listen there: address in use, unknown address, no permission.
  explicit StreamListener(const StreamAddress& address, const StreamRole& role = kCoordinatorRole,
                          StreamKey key = nullptr);
  ~StreamListener();
  StreamListener(const StreamListener&) = delete;
  StreamListener& operator=(const StreamListener&) = delete;

  /// The next new stream; null if there is none. Does not wait.
  std::unique_ptr<MessageStream> accept();
  [[nodiscard]] int file() const { return file_; }
  /// The address, with the actual port in place of 0.
  [[nodiscard]] const StreamAddress& address() const { return address_; }

 private:
  StreamAddress address_;
  StreamKey key_;
  int file_ = -1;
};

/// Waits until one of `files` can be read, at most for `limit` and 1 s.
void wait_for(const std::vector<int>& files, Nanos limit);

}  // namespace mltcp::experiment
