// Streams to a listener whose other ends have not yet sent a message. Anybody can connect, so these streams are served
// concurrently, and their total number, their number per address, their time and the lines printed about them are
// limited. With a key, a first message proves that its sender has the key.
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

/// Limits the lines that unknown peers can cause: prints at most kMax per kEvery, then the number of lines left out.
class BoundedLines {
 public:
  static constexpr std::uint32_t kMax = 20;
  static constexpr Nanos kEvery{60'000'000'000};

  /// `tell` may be empty.
  explicit BoundedLines(std::function<void(const std::string& line)> tell) : tell_(std::move(tell)) {}
  void tell(const std::string& line, Nanos now);
  /// At the end of an interval, prints the number of lines left out, if any.
  void update(Nanos now);

 private:
  const std::function<void(const std::string& line)> tell_;
  Nanos until_;
  std::uint32_t told_ = 0;
  std::uint64_t left_out_ = 0;
};

class PendingStreams {
 public:
  static constexpr std::size_t kMax = 64;
  /// Many hosts may share one address (NAT), but each is pending only for a short time.
  static constexpr std::size_t kMaxOfAddress = 16;
  static constexpr Nanos kLimit{10'000'000'000};

  struct First {
    std::unique_ptr<MessageStream> stream;
    std::string message;
  };

  /// `peer`: the expected kind of other end, such as "host". `listener` must outlive this object.
  PendingStreams(StreamListener& listener, std::string_view peer, std::function<void(const std::string& line)> tell)
      : listener_(listener), peer_(peer), lines_(std::move(tell)) {}

  /// Adds the files to wait for (wait_for()) before next() is called.
  void add_files(std::vector<int>& files) const;
  /// A stream whose first message has arrived, if any. Does not wait.
  std::optional<First> next();
  /// Prints a line about such a stream, within the limits of BoundedLines.
  void tell(const std::string& line) { lines_.tell(line, wall_now()); }

 private:
  struct Pending {
    std::unique_ptr<MessageStream> stream;
    std::string address;  ///< empty: a Unix socket
    Nanos since;
  };

  void accept(Nanos now);

  StreamListener& listener_;
  const std::string peer_;
  BoundedLines lines_;
  std::list<Pending> streams_;  ///< oldest first
};

}  // namespace mltcp::experiment
