// Questions and answers about queue pairs; see resolution.h.
#include "mltcp/rdma/resolution.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace mltcp::rdma {
namespace {

constexpr std::array<std::byte, 4> kMagic{std::byte{'M'}, std::byte{'L'}, std::byte{'V'}, std::byte{'B'}};
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kQuestion = 1;
constexpr std::uint8_t kAnswer = 2;
constexpr std::size_t kMostPendingAnswers = 256;
constexpr std::uint32_t kLongestQueueNumber = (1U << 24) - 1;

template <typename Number>
void put(Resolution::Datagram& bytes, std::size_t at, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes[at + i] = static_cast<std::byte>(value >> (8 * (sizeof value - 1 - i)) & 0xFF);
}

template <typename Number>
Number get(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  return static_cast<Number>(value);
}

Resolution::Datagram make(std::uint8_t kind, std::uint64_t nonce, const RemoteQueue& queue) {
  Resolution::Datagram bytes{};
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  put(bytes, 4, kVersion);
  put(bytes, 5, kind);
  put(bytes, 6, queue.longest);
  put(bytes, 8, nonce);
  put(bytes, 16, queue.number);
  put(bytes, 20, queue.key);
  put(bytes, 24, queue.lid);
  return bytes;
}

}  // namespace

Resolution::Resolution(const ResolutionConfig& config, std::vector<RemoteQueue> own,
                       std::function<std::uint64_t()> random)
    : config_(config), own_(std::move(own)), random_(std::move(random)), allowance_(config.answers_per_second) {}

/// Null: all entries are being asked for.
Resolution::Peer* Resolution::peer_of(const Address& address, Nanos now) {
  const auto found = peers_.find(address);
  if (found != peers_.end()) return &found->second;
  if (peers_.size() >= config_.most_peers) {
    auto oldest = peers_.end();
    for (auto at = peers_.begin(); at != peers_.end(); ++at)
      if (at->second.state != State::asked && (oldest == peers_.end() || at->second.used_at < oldest->second.used_at))
        oldest = at;
    if (oldest == peers_.end()) {
      ++counters_.table_full;
      return nullptr;
    }
    peers_.erase(oldest);
  }
  Peer& peer = peers_[address];
  peer.used_at = now;
  return &peer;
}

void Resolution::ask(Peer& peer, std::uint16_t shard, Nanos now) {
  peer.nonce = random_();
  peer.shard = shard;
  peer.questions = 0;
  peer.due = now;
}

Resolution::Found Resolution::find(std::uint16_t shard, const Address& address, Nanos now) {
  if (address.port == 0) return {};
  Peer* const peer = peer_of(address, now);
  if (peer == nullptr) return {};
  peer->used_at = now;
  const bool is_asking = !peer->due.is_never() && peer->state != State::unreachable;
  if (peer->state == State::unreachable) {
    if (now < peer->due) return {};
    peer->state = State::asked;
    ask(*peer, shard, now);
  } else if (!is_asking && (peer->state == State::asked || now - peer->known_at >= config_.fresh_for)) {
    ask(*peer, shard, now);
  }
  return {peer->state, peer->queue};
}

/// A bucket that holds a second's worth.
bool Resolution::may_answer(Nanos now) {
  allowance_ = std::min<double>(config_.answers_per_second,
                                allowance_ + (now - allowed_at_).seconds() * config_.answers_per_second);
  allowed_at_ = now;
  if (allowance_ < 1 || answers_.size() >= kMostPendingAnswers) return false;
  allowance_ -= 1;
  return true;
}

bool Resolution::receive(std::uint16_t shard, const Address& from, std::span<const std::byte> bytes, Nanos now) {
  if (bytes.size() != datagram_bytes || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin()) ||
      get<std::uint8_t>(bytes, 4) != kVersion || from.port == 0 || shard >= own_.size()) {
    ++counters_.malformed;
    return false;
  }
  const auto kind = get<std::uint8_t>(bytes, 5);
  const auto nonce = get<std::uint64_t>(bytes, 8);
  if (kind == kQuestion) {
    if (!may_answer(now)) {
      ++counters_.unanswered;
      return false;
    }
    answers_.push_back({shard, from, make(kAnswer, nonce, own_[shard])});
    return false;
  }
  const RemoteQueue queue{.number = get<std::uint32_t>(bytes, 16),
                          .key = get<std::uint32_t>(bytes, 20),
                          .lid = get<std::uint16_t>(bytes, 24),
                          .longest = get<std::uint16_t>(bytes, 6)};
  if (kind != kAnswer || queue.number == 0 || queue.number > kLongestQueueNumber) {
    ++counters_.malformed;
    return false;
  }
  const auto found = peers_.find(from);
  if (found == peers_.end() || found->second.due.is_never() || found->second.state == State::unreachable ||
      found->second.questions == 0 || found->second.nonce != nonce || found->second.shard != shard) {
    ++counters_.unasked;
    return false;
  }
  Peer& peer = found->second;
  const bool is_news = peer.state != State::known || peer.queue != queue;
  if (is_news) ++counters_.learnt;
  peer.state = State::known;
  peer.queue = queue;
  peer.known_at = now;
  peer.due = Nanos::never();
  return is_news;
}

bool Resolution::next(Outgoing& out, Nanos now) {
  if (!answers_.empty()) {
    out = answers_.front();
    answers_.pop_front();
    ++counters_.answers;
    return true;
  }
  for (auto& [address, peer] : peers_) {
    if (peer.due > now || peer.state == State::unreachable) continue;
    if (peer.questions >= config_.most_questions) {
      if (peer.state == State::known) {  // a known queue pair stays
        peer.known_at = now;
        peer.due = Nanos::never();
      } else {
        peer.state = State::unreachable;
        peer.due = now + config_.unreachable_for;
        ++counters_.unreachable;
        lost_.push_back(address);
      }
      continue;
    }
    peer.due = now + config_.first_retry * (std::int64_t{1} << peer.questions);
    ++peer.questions;
    ++counters_.questions;
    out = {peer.shard, address, make(kQuestion, peer.nonce, {})};
    return true;
  }
  return false;
}

Nanos Resolution::deadline() const {
  if (!answers_.empty()) return Nanos();
  Nanos least = Nanos::never();
  for (const auto& [address, peer] : peers_)
    if (peer.state != State::unreachable) least = std::min(least, peer.due);
  return least;
}

}  // namespace mltcp::rdma
