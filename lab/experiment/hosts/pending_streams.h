// Streams to a listener whose other ends have not yet sent a message. Anybody may connect, so they are served side by
// side, and bounded in number, by address and in time; and what is told of them is bounded, too. With a key, a first
// message proves that its sender has the key.
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

/// Lines that strangers can cause: a few a minute are told, and then how many more there were.
class BoundedLines {
 public:
  static constexpr std::uint32_t kMax = 20;
  static constexpr Nanos kEvery{60'000'000'000};

  /// `tell` may be empty.
  explicit BoundedLines(std::function<void(const std::string& line)> tell) : tell_(std::move(tell)) {}
  void tell(const std::string& line, Nanos now);
  /// Tells how many lines were left out, when that is due.
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
  /// Many hosts may come through one address (a NAT), but none of them needs long.
  static constexpr std::size_t kMaxOfAddress = 16;
  static constexpr Nanos kLimit{10'000'000'000};

  struct First {
    std::unique_ptr<MessageStream> stream;
    std::string message;
  };

  /// `peer` is what the other end should be: "host". `listener` must outlive this.
  PendingStreams(StreamListener& listener, std::string_view peer, std::function<void(const std::string& line)> tell)
      : listener_(listener), peer_(peer), lines_(std::move(tell)) {}

  /// Adds what next() waits for: see wait_for().
  void add_files(std::vector<int>& files) const;
  /// The first stream whose first message has come, if there is one. Does not wait.
  std::optional<First> next();
  /// Tells a line about such a stream, or leaves it out.
  void tell(const std::string& line) { lines_.tell(line, wall_now()); }

 private:
  struct Pending {
    std::unique_ptr<MessageStream> stream;
    std::string address;  ///< empty: of this machine, by a Unix socket
    Nanos since;
  };

  void accept(Nanos now);

  StreamListener& listener_;
  const std::string peer_;
  BoundedLines lines_;
  std::list<Pending> streams_;  ///< oldest first
};

}  // namespace mltcp::experiment
