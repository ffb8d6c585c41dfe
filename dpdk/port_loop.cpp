// Loops over ports; see port_loop.h.
//
// A port tells that a packet has arrived only to who asks for it, so every round polls all. A round in which no port
// moved a packet, nothing was due and nothing is blocked is an idle one; after some of those in a row the loop idles.
#include "mltcp/dpdk/port_loop.h"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_pause.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/handoff.h"
#include "mltcp/dpdk/receive_interrupts.h"

namespace mltcp::dpdk {
namespace {

/// Idle rounds before the loop idles: answers to what was just sent are often there by then. Where the machine has
/// other things to do it needs no time to be woken, and those who answer may want this CPU.
constexpr std::uint32_t kIdleRounds = 64;
constexpr std::uint32_t kIdleRoundsOfSleeper = 8;
constexpr int kPauses = 32;
constexpr Nanos kNap{50'000};
/// So long after the latest packet a sleeper by sockets naps: else it would be woken by each of many.
constexpr Nanos kAwake{200'000};
/// Shorter than this is not worth a system call.
constexpr Nanos kShortestNap{5'000};

}  // namespace

struct PortLoop::Impl {
  struct Entry {
    const PortHost* host;
    PortIo* io;
    Pollable* pollable;
    Nanos due;
    std::uint64_t moved = 0;  ///< packets, as of the round before
  };

  Impl(const Eal& eal_, Idle idle_) : eal(eal_), idle(idle_) {}

  static std::uint64_t packets_moved(const PortIo& io) {
    const PortIoCounters& c = io.counters();
    return c.received_packets + c.sent_packets + c.taken_over + c.handed_over + c.neighbour_frames + c.waited;
  }

  bool run(Nanos until, const std::function<bool()>& stop) {
    const PreciseSleep precise;
    ReceiveInterrupts interrupts(waitable_queues());
    time.start(eal.clock(), Nanos(), eal.clock().now());
    for (Entry& entry : entries) entry.due = Nanos();
    const std::uint32_t patience = interrupts.are_armed() ? kIdleRoundsOfSleeper : kIdleRounds;
    std::uint32_t idle_rounds = 0;
    Nanos busy_at;
    bool woken = false;  ///< by a file, from the latest sleep
    Nanos woken_at;
    for (;;) {
      Nanos now = time.begin_round();
      const bool ends = is_stopped(stop);
      const bool last = ends || now > until;  // a round for what was due before, such as acknowledgements
      Nanos next = until;
      bool busy = false;
      bool blocked = false;
      for (Entry& entry : entries) {
        now = time.now();
        busy = busy || entry.due <= now;
        entry.due = entry.pollable->poll(now);
        const std::uint64_t moved = packets_moved(*entry.io);
        busy = busy || moved != entry.moved;
        blocked = blocked || entry.io->is_blocked();
        entry.moved = moved;
        next = std::min({next, entry.due, entry.io->deadline()});
      }
      if (last) return ends;
      idle_rounds = busy || (blocked && idle != Idle::sleep) ? 0 : idle_rounds + 1;
      if (busy) busy_at = now;
      if (idle == Idle::spin || idle_rounds < patience) continue;
      if (idle == Idle::pause) {
        for (int i = 0; i < kPauses; ++i) rte_pause();
        continue;
      }
      if (next - now <= kShortestNap) continue;
      // Woken for nothing that moved: by what is none of ours, or for which there is no memory. It may go on.
      const bool in_vain = woken && busy_at < woken_at;
      woken = false;
      const bool awake = interrupts.are_sockets() && now - busy_at < kAwake;
      if (interrupts.are_armed() && !awake && !in_vain && !blocked) {
        woken = interrupts.wait(time, std::min(next - now, kLongestSleep), [&] { return is_idle(next); });
        woken_at = now;
        idle_rounds = 0;
      } else {
        time.sleep_for(std::min(next - now, kNap));
      }
    }
  }

  bool is_stopped(const std::function<bool()>& stop) {
    if (!stop_requested.load(std::memory_order_acquire)) [[likely]]
      return stop && stop();
    stop_requested.store(false, std::memory_order_relaxed);
    return true;
  }

  /// A round; whether it moved no packet, nothing is blocked, and nothing is due before `next`.
  bool is_idle(Nanos next) {
    bool came = false;
    for (Entry& entry : entries) {
      entry.due = entry.pollable->poll(time.now());
      came = came || packets_moved(*entry.io) != entry.moved || entry.io->is_blocked() ||
             std::min(entry.due, entry.io->deadline()) < next;
    }
    return !came;
  }

  /// All, or none if one can't be waited for: packets of a queue that another thread looks at come by no file.
  [[nodiscard]] std::vector<ReceiveInterrupts::Queue> waitable_queues() const {
    std::vector<ReceiveInterrupts::Queue> queues;
    for (const Entry& entry : entries) {
      const Port& port = entry.host->port();
      if (idle != Idle::sleep || !port.has_interrupts() || !(entry.host->is_steered() || has_all_shards(*entry.host)))
        return {};
      const std::uint16_t queue = entry.io->queue();
      const auto same = [&](const auto& other) { return other.port == port.id() && other.queue == queue; };
      if (std::none_of(queues.begin(), queues.end(), same))
        queues.push_back({port.id(), queue, port.receive_file(queue)});
    }
    return queues;
  }

  [[nodiscard]] bool has_all_shards(const PortHost& host) const {
    return std::count_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.host == &host; }) ==
           host.shards();
  }

  static int on_core(void* self) {
    take_over(self);
    auto& impl = *static_cast<Impl*>(self);
    try {
      impl.stopped = impl.run(impl.launched_until, nullptr);
    } catch (...) {
      impl.failure = std::current_exception();
    }
    hand_over(self);
    return 0;
  }

  const Eal& eal;
  const Idle idle;
  std::vector<Entry> entries;
  LoopTime time;
  std::atomic<bool> stop_requested{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  unsigned launched = 0;  ///< core; 0: none
  Nanos launched_until;
  bool stopped = false;
  std::exception_ptr failure;
};

PortLoop::PortLoop(const Eal& eal, Idle idle) : impl_(std::make_unique<Impl>(eal, idle)) {}

PortLoop::~PortLoop() {
  if (impl_->launched == 0) return;
  request_stop();
  rte_eal_wait_lcore(impl_->launched);
}

void PortLoop::attach(const PortHost& host, PortIo& io, Pollable& pollable) {
  impl_->entries.push_back({&host, &io, &pollable, Nanos()});
}

bool PortLoop::run(Nanos until, const std::function<bool()>& stop) { return impl_->run(until, stop); }

void PortLoop::launch(unsigned core, Nanos until) {
  if (core < 1 || core >= impl_->eal.cores().size()) {
    throw InputError(
        fmt::format("there is no core {} for a loop of its own; DPDK was started with {}, and the first "
                    "is the calling thread's",
                    core, impl_->eal.cores().size()));
  }
  impl_->launched_until = until;
  impl_->failure = nullptr;
  hand_over(impl_.get());
  if (const int error = rte_eal_remote_launch(Impl::on_core, impl_.get(), core); error != 0) {
    throw RunError(fmt::format("core {} runs another loop already ({}); give each its own", impl_->eal.cores()[core],
                               rte_strerror(-error)));
  }
  impl_->launched = core;
}

bool PortLoop::wait() {
  if (impl_->launched == 0) return false;
  rte_eal_wait_lcore(impl_->launched);
  take_over(impl_.get());
  impl_->launched = 0;
  if (impl_->failure) std::rethrow_exception(impl_->failure);
  return impl_->stopped;
}

void PortLoop::request_stop() noexcept { impl_->stop_requested.store(true, std::memory_order_release); }
Nanos PortLoop::now() const { return impl_->eal.clock().now(); }
const LoopCounters& PortLoop::counters() const { return impl_->time.counters; }

}  // namespace mltcp::dpdk
