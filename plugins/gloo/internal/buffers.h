// Memory that is sent from and received into: bound to a pair, or not.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/plugins/gloo/internal/context.h"

namespace gloo::transport::mltcp {

class Pair;

/// Operations under way are counted: each wait takes one that has ended, oldest first.
class UnboundBuffer final : public ::gloo::transport::UnboundBuffer {
 public:
  UnboundBuffer(std::shared_ptr<Context> context, void* memory, std::size_t bytes);
  /// Operations that have not ended are taken back; a message that comes for one of its receives is dropped.
  ~UnboundBuffer() override;

  bool waitRecv(int* source, std::chrono::milliseconds timeout) override;
  bool waitSend(int* destination, std::chrono::milliseconds timeout) override;
  void abortWaitRecv() override;
  void abortWaitSend() override;
  void send(int destination, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(int source, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(std::vector<int> sources, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;

  // With the context's lock held.
  void on_sent(int destination);
  void on_received(int source);
  void fail(const std::string& text);

 private:
  struct Side {
    const char* what;
    std::deque<int> done;  ///< ranks, in the order of the ends
    bool abort = false;
    std::condition_variable changed;
  };
  bool wait(Side& side, int* rank, std::chrono::milliseconds timeout);
  void abort(Side& side);
  /// Throws EnforceNotMet unless the range lies in the buffer.
  std::size_t range(std::size_t offset, std::size_t bytes) const;

  const std::shared_ptr<Context> context_;
  Side send_{"send", {}, false, {}};
  Side receive_{"receive", {}, false, {}};
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

  // With the context's lock held.
  void on_sent();
  void on_received();
  void fail(const std::string& text);
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(ptr_); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int slot() const { return slot_; }

 private:
  void wait(std::size_t& ends, const char* what);

  Pair& pair_;
  std::condition_variable changed_;
  std::size_t pending_sends_ = 0;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::string error_;
};

}  // namespace gloo::transport::mltcp
