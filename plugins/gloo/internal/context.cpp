#include "mltcp/plugins/gloo/internal/context.h"

#include <algorithm>
#include <chrono>

#include "mltcp/plugins/gloo/internal/buffers.h"
#include "mltcp/plugins/gloo/internal/open_device.h"
#include "mltcp/plugins/gloo/internal/pair.h"

namespace gloo::transport::mltcp {

void enforce(bool holds, const std::string& text) {
  if (!holds) throw EnforceNotMet("mltcp-gloo", 0, "arguments", text);
}

Context::Context(std::shared_ptr<OpenDevice> device, int own_rank, int ranks)
    : ::gloo::transport::Context(own_rank, ranks), device_(std::move(device)), group_(device_->next_group()) {
  enforce(ranks > 0 && own_rank >= 0 && own_rank < ranks,
          "rank " + std::to_string(own_rank) + " of " + std::to_string(ranks) + " is none; give 0 to size - 1");
}

std::chrono::nanoseconds Context::spin() const {
  return std::chrono::nanoseconds(device_->endpoint().config().spin.count);
}

void Context::wake(std::condition_variable& waiting) {
  if (!wakes_late_)
    waiting.notify_all();
  else if (std::find(woken_.begin(), woken_.end(), &waiting) == woken_.end())
    woken_.push_back(&waiting);
}

Context::Wakes::~Wakes() {
  context_.wakes_late_ = false;
  for (std::condition_variable* const each : context_.woken_) each->notify_all();
  context_.woken_.clear();
}

Context::~Context() {
  {
    Lock lock(guard_);
    for (int peer = 0; peer < size; ++peer)
      if (Pair* const pair = find(peer); pair != nullptr) pair->begin_close();
  }
  for (auto& pair : pairs_) pair.reset();  // each pair is null during its destruction, since other pairs may look it up
}

std::unique_ptr<::gloo::transport::Pair>& Context::createPair(int peer) {
  enforce(peer >= 0 && peer < size, who() + ": there is no rank " + std::to_string(peer) + " among " +
                                        std::to_string(size) + "; create pairs with 0 to size - 1");
  std::unique_ptr<::gloo::transport::Pair> pair = std::make_unique<Pair>(*this, peer);
  auto& place = pairs_[static_cast<std::size_t>(peer)];
  {
    const Lock lock(guard_);
    place.swap(pair);
  }
  return place;
}

std::unique_ptr<::gloo::transport::UnboundBuffer> Context::createUnboundBuffer(void* memory, std::size_t bytes) {
  return std::make_unique<UnboundBuffer>(shared_from_this(), memory, bytes);
}

Pair* Context::find(int peer) const {
  if (peer < 0 || peer >= size) return nullptr;
  return static_cast<Pair*>(pairs_[static_cast<std::size_t>(peer)].get());
}

Pair& Context::pair_to(int peer) {
  Pair* const pair = find(peer);
  enforce(pair != nullptr, who() + " has no pair with rank " + std::to_string(peer) +
                               "; name another rank of the group, to which it was connected");
  return *pair;
}

void Context::receive_from_any(UnboundBuffer& buffer, std::vector<int> ranks, std::uint64_t slot, std::size_t offset,
                               std::size_t bytes) {
  enforce(!ranks.empty(), who() + ": a receive from any rank names no ranks; name the possible senders");
  // PyTorch names all ranks of the group, including this rank.
  if (ranks.size() > 1) std::erase(ranks, rank);
  Pair* first = nullptr;
  bool any_is_usable = false;
  for (const int peer : ranks) {
    Pair& pair = pair_to(peer);
    if (pair.failed()) continue;
    pair.check_usable();
    any_is_usable = true;
    const std::uint64_t since = pair.waiting_since(slot);
    if (since > 0 && (first == nullptr || since < first->waiting_since(slot))) first = &pair;
  }
  if (!any_is_usable) pair_to(ranks.front()).check_usable();
  if (first == nullptr) {
    any_.push_back({&buffer, slot, offset, bytes, std::move(ranks)});
    return;
  }
  first->start_receive(buffer, slot, offset, bytes);
}

void Context::on_available(Pair& pair, std::uint64_t slot) {
  const auto fits = [&](const AnyReceive& receive) {
    return receive.slot == slot &&
           std::find(receive.ranks.begin(), receive.ranks.end(), pair.rank()) != receive.ranks.end();
  };
  const auto found = std::find_if(any_.begin(), any_.end(), fits);
  if (found == any_.end()) return;
  const AnyReceive receive = std::move(*found);
  any_.erase(found);
  pair.start_receive(*receive.buffer, slot, receive.offset, receive.bytes);
}

void Context::on_pair_failed(Pair& failed, bool notify_others) {
  if (notify_others) note(failed.error());
  any_.remove_if([&](const AnyReceive& receive) {
    for (const int peer : receive.ranks)
      if (const Pair* const pair = find(peer); pair != nullptr && !pair->failed()) return false;
    receive.buffer->fail(failed.error());
    return true;
  });
  if (!notify_others) return;
  for (int peer = 0; peer < size; ++peer) {
    Pair* const pair = find(peer);
    if (pair == nullptr || pair == &failed || pair->failed()) continue;
    Record record;
    record.kind = Record::Kind::failure;
    record.id = static_cast<std::uint64_t>(failed.rank());
    const std::string text = failed.error().substr(0, kMaxInline);
    pair->queue(record, std::as_bytes(std::span(text)));
    pair->flush();
  }
}

void Context::note(const std::string& text) {
  if (note_.empty()) note_ = text;
}

std::string Context::noted() const { return note_.empty() ? std::string() : "; before that, " + note_; }

std::string Context::awaited_by(const UnboundBuffer& buffer) const {
  std::string text;
  for (int peer = 0; peer < size; ++peer) {
    const Pair* const pair = find(peer);
    std::uint64_t slot = 0;
    if (pair == nullptr || !pair->awaited_by(buffer, slot)) continue;
    text += (text.empty() ? " with " : ", ") + pair->name() + " on slot " + std::to_string(slot);
  }
  for (const AnyReceive& receive : any_) {
    if (receive.buffer != &buffer) continue;
    text += (text.empty() ? " from any of ranks" : ", from any of ranks");
    for (const int peer : receive.ranks) text += " " + std::to_string(peer);
    text += " on slot " + std::to_string(receive.slot);
  }
  return text;
}

void Context::fail_all(const std::string& cause) {
  for (int peer = 0; peer < size; ++peer)
    if (Pair* const pair = find(peer); pair != nullptr) pair->fail(cause, Pair::Ending::graceful, true);
}

void Context::release(UnboundBuffer& buffer, Lock& lock) {
  any_.remove_if([&](const AnyReceive& receive) { return receive.buffer == &buffer; });
  const auto each = [&](auto&& what) {
    for (int peer = 0; peer < size; ++peer)
      if (Pair* const pair = find(peer); pair != nullptr) what(*pair);
  };
  each([&](Pair& pair) { pair.cancel_of(buffer); });
  const auto free = [&] {
    bool in_use = false;
    each([&](const Pair& pair) { in_use = in_use || pair.refers_to(buffer); });
    return !in_use;
  };
  // Data that the peer sent earlier may take time to arrive. If the peer is silent, the endpoint's idle timeout ends
  // the wait.
  const std::chrono::nanoseconds grace(device_->endpoint().config().peer_timeout.count);
  if (changed_.wait_for(lock, grace, free)) return;
  each([&](Pair& pair) {
    if (!pair.refers_to(buffer)) return;
    pair.fail(
        "an operation was outstanding when its buffer was destroyed; keep buffers until their operations are complete",
        Pair::Ending::at_once, true);
    pair.abort();
  });
  changed_.wait(lock, free);
}

std::string Context::who() const { return "MLTCP, rank " + std::to_string(rank); }

}  // namespace gloo::transport::mltcp
