#include "mltcp/plugins/gloo/internal/buffers.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "mltcp/plugins/gloo/internal/open_device.h"
#include "mltcp/plugins/gloo/internal/pair.h"

namespace gloo::transport::mltcp {
namespace {

/// Waits until `ready` returns true, at most `timeout`; kNoTimeout means no limit. Polls for the first `spin`, and then
/// sleeps.
template <typename Ready>
bool wait_for(std::condition_variable& changed, Context::Lock& lock, std::chrono::milliseconds timeout,
              std::chrono::nanoseconds spin, const Ready& ready) {
  const bool for_ever = timeout == kNoTimeout;
  const auto begin = std::chrono::steady_clock::now();
  // 1000 hours are long enough, and the sum does not overflow the clock.
  const auto end = begin + std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(1000));
  const auto spins_until = begin + std::min<std::chrono::nanoseconds>(spin, std::chrono::hours(1000));
  while (spin.count() > 0 && !ready()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= spins_until || (!for_ever && now >= end)) break;
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  if (!for_ever) return changed.wait_until(lock, end, ready);
  changed.wait(lock, ready);
  return true;
}

std::string timed_out(const Context& context, const std::string& what, std::chrono::milliseconds timeout) {
  return context.who() + ": Timed out waiting " + std::to_string(timeout.count()) + " ms for a " + what +
         "; check that the other ranks run and call the same operations, or raise the timeout" + context.noted();
}

/// Throws EnforceNotMet if `bytes` exceeds the maximum length of a message.
void enforce_length(std::size_t bytes) {
  enforce(bytes <= kMaxBytes, std::to_string(bytes) + " bytes exceed the " + std::to_string(kMaxBytes) +
                                  " (4 GiB) that one message can have; send and receive them in parts");
}

}  // namespace

UnboundBuffer::UnboundBuffer(std::shared_ptr<Context> context, void* memory, std::size_t bytes)
    : ::gloo::transport::UnboundBuffer(memory, bytes), context_(std::move(context)) {}

UnboundBuffer::~UnboundBuffer() {
  Context::Lock lock(context_->mutex());
  context_->release(*this, lock);
}

bool UnboundBuffer::wait(Side& side, int* rank, std::chrono::milliseconds timeout) {
  Context::Lock lock(context_->mutex());
  if (timeout == kUnsetTimeout) timeout = context_->getTimeout();
  const auto ready = [&] { return side.abort || !side.done.empty() || !error_.empty(); };
  if (!wait_for(side.changed, lock, timeout, context_->spin(), ready)) {
    const std::string text = timed_out(*context_, side.what + context_->awaited_by(*this), timeout);
    context_->fail_all(text);
    throw IoException(text);
  }
  if (side.abort) {
    side.abort = false;
    return false;
  }
  if (side.done.empty()) throw IoException(error_);
  if (rank != nullptr) *rank = side.done.front();
  side.done.pop_front();
  return true;
}

bool UnboundBuffer::waitRecv(int* source, std::chrono::milliseconds timeout) { return wait(receive_, source, timeout); }

bool UnboundBuffer::waitSend(int* destination, std::chrono::milliseconds timeout) {
  return wait(send_, destination, timeout);
}

void UnboundBuffer::abort(Side& side) {
  const Context::Lock lock(context_->mutex());
  side.abort = true;
  side.changed.notify_all();
}

void UnboundBuffer::abortWaitRecv() { abort(receive_); }
void UnboundBuffer::abortWaitSend() { abort(send_); }

std::size_t UnboundBuffer::range(std::size_t offset, std::size_t bytes) const {
  if (bytes == 0) return 0;  // Gloo's collectives pass empty ranges beyond the end
  enforce(offset <= size, "offset " + std::to_string(offset) + " is beyond the buffer of " + std::to_string(size) +
                              " bytes; give one within it");
  if (bytes == kUnspecifiedByteCount) bytes = size - offset;
  enforce(bytes <= size - offset, std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                                      " are more than the buffer of " + std::to_string(size) +
                                      " bytes has; give a range within it");
  enforce_length(bytes);
  return bytes;
}

void UnboundBuffer::send(int destination, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  bytes = range(offset, bytes);
  Context::Lock lock(context_->mutex());
  if (!error_.empty()) throw IoException(error_);
  Pair& pair = context_->pair_to(destination);
  pair.check_usable();
  context_->device().on_send(context_->group(), slot, size, bytes);
  pair.start_send(*this, slot, offset, bytes);
  pair.settle(lock);
}

void UnboundBuffer::recv(int source, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  bytes = range(offset, bytes);
  Context::Lock lock(context_->mutex());
  if (!error_.empty()) throw IoException(error_);
  Pair& pair = context_->pair_to(source);
  pair.check_usable();
  pair.start_receive(*this, slot, offset, bytes);
  pair.settle(lock);
}

void UnboundBuffer::recv(std::vector<int> sources, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  bytes = range(offset, bytes);
  const Context::Lock lock(context_->mutex());
  if (!error_.empty()) throw IoException(error_);
  context_->receive_from_any(*this, std::move(sources), slot, offset, bytes);
}

void UnboundBuffer::on_end(Side& side, int rank, std::uint64_t number) {
  side.ends.end(number, [&] {
    side.done.push_back(rank);
    context_->wake(side.changed);
  });
}

void UnboundBuffer::fail(const std::string& text) {
  if (!error_.empty()) return;
  error_ = text;
  send_.changed.notify_all();
  receive_.changed.notify_all();
}

Buffer::Buffer(Pair& pair, int slot, void* memory, std::size_t bytes)
    : ::gloo::transport::Buffer(slot, memory, bytes), pair_(pair) {}

Buffer::~Buffer() {
  Context::Lock lock(pair_.context().mutex());
  pair_.release(*this, lock);
}

void Buffer::send(std::size_t offset, std::size_t length, std::size_t remote_offset) {
  enforce(offset <= size_ && length <= size_ - offset,
          std::to_string(length) + " bytes at offset " + std::to_string(offset) + " are more than the buffer of " +
              std::to_string(size_) + " bytes has; give a range within it");
  enforce_length(length);
  Context::Lock lock(pair_.context().mutex());
  pair_.check_usable();
  if (!error_.empty()) throw IoException(error_);
  ++pending_sends_;
  pair_.write(*this, static_cast<std::uint64_t>(slot_), data() + offset, length, remote_offset);
  pair_.settle(lock);
}

void Buffer::wait(std::size_t& ends, const char* what) {
  Context& context = pair_.context();
  Context::Lock lock(context.mutex());
  const auto timeout = context.getTimeout();
  const auto ready = [&] { return ends > 0 || !error_.empty(); };
  const auto spin = pair_.polls() ? std::chrono::nanoseconds::max() : context.spin();
  if (!wait_for(changed_, lock, timeout, spin, ready)) {
    const std::string text =
        timed_out(context, std::string(what) + " on slot " + std::to_string(slot_) + ", " + pair_.name(), timeout);
    pair_.fail(text, Pair::Ending::graceful, true);
    throw IoException(text);
  }
  if (ends == 0) throw IoException(error_);
  --ends;
}

void Buffer::waitRecv() { wait(received_, "receive"); }

void Buffer::waitSend() {
  {
    const Context::Lock lock(pair_.context().mutex());
    if (!error_.empty() && sent_ == 0) throw IoException(error_);
    enforce(sent_ + pending_sends_ > 0, "there is no send to wait for; call send() before each waitSend()");
  }
  wait(sent_, "send");
}

void Buffer::on_sent(std::uint64_t number) {
  sends_.end(number, [&] {
    --pending_sends_;
    ++sent_;
    pair_.context().wake(changed_);
  });
}

void Buffer::on_received() {
  ++received_;
  pair_.context().wake(changed_);
}

void Buffer::fail(const std::string& text) {
  if (!error_.empty()) return;
  error_ = text;
  changed_.notify_all();
}

}  // namespace gloo::transport::mltcp
