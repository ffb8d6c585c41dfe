// Queues of completions; see completion_queue.h.
#include "mltcp/endpoint/completion_queue.h"

#include <utility>

#include "mltcp/endpoint/internal/core.h"

namespace mltcp::endpoint {

CompletionQueue::CompletionQueue(std::shared_ptr<Core> core, std::unique_ptr<CompletionRing> own)
    : core_(std::move(core)), own_(std::move(own)), ring_(own_.get()) {}
CompletionQueue::CompletionQueue(std::shared_ptr<Core> core, CompletionRing& ring)
    : core_(std::move(core)), ring_(&ring) {}
CompletionQueue::~CompletionQueue() {
  if (own_ != nullptr && !core_->is_forked()) own_->await_pushers();
}

std::size_t CompletionQueue::poll(std::span<Completion> out) noexcept {
  std::size_t count = 0;
  if (core_->is_forked()) return count;
  while (count < out.size() && ring_->pop(out[count])) ++count;
  return count;
}

Code CompletionQueue::wait(std::span<Completion> out, std::size_t& count, Nanos limit) noexcept {
  // A callback may destroy this queue, so hold what wait() needs.
  const std::shared_ptr<Core> core = core_;
  const std::shared_ptr<CompletionRing> own = own_;
  return core->wait(*ring_, out, count, limit);
}

int CompletionQueue::file() const noexcept { return ring_->wakeup().file(); }

Code CompletionQueue::arm() noexcept {
  if (core_->is_forked()) return Code::forked;  // the file is shared with the parent process
  ring_->wakeup().disarm();
  ring_->wakeup().arm();
  return ring_->has_some() ? Code::ok : Code::nothing;
}

}  // namespace mltcp::endpoint
