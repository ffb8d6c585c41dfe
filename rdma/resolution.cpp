// Questions and answers about queue pairs; see resolution.h.
#include "mltcp/rdma/resolution.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "mltcp/rdma/ud_packet.h"

namespace mltcp::rdma {
namespace {

constexpr std::array<std::byte, 4> kMagic{std::byte{'M'}, std::byte{'L'}, std::byte{'V'}, std::byte{'B'}};
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kQuestion = 1;
constexpr std::uint8_t kAnswer = 2;
constexpr std::size_t kMaxPendingAnswers = 256;
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
    : config_(config),
      own_(std::move(own)),
      random_(std::move(random)),
      hash_(random_(), random_()),
      peers_(0, hash_),
      answering_(kBuckets) {}

bool Resolution::Allowance::take(std::uint32_t per_second, Nanos now) {
  used_ = std::max(0.0, used_ - (now - at_).seconds() * per_second);
  at_ = now;
  if (used_ + 1 > per_second) return false;
  used_ += 1;
  return true;
}

bool Resolution::may_answer(const Address& to, Nanos now) {
  Address host = to;
  host.port = 0;
  return answers_.size() < kMaxPendingAnswers &&
         answering_[hash_(host) % kBuckets].take(config_.answers_per_second, now);
}

// ---- The table of peers ----

void Resolution::set_due(Entry& entry, Nanos due) {
  due_.erase({entry.second.due, entry.first});
  entry.second.due = due;
  if (!due.is_never() && entry.second.state != State::unreachable) due_.emplace(due, entry.first);
}

void Resolution::set_state(Entry& entry, State state, Nanos used_at) {
  peers_in(entry.second.state).erase({entry.second.used_at, entry.first});
  entry.second.state = state;
  entry.second.used_at = used_at;
  peers_in(state).emplace(used_at, entry.first);
}

void Resolution::remove(const Address& address) {
  const auto found = peers_.find(address);
  due_.erase({found->second.due, address});
  peers_in(found->second.state).erase({found->second.used_at, address});
  peers_.erase(found);
}

void Resolution::make_room() {
  const bool are_many_asked = peers_in(State::asked).size() > config_.max_peers / 4;
  State from = State::known;
  if (!peers_in(State::unreachable).empty())
    from = State::unreachable;
  else if (are_many_asked || peers_in(State::known).empty())
    from = State::asked;
  const Address oldest = peers_in(from).begin()->second;
  if (from == State::asked) {
    ++counters_.displaced;
    lost_.push_back(oldest);
  }
  remove(oldest);
}

Resolution::Entry& Resolution::peer_of(const Address& address, Nanos now) {
  const auto found = peers_.find(address);
  if (found != peers_.end()) return *found;
  if (peers_.size() >= config_.max_peers) make_room();
  Entry& made = *peers_.try_emplace(address).first;
  set_state(made, State::asked, now);
  return made;
}

void Resolution::set_unreachable(Entry& entry, Nanos now) {
  set_due(entry, Nanos::never());
  set_state(entry, State::unreachable, now);
  entry.second.due = now + config_.unreachable_for;
}

void Resolution::give_up(const Address& address, Nanos now) {
  if (const auto found = peers_.find(address); found != peers_.end()) set_unreachable(*found, now);
}

void Resolution::ask(Entry& entry, std::uint16_t shard, Nanos now) {
  entry.second.nonce = random_();
  entry.second.shard = shard;
  entry.second.questions = 0;
  set_due(entry, now);
}

Resolution::Found Resolution::find(std::uint16_t shard, const Address& address, Nanos now) {
  if (address.port == 0) return {};
  Entry& entry = peer_of(address, now);
  const Peer& peer = entry.second;
  switch (peer.state) {
    case State::unreachable:
      if (now < peer.due) return {};
      set_state(entry, State::asked, now);
      ask(entry, shard, now);
      break;
    case State::asked:
      if (peer.due.is_never()) ask(entry, shard, now);
      break;
    case State::known:
      set_state(entry, State::known, now);
      if (peer.due.is_never() && now - peer.known_at >= config_.fresh_for) ask(entry, shard, now);
      break;
  }
  return {peer.state, peer.queue};
}

// ---- Datagrams ----

bool Resolution::receive(std::uint16_t shard, const Address& from, std::span<const std::byte> bytes, Nanos now) {
  if (bytes.size() != kDatagramBytes || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin()) ||
      get<std::uint8_t>(bytes, 4) != kVersion || from.port == 0 || shard >= own_.size()) {
    ++counters_.malformed;
    return false;
  }
  const auto kind = get<std::uint8_t>(bytes, 5);
  const auto nonce = get<std::uint64_t>(bytes, 8);
  if (kind == kQuestion) {
    if (!may_answer(from, now)) {
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
  if (kind != kAnswer || queue.number == 0 || queue.number > kLongestQueueNumber || queue.longest < kMinMessage) {
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
  if (peer.state != State::known) set_state(*found, State::known, now);
  peer.queue = queue;
  peer.known_at = now;
  set_due(*found, Nanos::never());
  return is_news;
}

bool Resolution::next(Outgoing& out, Nanos now) {
  if (!answers_.empty()) {
    out = answers_.front();
    answers_.pop_front();
    ++counters_.answers;
    return true;
  }
  while (!due_.empty() && due_.begin()->first <= now) {
    Entry& entry = *peers_.find(due_.begin()->second);
    Peer& peer = entry.second;
    if (peer.questions >= config_.max_questions) {
      if (peer.state == State::known) {  // without an answer, a known queue pair stays in use
        peer.known_at = now;
        set_due(entry, Nanos::never());
      } else {
        set_unreachable(entry, now);
        ++counters_.unreachable;
        lost_.push_back(entry.first);
      }
      continue;
    }
    set_due(entry, now + config_.first_retry * (std::int64_t{1} << peer.questions));
    const bool is_repeated = peer.questions++ > 0;
    if (is_repeated && !repeating_.take(config_.repeats_per_second, now)) {
      ++counters_.unrepeated;  // the question counts as a lost datagram
      continue;
    }
    ++counters_.questions;
    out = {peer.shard, entry.first, make(kQuestion, peer.nonce, {})};
    return true;
  }
  return false;
}

Nanos Resolution::deadline() const {
  if (!answers_.empty()) return Nanos();
  return due_.empty() ? Nanos::never() : due_.begin()->first;
}

}  // namespace mltcp::rdma
