// Accepted streams whose peers have not yet sent a message. Anybody can connect, so this class limits the number of
// streams, the streams per address, the time that a stream may stay silent, and the lines printed about streams. No
// stream blocks another. With a job key, a peer's first message proves that the peer has the key.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"

namespace mltcp::experiment {

/// Limits the lines that unauthenticated peers can cause. Prints at most kMax lines per interval of kEvery. After the
/// interval, prints the number of lines left out.
class BoundedLines {
 public:
  static constexpr std::uint32_t kMax = 20;
  static constexpr Nanos kEvery{60'000'000'000};

  /// `tell` prints a line; if `tell` is empty, nothing is printed.
  explicit BoundedLines(std::function<void(const std::string& line)> tell) : tell_(std::move(tell)) {}
  void tell(const std::string& line, Nanos now);
  /// If the interval is over, ends it and prints the number of lines left out, unless this number is 0.
  void update(Nanos now);

 private:
  const std::function<void(const std::string& line)> tell_;
  Nanos until_;
  std::uint32_t shown_ = 0;
  std::uint64_t left_out_ = 0;
};

class PendingStreams {
 public:
  static constexpr std::size_t kMax = 64;
  /// Many hosts may share one address (NAT), but the stream of each host is pending only for a short time.
  static constexpr std::size_t kMaxOfAddress = 16;
  static constexpr Nanos kLimit{10'000'000'000};

  struct First {
    std::unique_ptr<MessageStream> stream;
    std::string message;
  };

  /// `peer` names the expected kind of peer in printed lines, such as "host". `listener` must outlive this object.
  PendingStreams(StreamListener& listener, std::string_view peer, std::function<void(const std::string& line)> tell)
      : listener_(listener), peer_(peer), lines_(std::move(tell)) {}

  /// Appends the file descriptors of the listener and of all streams. Wait for these (wait_for()) before calling
  /// next().
  void add_files(std::vector<int>& files) const;
  /// Returns a stream whose first message has arrived, and this message. Returns nullopt if no message has arrived.
  /// Does not wait.
  std::optional<First> next();
  /// Prints a line about a stream of this listener, within the limits of BoundedLines.
  void tell(const std::string& line) { lines_.tell(line, wall_now()); }

 private:
  struct Pending {
    std::unique_ptr<MessageStream> stream;
    std::string address;  ///< address of the peer; empty for a Unix socket
    Nanos since;
  };

  void accept(Nanos now);

  StreamListener& listener_;
  const std::string peer_;
  BoundedLines lines_;
  std::list<Pending> streams_;  ///< pending streams, oldest first
};

}  // namespace mltcp::experiment
