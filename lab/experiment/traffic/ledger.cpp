#include "mltcp/lab/experiment/traffic/ledger.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mltcp/base/random.h"

namespace mltcp::experiment {
namespace {

constexpr std::size_t kPatternBytes = std::size_t{1} << 20;
constexpr std::byte kUntouched{0xEE};

const std::vector<std::byte>& pattern() {
  static const std::vector<std::byte> bytes = [] {
    Random random(0x4D4C544350);
    std::vector<std::byte> made(kPatternBytes);
    for (std::size_t at = 0; at < made.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = random.next();
      std::memcpy(made.data() + at, &word, sizeof word);
    }
    return made;
  }();
  return bytes;
}

std::uint64_t name(std::uint32_t stream, std::uint64_t serial) { return std::uint64_t{stream} << 32 | serial; }

/// Calls `piece(at, bytes)` for each piece of a message's contents that follows the name of the message, until a call
/// returns false.
template <typename Piece>
bool contents(std::uint64_t of, std::size_t size, Piece piece) {
  // Successive messages begin far from each other in the pattern, and at different offsets within a word.
  std::size_t from = (of * 0x9E3779B97F4A7C15ULL >> 20) % kPatternBytes;
  for (std::size_t at = Ledger::kNameBytes; at < size;) {
    const std::size_t length = std::min(size - at, kPatternBytes - from);
    if (!piece(at, std::span(pattern()).subspan(from, length))) return false;
    at += length;
    from = 0;
  }
  return true;
}

/// Frees the memory of operation `tag`. Then removes all elements of `memory` before the first one that is in use.
void drop(std::deque<std::vector<std::byte>>& memory, std::uint64_t& first, std::uint64_t tag) {
  if (tag < first) return;
  std::vector<std::byte>().swap(memory[tag - first]);
  while (!memory.empty() && memory.front().capacity() == 0) {
    memory.pop_front();
    ++first;
  }
}

}  // namespace

std::span<const std::byte> Ledger::make(std::size_t bytes) {
  const std::uint64_t own = name(stream_, sends_.size());
  sends_.push_back({.bytes = bytes});
  ++sends_open_;
  // Allocates at least one byte, so that an empty message differs from a freed one.
  Memory& made = messages_.emplace_back(std::max(bytes, std::size_t{1}));
  std::memcpy(made.data(), &own, std::min(bytes, kNameBytes));
  contents(own, bytes, [&](std::size_t at, std::span<const std::byte> piece) {
    std::memcpy(made.data() + at, piece.data(), piece.size());
    return true;
  });
  return std::span(made).first(bytes);
}

void Ledger::take_back() {
  sends_.pop_back();
  messages_.pop_back();
  --sends_open_;
}

std::span<std::byte> Ledger::make_buffer(std::size_t bytes) {
  receives_.push_back({});
  ++receives_open_;
  return std::span(buffers_.emplace_back(std::max(bytes, std::size_t{1}), kUntouched)).first(bytes);
}

void Ledger::take_back_buffer() {
  receives_.pop_back();
  buffers_.pop_back();
  --receives_open_;
}

void Ledger::discard(std::uint64_t tag) {
  receives_[tag].discarded = true;
  ++discarded_;
  // Allocates one byte, because a capacity of 0 would mean that the element is free.
  if (tag >= first_buffer_) buffers_[tag - first_buffer_] = Memory(1);
}

Ledger::Name Ledger::name_of(std::span<const std::byte, kNameBytes> beginning) {
  std::uint64_t word = 0;
  std::memcpy(&word, beginning.data(), sizeof word);
  return {.stream = static_cast<std::uint32_t>(word >> 32), .serial = static_cast<std::uint32_t>(word)};
}

void Ledger::on_sent(std::uint64_t tag, Status status) {
  require(tag < sends_.size(), "a send completes that was never posted");
  Send& send = sends_[tag];
  require(send.state == State::open, "a send completes twice");
  send.state = status == Status::ok ? State::ok : State::failed;
  --sends_open_;
  drop(messages_, first_message_, tag);
}

Bytes Ledger::on_received(std::uint64_t tag, Status status, Bytes bytes) {
  require(tag < receives_.size(), "a receive completes that was never posted");
  Receive& receive = receives_[tag];
  require(receive.state == State::open, "a receive completes twice");
  const bool whole = status == Status::ok || status == Status::truncated;
  receive.state = whole ? State::ok : State::failed;
  --receives_open_;
  const Memory memory = std::exchange(buffers_[tag - first_buffer_], {});
  drop(buffers_, first_buffer_, tag);
  if (!whole || receive.discarded) return 0;

  const std::span<const std::byte> buffer = memory;
  // The memory of an empty buffer has one byte, which the transport must not write.
  const std::size_t here = std::min<std::size_t>(bytes, buffer.size());
  if (here < kNameBytes) {
    ++nameless_;
    require(delivered_ + nameless_ <= sends_.size(), "more messages than were sent");
    return here;
  }
  const Name own = name_of(buffer.first<kNameBytes>());
  require(own.stream == stream_ && own.serial < sends_.size(),
          "a message that was not sent, or with a different beginning");
  Send& send = sends_[own.serial];
  require(bytes == send.bytes, "a message with a wrong length");
  require((status == Status::ok) == (bytes <= buffer.size()),
          "a message that fits is truncated, or one that does not fit is not");
  require(contents(name(own.stream, own.serial), here,
                   [&](std::size_t at, std::span<const std::byte> piece) {
                     return std::memcmp(buffer.data() + at, piece.data(), piece.size()) == 0;
                   }),
          "a message with wrong contents");
  require(std::all_of(buffer.begin() + static_cast<std::ptrdiff_t>(here), buffer.end(),
                      [](std::byte byte) { return byte == kUntouched; }),
          "bytes are written beyond the end of the message");
  require(send.receive == 0, "a message is delivered twice");
  send.receive = tag + 1;
  ++delivered_;
  return here;
}

void Ledger::lose_sender() {
  lost_sender_ = true;
  sends_open_ = 0;
  messages_.clear();
  first_message_ = sends_.size();
}

void Ledger::lose_receiver() {
  lost_receiver_ = true;
  receives_open_ = 0;
  buffers_.clear();
  first_buffer_ = receives_.size();
}

void Ledger::expect_all_done() const {
  require(lost_sender_ || sends_open_ == 0, "a send never completes");
  require(lost_receiver_ || receives_open_ == 0, "a receive never completes");
  std::uint64_t before = 0;
  std::uint64_t unseen = 0;
  for (const Send& send : sends_) {
    if (send.receive != 0) {
      require(send.receive > before, "messages in buffers in a wrong order");
      before = send.receive;
    } else if (send.state == State::ok) {
      ++unseen;
    }
  }
  require(lost_receiver_ || unseen <= nameless_ + discarded_, "a message completed as sent but did not arrive");
}

}  // namespace mltcp::experiment
