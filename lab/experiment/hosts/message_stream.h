// Messages between the processes of an experiment, over TCP or a Unix socket, which works across network namespaces.
// A message is its length, four bytes in network order, and so many bytes of text. Where both ends have a job's key,
// they are sealed (transport/security/sealed_messages.h): the text is then the greeting, and later what is sealed.
//
// One thread a stream. Everything is bounded: the length of messages, and the time that a peer may take to read them.
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

/// What both ends of a stream have; null: nothing, and messages are in the clear.
using StreamKey = std::shared_ptr<const security::JobKey>;

/// "HOST:PORT", "[2001:db8::1]:PORT" or "unix:/path".
struct StreamAddress {
  std::string host;  ///< name or IP address; empty: a Unix socket
  std::string port;  ///< number, 0 to 65535
  std::string path;
};
/// Throws InputError that says what is wrong and how to write it.
StreamAddress parse_stream_address(std::string_view text);
std::string to_text(const StreamAddress& address);

/// CLOCK_MONOTONIC.
Nanos wall_now();

/// Who is connected to, for messages: what it is called, which option makes a program listen, and how it is started.
struct StreamRole {
  std::string_view name;
  std::string_view option;
  std::string_view start;
  std::string_view reached = {};  ///< how, where that is not plain: it ends what is told when nobody is there
};
inline constexpr StreamRole kCoordinatorRole{"coordinator", "--serve", "mltcp gen EXPERIMENT.toml --serve"};

/// The peer has ended the stream, or what it sends is no message; what() says which.
struct StreamError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The ends have no key in common: one has none, or another one.
struct KeyMismatch : StreamError {
  using StreamError::StreamError;
};

class MessageStream {
 public:
  /// Owns `file`, a connected socket. With a key, messages wait until the client's greeting has come.
  explicit MessageStream(int file, const StreamKey& key = nullptr);
  ~MessageStream();
  MessageStream(const MessageStream&) = delete;
  MessageStream& operator=(const MessageStream&) = delete;

  /// Tries for up to `limit`, as the other side may start later, or until `interrupted` says what ended it; calls
  /// `waiting` once, if nobody is there at first. With a key it then waits for the other side's greeting, 10 s at most.
  /// Throws RunError.
  static std::unique_ptr<MessageStream> connect(const StreamAddress& address, Nanos limit,
                                                const std::function<std::string()>& interrupted,
                                                const StreamRole& role = kCoordinatorRole,
                                                const StreamKey& key = nullptr,
                                                const std::function<void()>& waiting = {});

  /// Waits while the peer doesn't read, 10 s at most. Throws StreamError.
  void send(std::string_view message);
  /// The next message if all of it is here; doesn't wait. Throws StreamError.
  std::optional<std::string> receive();
  /// Waits until something may have come, or for `limit`.
  void wait(Nanos limit) const;
  /// From now on, longer ones are an error. At first 64 KiB.
  void set_longest(std::size_t bytes) { longest_ = bytes; }
  [[nodiscard]] int file() const { return file_; }
  /// Of the other end, where it has one: its IP address.
  [[nodiscard]] std::string peer() const;

 private:
  /// Client: greets the other side, and waits for its greeting. Throws RunError.
  void introduce(const security::JobKey& key, const StreamAddress& address,
                 const std::function<std::string()>& interrupted, const StreamRole& role);
  void send_bytes(std::string_view bytes);
  std::optional<std::string> receive_bytes();
  /// The peer's first message, with a key.
  void meet(const std::string& greeting);

  const int file_;
  std::unique_ptr<security::SealedMessages> seal_;  ///< null without a key
  bool is_client_ = false;
  std::vector<std::string> unsealed_;  ///< what was to be sent before the greeting had come
  std::size_t longest_ = std::size_t{64} << 10U;
  std::string received_;  ///< from next_ on
  std::size_t next_ = 0;
};

class StreamListener {
 public:
  /// Throws RunError if nobody can listen there: in use, no such address, no permission.
  explicit StreamListener(const StreamAddress& address, const StreamRole& role = kCoordinatorRole,
                          StreamKey key = nullptr);
  ~StreamListener();
  StreamListener(const StreamListener&) = delete;
  StreamListener& operator=(const StreamListener&) = delete;

  /// Null if nobody has come.
  std::unique_ptr<MessageStream> accept();
  [[nodiscard]] int file() const { return file_; }
  /// With the number that was chosen in place of port 0.
  [[nodiscard]] const StreamAddress& address() const { return address_; }

 private:
  StreamAddress address_;
  StreamKey key_;
  int file_ = -1;
};

/// Waits until one of `files` may be read, or for `limit`.
void wait_for(const std::vector<int>& files, Nanos limit);

}  // namespace mltcp::experiment
