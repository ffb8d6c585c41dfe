// A profiler that NCCL finds in the same object. It reports the beginnings of iterations to the devices' jobs.
//
// The event of a collective comes when the program calls the collective, long before the GPU executes it. So an
// iteration begins here with the first operation of NCCL's proxy thread for the collective. This operation begins
// together with the collective's traffic.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string_view>

#include "mltcp/endpoint/collective_sequence.h"
#include "mltcp/plugins/nccl/plugin.h"
#include "mltcp/plugins/nccl/profiler_api.h"

namespace mltcp::nccl {
namespace {

/// A collective that was called. Proxy operations may refer to a collective after its event has ended, so the oldest
/// entry is reused first.
struct Called {
  std::atomic<std::uint64_t> signature{0};
  std::atomic<bool> has_begun{false};
};

/// State of one of NCCL's communicators.
struct Context {
  std::array<Called, 4096> called;
  std::atomic<std::uint32_t> next{0};
  std::mutex guard;  ///< guards `sequence`; locked once per collective
  endpoint::CollectiveSequence sequence;
};

/// The communicator whose collectives determine the job's iterations. It is the first communicator with known
/// iterations, because several communicators of a job may have iterations at the same time.
std::atomic<Context*> leader{nullptr};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) { return (hash ^ value) * 0x9E37'79B9'7F4A'7C15U; }
std::uint64_t mix(std::uint64_t hash, const char* text) {
  for (const char letter : std::string_view(text == nullptr ? "" : text))
    hash = mix(hash, static_cast<unsigned char>(letter));
  return hash;
}

std::uint64_t signature_of(const ProfilerEvent& event) {
  if (event.kind == kCollectiveEvent) {
    const CollectiveEvent& one = event.collective;
    return mix(mix(mix(mix(1, one.function), one.type), one.count), static_cast<std::uint64_t>(one.root));
  }
  const PointToPointEvent& one = event.point_to_point;
  return mix(mix(mix(mix(2, one.function), one.type), one.count), static_cast<std::uint64_t>(one.peer));
}

void on_begin(Context& context, Called& called) {
  if (called.has_begun.exchange(true, std::memory_order_acq_rel)) return;
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  endpoint::CollectiveSequence::Step step{};
  {
    const std::lock_guard lock(context.guard);
    step = context.sequence.on_collective(called.signature.load(std::memory_order_relaxed), Nanos(now.count()));
  }
  if (step == endpoint::CollectiveSequence::Step::within) return;
  Context* leading = leader.load(std::memory_order_acquire);
  if (leading == nullptr && step == endpoint::CollectiveSequence::Step::begins) {
    leader.compare_exchange_strong(leading, &context);
    leading = leader.load(std::memory_order_acquire);
  }
  // As long as there is no `leader`, the iterations of all communicators are reported.
  if (leading != nullptr && leading != &context) return;
  Plugin::of_process().mark_iteration(step);
  if (step == endpoint::CollectiveSequence::Step::lost) leader.store(nullptr, std::memory_order_release);
}

Result init(void** context, int* events, const char* /*name*/, std::uint64_t /*comm*/, int /*nodes*/, int /*ranks*/,
            int /*rank*/, Logger /*logger*/) {
  *context = new (std::nothrow) Context;
  if (*context == nullptr) return Result::system_error;
  *events = kCollectiveEvent | kPointToPointEvent | kProxyOperationEvent;
  return Result::success;
}

Result start(void* context, void** event, ProfilerEvent* description) {
  *event = nullptr;
  if (context == nullptr || description == nullptr) return Result::success;
  Context& own = *static_cast<Context*>(context);
  if (description->kind == kCollectiveEvent || description->kind == kPointToPointEvent) {
    Called& called = own.called[own.next.fetch_add(1, std::memory_order_relaxed) % own.called.size()];
    called.signature.store(signature_of(*description), std::memory_order_relaxed);
    called.has_begun.store(false, std::memory_order_release);
    *event = &called;
  } else if (description->kind == kProxyOperationEvent && description->parent != nullptr &&
             description->proxy_operation.process == getpid()) {
    on_begin(own, *static_cast<Called*>(description->parent));
  }
  return Result::success;
}

Result stop(void* /*event*/) { return Result::success; }
Result record(void* /*event*/, int /*state*/, void* /*arguments*/) { return Result::success; }

Result finalize(void* context) {
  Context* own = static_cast<Context*>(context);
  Context* leading = own;
  leader.compare_exchange_strong(leading, nullptr);
  delete own;
  return Result::success;
}

}  // namespace
}  // namespace mltcp::nccl

extern "C" [[gnu::visibility("default")]] constinit const mltcp::nccl::ProfilerV4 ncclProfiler_v4{
    "MLTCP", &mltcp::nccl::init, &mltcp::nccl::start, &mltcp::nccl::stop, &mltcp::nccl::record, &mltcp::nccl::finalize};
