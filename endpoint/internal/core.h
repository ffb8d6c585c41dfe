// The implementation of an Endpoint: its datapath, its workers, the threads that drive them, and the ways from any
// thread to a worker. The core exists as long as it is used by the endpoint, its queues, its threads, or a call during
// which the endpoint was destroyed.
//
// An operation is posted to its worker directly if the calling thread drives that worker, or if no thread drives it
// (Worker::enter()). If another thread drives the worker, the operation goes through the worker's queue, and the driver
// is woken if it sleeps. A direct post first drains the queue, so that a thread's posts keep their order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mltcp/base/system_random.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/endpoint/internal/completion_ring.h"
#include "mltcp/endpoint/internal/gate.h"
#include "mltcp/endpoint/internal/worker.h"
#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/transport/capture/capture_options.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/poll_loop.h"
#include "mltcp/transport/registered_memory.h"

namespace mltcp::endpoint {

/// The parameters of an operation that is about to be posted.
struct Request {
  Operation::Kind kind = Operation::Kind::send;
  ConnectionHandle connection = 0;
  std::byte* data = nullptr;
  std::size_t length = 0;
  std::uint64_t tag = 0;
  std::uint64_t mask = kWholeTag;
  MessageHandle message = 0;
  Take take = Take::no;
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  /// Opens the core of an endpoint. Throws InputError if `config` is wrong, RunError if the machine is not ready.
  static std::shared_ptr<Core> open(const EndpointConfig& config);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Returns Code::ok, Code::forked or Code::destroyed.
  [[nodiscard]] Code usable() const noexcept {
    if (fork_count_at_ != fork_count()) [[unlikely]]
      return Code::forked;
    return shared_.closing.load(std::memory_order_relaxed) ? Code::destroyed : Code::ok;
  }
  [[nodiscard]] bool is_forked() const noexcept { return fork_count_at_ != fork_count(); }

  // In core.cpp: set-up, driving, the end.
  Code close(bool wait) noexcept;
  std::size_t progress() noexcept;
  [[nodiscard]] int file() noexcept;
  /// Waits until the endpoint's threads have ended. If called from a callback, returns without waiting. Called by
  /// ~Endpoint().
  void join() noexcept;
  Code arm() noexcept;
  /// Waits until `there()` is true, for at most `limit`. With Driving::caller, drives the workers while it waits.
  /// Returns the last result of `there()`.
  template <typename There>
  bool wait_for(Nanos limit, There there) noexcept;

  // In core_posts.cpp.
  Code post(const Request& request, const PostOptions& options, OperationHandle& handle) noexcept;
  Code connect(std::span<const std::byte> blob, const ConnectOptions& options, ConnectionHandle& handle,
               OperationHandle* operation) noexcept;
  /// Executes close(), abort() or attach() of a connection.
  Code command(Command::Type type, std::uint64_t handle) noexcept;
  Code cancel(OperationHandle handle) noexcept;
  Code test(OperationHandle handle, Completion& out) noexcept;
  Code wait(OperationHandle handle, Completion& out, Nanos limit) noexcept;
  Code forget(OperationHandle handle) noexcept;
  Code wait(CompletionRing& ring, std::span<Completion> out, std::size_t& count, Nanos limit) noexcept;
  Code report(ConnectionHandle connection, ConnectionReport& out) noexcept;
  Code how_ended(ConnectionHandle connection, Code& end_code, Cause& end_cause) noexcept;
  Code peer(ConnectionHandle connection, EndpointAddress& out) noexcept;
  Code report(EndpointReport& out) noexcept;
  Code report(std::vector<JobClaim>& out) noexcept;

  // In core_live.cpp.
  /// Adds this endpoint's part to a snapshot.
  void show(live::Snapshot& shown) noexcept;

  // In core_jobs.cpp.
  Code create_job(const JobOptions& options, JobHandle& job) noexcept;
  Code remove_job(JobHandle job) noexcept;
  Code attach(ConnectionHandle connection, JobHandle job) noexcept;
  Code begin_iteration(JobHandle job, Bytes bytes, Beginning beginning) noexcept;
  Code learn_iterations(JobHandle job) noexcept;
  Code end_iteration(JobHandle job) noexcept;
  Code set_plan(JobHandle job, const PhasePlan& plan, PlanState& state) noexcept;
  Code clear_plan(JobHandle job) noexcept;
  Code set_job_rate(JobHandle job, Rate rate) noexcept;
  Code report(JobHandle job, JobReport& out) noexcept;
  Code register_memory(std::span<std::byte> memory, MemoryHandle& handle) noexcept;
  Code unregister_memory(MemoryHandle handle) noexcept;

  [[nodiscard]] const EndpointConfig& config() const noexcept { return config_; }
  [[nodiscard]] const EndpointAddress& address() const noexcept { return shared_.address; }
  [[nodiscard]] const std::string& description() const noexcept { return description_; }
  /// Returns the time, even while the datapath, which owns the clock, is being destroyed.
  [[nodiscard]] Nanos now() noexcept;
  [[nodiscard]] std::string failure() const;
  /// Returns the result of `what` for the datapath; empty if there is no datapath.
  [[nodiscard]] std::string ask(const std::function<std::string(const HostDatapath&)>& what) noexcept;
  [[nodiscard]] std::string why_link_is_down() noexcept {
    return ask([](const HostDatapath& datapath) { return datapath.why_link_is_down(); });
  }
  void set_failure(const std::string& why) noexcept;
  [[nodiscard]] CompletionRing& events() noexcept { return *events_; }

 private:
  struct JobEntry {
    bool used = false;
    std::uint32_t generation = 1;
    std::atomic<std::uint32_t> number{0};  ///< number that the program gave the job
    std::atomic<bool> between_iterations{false};
    std::unique_ptr<std::atomic<Bytes>[]> posted;  ///< bytes posted in this iteration, per shard
    std::unique_ptr<std::atomic<std::uint32_t>[]> attached;
    /// Generation in the upper half; 1 in the lower half if the job exists.
    std::atomic<std::uint64_t> face{std::uint64_t{1} << 32};
  };
  struct Region {
    std::unique_ptr<RegisteredMemory> memory;
    bool used = false;
    std::uint32_t generation = 1;
  };

  explicit Core(const EndpointConfig& config);
  static std::uint32_t fork_count() noexcept;

  // Set-up.
  static std::shared_ptr<Core> set_up(const EndpointConfig& config);
  void check() const;
  void open_datapath();
  [[nodiscard]] HostPlace place() const;
  void take_place();
  void make_workers();
  [[nodiscard]] bool shares_packets();
  void start_threads(const std::shared_ptr<Core>& self);
  void main_thread(const std::shared_ptr<Core>& self, std::string& failure, bool& is_input, bool& ready);
  void run_loop(std::size_t first, std::size_t count) noexcept;
  void make_poll_file();
  // Closing.
  void finish(std::size_t first, std::size_t count) noexcept;
  void finish_here() noexcept;
  void release_datapath() noexcept;

  // Posting.
  [[nodiscard]] Worker* worker_of(const HandleParts& parts) noexcept {
    return parts.shard < workers_.size() ? workers_[parts.shard].get() : nullptr;
  }
  /// Returns true if the calling thread may use the worker directly until leave_place().
  bool enter_place(Worker& worker) noexcept;
  void leave_place(Worker& worker) noexcept;
  Code submit(Worker& worker, Operation& operation, bool in_place) noexcept;
  Code place(Worker& worker, const Request& request, const PostOptions& options, OperationHandle& handle) noexcept;
  Code may_post(const Request& request, Worker*& worker) noexcept;
  Code claim(Worker& worker, Operation& operation, std::uint32_t generation, Completion& out) noexcept;
  Operation* find_waitable(OperationHandle handle, Worker*& worker, Code& code) noexcept;
  void settle(Worker& worker) noexcept;

  /// Runs `what` in the thread that drives the worker, and waits until `what` has returned. Returns Code::unsupported
  /// if called from another worker's callback.
  template <typename What>
  Code on_worker(Worker& worker, What what) noexcept;
  Code ask(Worker& worker, Call& call) noexcept;

  JobEntry* find_job(JobHandle handle) noexcept;
  template <typename What>
  Code on_all_workers(std::uint32_t slot, What what) noexcept;
  void show_ports(live::Snapshot& shown);
  void show_jobs(live::Snapshot& shown);
  void show_connections(live::Snapshot& shown);
  void show_claims(live::Snapshot& shown);
  void count_posted(const Link& link, std::uint32_t shard, Bytes bytes) noexcept;

  EndpointConfig config_;
  std::uint32_t fork_count_at_;
  Shared shared_;
  Gate gate_;
  std::string description_;
  std::optional<capture::CaptureOptions> capture_;
  std::unique_ptr<HostDatapath> datapath_;
  TimeSource* time_ = nullptr;
  std::unique_ptr<CompletionRing> events_;
  std::vector<std::unique_ptr<Wakeup>> wakeups_;  ///< one per loop
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::size_t loops_ = 1;
  std::size_t running_ = 0;  ///< number of running threads; guarded by `gate_`
  std::atomic<bool> finished_{false};
  std::atomic<std::uint32_t> clock_readers_{0};

  // The following members are only used with Driving::caller.
  std::unique_ptr<PollLoop> caller_loop_;
  std::atomic<bool> looping_{false};  ///< whether a thread drives all workers, for one round or while it waits
  bool one_drives_all_ = false;       ///< whether a shard's PacketIo may find packets of another shard
  int poll_file_ = -1;
  int timer_file_ = -1;
  std::vector<PacketIo*> armed_;
  bool waits_ = false;
  bool has_tried_poll_file_ = false;

  std::vector<JobEntry> jobs_;
  mutable std::mutex set_up_;  ///< guards jobs, memory regions and the failure text; never locked on the data path
  std::vector<Region> regions_;
  std::string failure_;
  std::atomic<std::uint64_t> next_shard_{0};
  std::uint64_t random_ = 0;
};

template <typename What>
Code Core::on_worker(Worker& worker, What what) noexcept {
  Call call;
  call.run = [](void* at) noexcept { (*static_cast<What*>(at))(); };
  call.what = &what;
  return ask(worker, call);
}

}  // namespace mltcp::endpoint
