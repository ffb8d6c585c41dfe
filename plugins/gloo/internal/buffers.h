// Memory from which a program sends and into which it receives, bound to a pair or unbound.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/plugins/gloo/internal/context.h"

namespace gloo::transport::mltcp {

class Pair;

/// Orders the ends of a buffer's sends, or of its receives. Operations with the same peer and slot are reported in
/// posting order. The endpoint reports operations in the order in which they end, but Gloo's collectives expect the
/// n-th report to belong to the n-th operation, as on a TCP connection.
class OrderedEnds {
 public:
  /// Registers an operation and returns its number.
  std::uint64_t begin(int rank, std::uint64_t slot) {
    under_way_.push_back({++last_, slot, rank, false});
    return last_;
  }
  /// Marks an operation as ended. Calls `tell()` once for each operation that can be reported now, which may be none or
  /// several.
  template <typename Tell>
  void end(std::uint64_t number, const Tell& tell) {
    const auto ended = std::find_if(under_way_.begin(), under_way_.end(),
                                    [&](const Operation& each) { return each.number == number; });
    if (ended == under_way_.end()) return;
    ended->has_ended = true;
    const Operation like = *ended;
    for (auto each = under_way_.begin(); each != under_way_.end();) {
      if (each->rank != like.rank || each->slot != like.slot) {
        ++each;
        continue;
      }
      if (!each->has_ended) return;
      each = under_way_.erase(each);
      tell();
    }
  }

 private:
  struct Operation {
    std::uint64_t number;
    std::uint64_t slot;
    int rank;
    bool has_ended;
  };
  std::deque<Operation> under_way_;
  std::uint64_t last_ = 0;
};

/// Counts the operations in progress. Each wait consumes one ended operation. The operation that ended first is
/// consumed first.
class UnboundBuffer final : public ::gloo::transport::UnboundBuffer {
 public:
  UnboundBuffer(std::shared_ptr<Context> context, void* memory, std::size_t bytes);
  /// Withdraws operations that have not ended. A message that arrives later for a withdrawn receive is dropped.
  ~UnboundBuffer() override;

  bool waitRecv(int* source, std::chrono::milliseconds timeout) override;
  bool waitSend(int* destination, std::chrono::milliseconds timeout) override;
  void abortWaitRecv() override;
  void abortWaitSend() override;
  void send(int destination, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(int source, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(std::vector<int> sources, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;

  // Call the following functions only with the context's lock held.
  std::uint64_t begin_send(int destination, std::uint64_t slot) { return send_.ends.begin(destination, slot); }
  std::uint64_t begin_receive(int source, std::uint64_t slot) { return receive_.ends.begin(source, slot); }
  void on_sent(int destination, std::uint64_t number) { on_end(send_, destination, number); }
  void on_received(int source, std::uint64_t number) { on_end(receive_, source, number); }
  void fail(const std::string& text);

 private:
  struct Side {
    const char* what;
    OrderedEnds ends;
    std::deque<int> done;  ///< ranks of the peers, in the order in which the operations ended
    bool abort = false;
    std::condition_variable changed;
  };
  bool wait(Side& side, int* rank, std::chrono::milliseconds timeout);
  void abort(Side& side);
  void on_end(Side& side, int rank, std::uint64_t number);
  /// Throws EnforceNotMet unless the range is inside the buffer.
  std::size_t range(std::size_t offset, std::size_t bytes) const;

  const std::shared_ptr<Context> context_;
  Side send_{"send", {}, {}, false, {}};
  Side receive_{"receive", {}, {}, false, {}};
  std::string error_;
};

class Buffer final : public ::gloo::transport::Buffer {
 public:
  Buffer(Pair& pair, int slot, void* memory, std::size_t bytes);
  ~Buffer() override;

  using ::gloo::transport::Buffer::send;
  void send(std::size_t offset, std::size_t length, std::size_t remote_offset) override;
  void waitRecv() override;
  void waitSend() override;

  // Call the following functions only with the context's lock held.
  std::uint64_t begin_send() { return sends_.begin(0, 0); }
  void on_sent(std::uint64_t number);
  void on_received();
  void fail(const std::string& text);
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(ptr_); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int slot() const { return slot_; }

 private:
  void wait(std::size_t& ends, const char* what);

  Pair& pair_;
  std::condition_variable changed_;
  OrderedEnds sends_;
  std::size_t pending_sends_ = 0;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::string error_;
};

}  // namespace gloo::transport::mltcp
