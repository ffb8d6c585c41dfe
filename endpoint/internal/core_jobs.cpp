// Jobs that span the shards of an endpoint, and memory that devices read (see core.h). Each shard's transport follows
// iterations by itself, so the bytes of an iteration are divided over the shards. The ratio is that of the bytes posted
// on each shard in the previous iteration. If nothing was posted, it is the ratio of the attached connections.
#include <unistd.h>

#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/endpoint/internal/core.h"

namespace mltcp::endpoint {
namespace {

std::uint64_t face_of(std::uint32_t generation, bool used) { return std::uint64_t{generation} << 32 | (used ? 1 : 0); }

}  // namespace

Core::JobEntry* Core::find_job(JobHandle handle) noexcept {
  const HandleParts parts = parts_of(handle);
  if (parts.shard != 0 || parts.slot >= jobs_.size()) return nullptr;
  JobEntry& job = jobs_[parts.slot];
  return job.face.load(std::memory_order_acquire) == face_of(parts.generation, true) ? &job : nullptr;
}

void Core::count_posted(const Link& link, std::uint32_t shard, Bytes bytes) noexcept {
  const std::uint32_t job = link.job.load(std::memory_order_acquire);
  if (job == 0) return;
  jobs_[job - 1].posted[shard].fetch_add(bytes, std::memory_order_relaxed);
}

template <typename What>
Code Core::on_all_workers(std::uint32_t slot, What what) noexcept {
  for (const auto& worker : workers_) {
    Code code = Code::ok;
    const Code asked = on_worker(*worker, [&]() noexcept {
      if (!worker->has_shard())
        code = Code::destroyed;
      else if (const JobId job = worker->job(slot); job != Worker::kNoJob)
        what(*worker, job);
    });
    if (asked != Code::ok) return asked;
    if (code != Code::ok) return code;
  }
  return Code::ok;
}

Code Core::create_job(const JobOptions& options, JobHandle& handle) noexcept {
  handle = 0;
  if (const Code code = usable(); code != Code::ok) return code;
  if (Worker::in_callback()) return Code::unsupported;
  if (options.plan && !objection_to(*options.plan).empty()) return Code::invalid;
  const std::lock_guard lock(set_up_);
  const auto free = std::find_if(jobs_.begin(), jobs_.end(), [](const JobEntry& job) { return !job.used; });
  if (free == jobs_.end()) return Code::no_room;
  JobEntry& job = *free;
  const auto slot = static_cast<std::uint32_t>(free - jobs_.begin());
  JobConfig config;
  config.number = options.number;
  config.augmentation = options.augmentation;
  config.max_rate = options.max_rate;
  config.learn_iterations = options.learn_iterations;
  config.parameters = config_.connection.parameters;
  try {
    if (job.posted == nullptr) {
      job.posted = std::make_unique<std::atomic<Bytes>[]>(workers_.size());
      job.attached = std::make_unique<std::atomic<std::uint32_t>[]>(workers_.size());
    }
  } catch (const std::exception&) {
    return Code::no_room;
  }
  for (std::size_t shard = 0; shard < workers_.size(); ++shard) job.posted[shard] = job.attached[shard] = 0;
  Code code = Code::ok;
  for (const auto& worker : workers_) {
    const Code asked = on_worker(*worker, [&]() noexcept {
      try {
        if (!worker->has_shard())
          code = Code::destroyed;
        else
          worker->set_job(slot, worker->shard().add_job(config), options.plan);
      } catch (const std::exception&) {
        code = Code::no_room;
      }
    });
    if (asked != Code::ok) code = asked;
    if (code != Code::ok) return code;
  }
  job.used = true;
  job.number = options.number;
  job.between_iterations = false;
  job.face.store(face_of(job.generation, true), std::memory_order_release);
  handle = handle_of(0, slot, job.generation);
  return Code::ok;
}

Code Core::remove_job(JobHandle handle) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  if (Worker::in_callback()) return Code::unsupported;
  const std::lock_guard lock(set_up_);
  JobEntry* const job = find_job(handle);
  if (job == nullptr) return Code::unknown;
  const std::uint32_t slot = parts_of(handle).slot;
  job->generation = job->generation + 1 == 0 ? 1 : job->generation + 1;
  job->face.store(face_of(job->generation, false), std::memory_order_release);
  const Code code = on_all_workers(slot, [&](Worker& worker, JobId id) {
    worker.shard().remove_job(id);
    worker.set_job(slot, Worker::kNoJob);
    worker.forget_job(slot);
  });
  job->used = false;
  return code;
}

Code Core::attach(ConnectionHandle connection, JobHandle handle) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  JobEntry* const job = find_job(handle);
  if (job == nullptr) return Code::unknown;
  const HandleParts parts = parts_of(connection);
  Worker* const worker = worker_of(parts);
  std::uint64_t face = 0;
  Link* const link = worker != nullptr ? worker->find_any_thread(parts, face) : nullptr;
  if (link == nullptr) return Code::unknown;
  if ((face & Face::kMayPost) == 0) return Face::code(face);
  const std::uint32_t mark = parts_of(handle).slot + 1;
  if (link->job.exchange(mark, std::memory_order_acq_rel) != mark)
    job->attached[parts.shard].fetch_add(1, std::memory_order_relaxed);
  return command(Command::Type::attach, connection);
}

Code Core::begin_iteration(JobHandle handle, Bytes bytes, Beginning beginning) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  JobEntry* const job = find_job(handle);
  if (job == nullptr) return Code::unknown;
  std::array<std::uint64_t, 256> weights{};
  std::uint64_t all = 0;
  const std::size_t shards = workers_.size();
  for (std::size_t shard = 0; shard < shards; ++shard)
    all += weights[shard] = job->posted[shard].exchange(0, std::memory_order_relaxed);
  if (all == 0)
    for (std::size_t shard = 0; shard < shards; ++shard)
      all += weights[shard] = job->attached[shard].load(std::memory_order_relaxed);
  std::size_t highest = 0;
  Bytes left = bytes;
  std::array<Bytes, 256> parts{};
  for (std::size_t shard = 0; shard < shards; ++shard) {
    if (weights[shard] > weights[highest]) highest = shard;
    parts[shard] = all == 0 ? 0 : static_cast<Bytes>(static_cast<Uint128>(bytes) * weights[shard] / all);
    left -= parts[shard];
  }
  parts[highest] += left;  // adds the remainder of the rounding
  job->between_iterations.store(false, std::memory_order_relaxed);
  const std::uint32_t slot = parts_of(handle).slot;
  Code code = Code::ok;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    Worker& worker = *workers_[shard];
    if (!enter_place(worker)) {
      const bool is_known = beginning == Beginning::known;
      const auto type = is_known ? Command::Type::begin_iteration : Command::Type::guess_iteration;
      if (!worker.push({type, slot, parts[shard]})) code = Code::queue_full;
      continue;
    }
    worker.begin_iteration(slot, parts[shard], beginning);
    leave_place(worker);
  }
  return code;
}

Code Core::learn_iterations(JobHandle handle) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  JobEntry* const job = find_job(handle);
  if (job == nullptr) return Code::unknown;
  job->between_iterations.store(false, std::memory_order_relaxed);
  const std::uint32_t slot = parts_of(handle).slot;
  Code code = Code::ok;
  for (const auto& each : workers_) {
    Worker& worker = *each;
    if (!enter_place(worker)) {
      if (!worker.push({Command::Type::learn_iterations, slot, 0})) code = Code::queue_full;
      continue;
    }
    if (worker.job(slot) != Worker::kNoJob) (void)worker.shard().learn_iterations(worker.job(slot));
    leave_place(worker);
  }
  return code;
}

Code Core::end_iteration(JobHandle handle) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  JobEntry* const job = find_job(handle);
  if (job == nullptr) return Code::unknown;
  job->between_iterations.store(true, std::memory_order_relaxed);
  return Code::ok;
}

Code Core::set_plan(JobHandle handle, const PhasePlan& plan, PlanState& state) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  if (Worker::in_callback()) return Code::unsupported;
  if (find_job(handle) == nullptr) return Code::unknown;
  bool any = false;
  return on_all_workers(parts_of(handle).slot, [&](Worker& worker, JobId id) {
    worker.forget_plan(parts_of(handle).slot);
    const PlanState one = worker.shard().set_plan(id, plan, time_->now());
    if (!any || one != PlanState::active) state = one;
    any = true;
  });
}

Code Core::clear_plan(JobHandle handle) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  if (Worker::in_callback()) return Code::unsupported;
  if (find_job(handle) == nullptr) return Code::unknown;
  return on_all_workers(parts_of(handle).slot, [&](Worker& worker, JobId id) {
    worker.forget_plan(parts_of(handle).slot);
    worker.shard().clear_plan(id, time_->now());
  });
}

Code Core::set_job_rate(JobHandle handle, Rate rate) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  if (Worker::in_callback()) return Code::unsupported;
  if (find_job(handle) == nullptr) return Code::unknown;
  return on_all_workers(parts_of(handle).slot,
                        [&](Worker& worker, JobId id) { (void)worker.shard().set_job_rate(id, rate); });
}

Code Core::report(JobHandle handle, JobReport& out) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  if (Worker::in_callback()) return Code::unsupported;
  JobEntry* const job = find_job(handle);
  if (job == nullptr) return Code::unknown;
  out = {};
  out.between_iterations = job->between_iterations.load(std::memory_order_relaxed);
  double gains = 0;
  const std::uint32_t slot = parts_of(handle).slot;
  const Code code = on_all_workers(slot, [&](Worker& worker, JobId id) {
    const std::uint32_t before = out.connections;
    worker.add_to(out, slot);
    const cc::Augmentation* const progress = worker.shard().job_progress(id);
    if (progress == nullptr) return;
    out.iteration = std::max(out.iteration, progress->tracker.iteration());
    out.bytes_sent += progress->tracker.bytes_sent();
    out.bytes_per_iteration += progress->tracker.bytes_per_iteration();
    const double gain = worker.shard().job_gain(id);
    gains += gain * (out.connections - before);
    if (out.connections == 0) out.gain = gain;
    const GateStats gate = worker.shard().gate_stats(id);
    if (out.plan == PlanState::none || out.plan == PlanState::active) out.plan = gate.state;
    out.on_slot += gate.on_slot;
    out.corrections += gate.corrections;
  });
  if (out.connections > 0) out.gain = gains / out.connections;
  if (out.bytes_per_iteration > 0)
    out.bytes_ratio = std::min(1.0, static_cast<double>(out.bytes_sent) / static_cast<double>(out.bytes_per_iteration));
  return code;
}

// ---- Memory ----

Code Core::register_memory(std::span<std::byte> memory, MemoryHandle& handle) noexcept {
  handle = 0;
  if (const Code code = usable(); code != Code::ok) return code;
  if (memory.empty() || memory.data() == nullptr) return Code::invalid;
  const std::lock_guard lock(set_up_);
  const auto free = std::find_if(regions_.begin(), regions_.end(), [](const Region& region) { return !region.used; });
  if (free == regions_.end()) return Code::no_room;
  try {
    const auto devices = datapath_ != nullptr ? datapath_->dma_devices() : std::span<DmaDevice* const>();
    const bool any =
        std::any_of(devices.begin(), devices.end(), [](const DmaDevice* device) { return device->needs_mapping(); });
    if (any) free->memory = std::make_unique<RegisteredMemory>(memory, devices);
  } catch (const InputError& error) {
    failure_ = error.what();
    return Code::invalid;
  } catch (const std::exception& error) {
    failure_ = error.what();
    return Code::failed;
  }
  free->used = true;
  handle = handle_of(0, static_cast<std::uint32_t>(free - regions_.begin()), free->generation);
  return Code::ok;
}

Code Core::unregister_memory(MemoryHandle handle) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  const HandleParts parts = parts_of(handle);
  const std::lock_guard lock(set_up_);
  if (parts.shard != 0 || parts.slot >= regions_.size()) return Code::unknown;
  Region& region = regions_[parts.slot];
  if (!region.used || region.generation != parts.generation) return Code::unknown;
  region.memory.reset();
  region.used = false;
  region.generation = region.generation + 1 == 0 ? 1 : region.generation + 1;
  return Code::ok;
}

}  // namespace mltcp::endpoint
