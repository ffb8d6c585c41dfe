// Implements captures of packets (see capture.h).
#include "mltcp/transport/capture/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/transport/capture/internal/capture_file.h"
#include "mltcp/transport/capture/internal/record_ring.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::capture {
namespace {

/// Size of an interface's ring in bytes. The ring holds 5 ms of packets at 10 Gbps, which is longer than the time
/// between two polls of the writer.
constexpr std::size_t kRingBytes = std::size_t{8} << 20;
constexpr std::chrono::milliseconds kLookEvery{2};
/// Packets of different interfaces are put in order if they are published within this time.
constexpr Nanos kOrderWithin{20'000'000};
/// The file is flushed this often, because another program may be reading it as it grows.
constexpr Nanos kFlushEvery{200'000'000};
constexpr std::size_t kMaxHeaders = encap::kIpv6OverheadBytes;

Nanos since_1970() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return Nanos(std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
}

}  // namespace

struct Tap::Inside {
  explicit Inside(std::size_t ring_bytes) : ring(ring_bytes) {}
  RecordRing ring;
  std::vector<std::byte> joined;  ///< buffer that joins a packet of two pieces; used in virtual time
};

struct Capture::Inside {
  Inside(const CaptureOptions& options, std::string comment) : file(options, std::move(comment)) {}
  CaptureFile file;
  std::vector<InterfaceInfo> interfaces;
  std::vector<std::uint64_t> unwritten;  ///< for each interface: number of packets taken from the ring but not written
  Nanos started;
  Nanos latest;  ///< latest time of a packet
  bool is_running = false;
  std::thread writer;
  std::mutex mutex;
  std::condition_variable ends;
  bool is_ending = false;
  bool is_finished = false;
  Capture::Summary summary;
};

// ---- An interface ----

Tap::Tap(Capture& capture, std::uint32_t number, const Address& own, std::size_t ring_bytes)
    : capture_(capture),
      number_(number),
      own_(own),
      snap_bytes_(capture.options_.snap_bytes),
      inside_(std::make_unique<Inside>(ring_bytes)) {}

Tap::~Tap() = default;

Nanos Tap::now() const { return capture_.virtual_time_ ? capture_.virtual_time_() : since_1970(); }

void Tap::put(Record& record, std::span<const std::byte> first, std::span<const std::byte> second) noexcept {
  seen_.store(seen() + 1, std::memory_order_relaxed);
  record.stored_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(first.size() + second.size(), snap_bytes_));
  if (!capture_.virtual_time_) {
    if (!inside_->ring.push(record, first, second)) dropped_.store(dropped() + 1, std::memory_order_relaxed);
    return;
  }
  std::span<const std::byte> bytes = first;
  if (!second.empty()) {
    std::vector<std::byte>& joined = inside_->joined;
    joined.assign(first.begin(), first.end());
    joined.insert(joined.end(), second.begin(), second.end());
    bytes = joined;
  }
  capture_.write(number_, record, bytes.first(record.stored_bytes));
}

void Tap::received(const RxPacket& packet, Nanos time) noexcept {
  Record record;
  record.time = time;
  record.original_bytes = static_cast<std::uint32_t>(packet.bytes.size() + packet.tail.size()) + packet.virtual_bytes;
  record.remote = packet.source;
  record.direction = Direction::in;
  record.ecn = packet.ecn;
  record.priority = packet.priority;
  record.hops = packet.hops;
  put(record, packet.bytes, packet.tail);
}

void Tap::sent(const TxPacket& packet, Nanos time) noexcept {
  Record record;
  record.time = time;
  record.original_bytes = static_cast<std::uint32_t>(packet.header.size() + packet.payload.size());
  record.remote = *packet.destination;
  record.direction = Direction::out;
  record.ecn = packet.ecn;
  record.priority = packet.priority;
  put(record, packet.header, packet.payload.data() != nullptr ? packet.payload : std::span<const std::byte>());
}

void Tap::frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept {
  Record record;
  record.time = now();
  record.original_bytes = static_cast<std::uint32_t>(frame_bytes);
  record.direction = way == Way::in ? Direction::in : Direction::out;
  put(record, first, {});
}

// ---- The capture ----

Capture::Capture(const CaptureOptions& options, std::function<Nanos()> virtual_time)
    : options_(options),
      virtual_time_(std::move(virtual_time)),
      inside_(std::make_unique<Inside>(
          options, virtual_time_ ? "Time is virtual: nanoseconds since the network began." : std::string())) {}

Capture::Capture(const CaptureOptions& options) : Capture(options, {}) {}

Capture::~Capture() { finish(); }

Tap& Capture::add(std::string name, std::string description, const Address& own, bool ethernet) {
  const auto number = static_cast<std::uint32_t>(taps_.size());
  InterfaceInfo& info = inside_->interfaces.emplace_back();
  info.name = std::move(name);
  info.description = std::move(description);
  info.link = ethernet ? LinkType::ethernet : LinkType::ip;
  inside_->file.add(info);
  inside_->unwritten.push_back(0);
  const std::size_t ring_bytes = virtual_time_ ? 64 : kRingBytes;
  return *taps_.emplace_back(std::unique_ptr<Tap>(new Tap(*this, number, own, ring_bytes)));
}

Tap& Capture::add(std::string name, std::string description, const Address& own) {
  return add(std::move(name), std::move(description), own, false);
}

Tap& Capture::add_ethernet(std::string name, std::string description) {
  return add(std::move(name), std::move(description), {}, true);
}

void Capture::start() {
  inside_->file.check_size();
  inside_->started = inside_->latest = virtual_time_ ? virtual_time_() : since_1970();
  inside_->is_running = true;
  if (virtual_time_) return;
  inside_->file.flush();  // shows readers of the file that the capture has begun
  // Blocks all signals in the writer's thread, so that the threads of the program handle them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    inside_->writer = std::thread([this] { run_writer(); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw RunError(fmt::format("the capture's thread can't be started ({}); raise the limit of processes (ulimit -u)",
                               std::strerror(error.code().value())));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Capture::write(std::uint32_t number, const Record& record, std::span<const std::byte> bytes) {
  inside_->latest = std::max(inside_->latest, record.time);
  CaptureFile& file = inside_->file;
  bool is_written = false;
  if (inside_->interfaces[number].link == LinkType::ethernet) {
    is_written = file.packet(number, record.time, record.direction, {}, bytes, record.original_bytes);
  } else {
    encap::Headers headers;
    headers.source = record.direction == Direction::out ? taps_[number]->own_ : record.remote;
    headers.destination = record.direction == Direction::out ? record.remote : taps_[number]->own_;
    headers.ecn = record.ecn;
    headers.priority = record.priority;
    headers.time_to_live = static_cast<std::uint8_t>(encap::kTimeToLive - std::min<std::uint8_t>(record.hops, 63));
    const std::size_t payload = std::min<std::size_t>(record.original_bytes, encap::kMaxPayloadBytes);
    std::array<std::byte, kMaxHeaders> space;  // NOLINT(*-member-init): filled by write_headers()
    const std::size_t size =
        encap::write_headers(headers, payload, encap::sum(bytes.data(), bytes.size()), space.data());
    const auto header = std::span<const std::byte>(space).first(size).subspan(encap::kEthernetBytes);
    const std::size_t kept = std::min<std::size_t>(
        bytes.size(), options_.snap_bytes - std::min<std::size_t>(header.size(), options_.snap_bytes));
    is_written = file.packet(number, record.time, record.direction, header, bytes.first(kept),
                             static_cast<std::uint32_t>(header.size() + payload));
  }
  if (!is_written) ++inside_->unwritten[number];
}

/// Writes all packets from before `until`, in the order of their times. Returns the number of these packets.
std::size_t Capture::drain(Nanos until) {
  std::size_t count = 0;
  for (;;) {
    const Record* first = nullptr;
    std::span<const std::byte> bytes;
    Tap* of = nullptr;
    for (const auto& tap : taps_) {
      std::span<const std::byte> own;
      const Record* const record = tap->inside_->ring.front(own);
      if (record == nullptr || (first != nullptr && record->time >= first->time)) continue;
      if (record->time > until && !tap->inside_->ring.is_half_full()) continue;
      first = record;
      bytes = own;
      of = tap.get();
    }
    if (of == nullptr) return count;
    write(of->number_, *first, bytes);
    of->inside_->ring.pop();
    ++count;
  }
}

void Capture::run_writer() {
  Nanos flushed = since_1970();
  std::unique_lock lock(inside_->mutex);
  while (!inside_->is_ending) {
    lock.unlock();
    const Nanos now = since_1970();
    drain(now - kOrderWithin);
    if (now - flushed >= kFlushEvery || now < flushed) {
      inside_->file.flush();
      flushed = now;
    }
    lock.lock();
    inside_->ends.wait_for(lock, kLookEvery, [&] { return inside_->is_ending; });
  }
}

Capture::Summary Capture::finish() {
  Inside& inside = *inside_;
  if (std::exchange(inside.is_finished, true)) return inside.summary;
  if (inside.writer.joinable()) {
    {
      const std::lock_guard lock(inside.mutex);
      inside.is_ending = true;
    }
    inside.ends.notify_all();
    inside.writer.join();
  }
  if (!virtual_time_) drain(Nanos::never());
  for (const auto& tap : taps_) {
    InterfaceStatistics statistics;
    statistics.start = inside.started;
    statistics.end = inside.latest;
    statistics.seen = tap->seen();
    statistics.dropped = tap->dropped() + inside.unwritten[tap->number_];
    tap->dropped_.store(statistics.dropped, std::memory_order_relaxed);
    inside.file.statistics(tap->number_, statistics);
    inside.summary.seen += statistics.seen;
    inside.summary.dropped += statistics.dropped;
  }
  inside.file.flush();
  inside.summary.is_full = inside.file.is_full();
  inside.summary.failure = inside.file.failure();
  inside.summary.file = inside.file.name();
  return inside.summary;
}

std::string Capture::to_text(const Summary& summary, bool& is_complete) {
  is_complete = summary.dropped == 0 && summary.failure.empty();
  std::string text = fmt::format("{} in {}", plural(summary.seen - summary.dropped, "packet"), one_line(summary.file));
  if (!summary.failure.empty())
    text += "; " + summary.failure;
  else if (summary.is_full)
    text += fmt::format("; it is full, and {} not in it: give a larger size=, or files=N to keep the latest",
                        summary.dropped == 1 ? "1 later one is" : fmt::format("{} later ones are", summary.dropped));
  else if (summary.dropped > 0)
    text += fmt::format("; {} came faster than they could be written: keep fewer bytes of each (snap=)",
                        summary.dropped == 1 ? "1 more" : fmt::format("{} more", summary.dropped));
  return text;
}

}  // namespace mltcp::capture
