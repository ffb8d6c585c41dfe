// A shard of an endpoint with its connections, its operations, tag matching, and the commands of other threads. One
// thread at a time drives a worker: the one whose enter() succeeded. Only that thread may use the members of Worker,
// except those under the heading "Any thread".
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/base/system_random.h"
#include "mltcp/base/time_source.h"
#include "mltcp/endpoint/internal/bounded_ring.h"
#include "mltcp/endpoint/internal/completion_ring.h"
#include "mltcp/endpoint/internal/gate.h"
#include "mltcp/endpoint/internal/link.h"
#include "mltcp/endpoint/internal/matcher.h"
#include "mltcp/endpoint/internal/operation.h"
#include "mltcp/endpoint/internal/wakeup.h"
#include "mltcp/endpoint/types.h"
#include "mltcp/transport/deadline_heap.h"
#include "mltcp/transport/pollable.h"
#include "mltcp/transport/shard.h"

namespace mltcp::endpoint {

/// State shared by the workers of an endpoint.
struct Shared {
  const EndpointConfig* config = nullptr;
  EndpointAddress address;
  ConnectionConfig connection;  ///< the program's settings, with the limits that follow from peer_timeout
  CompletionRing* events = nullptr;
  Gate* gate = nullptr;
  TimeSource* time = nullptr;  ///< clock of the datapath
  std::atomic<bool> closing{false};
};

struct Command {
  enum class Type : std::uint8_t {
    start,
    cancel,
    close,
    abort,
    begin_iteration,
    guess_iteration,  ///< begin_iteration, with Beginning::guessed
    learn_iterations,
    attach,
    call
  };
  Type type = Type::start;
  /// Slot of an operation for `start`; slot of a job for begin_iteration, guess_iteration and learn_iterations.
  std::uint32_t slot = 0;
  std::uint64_t argument = 0;  ///< a handle, bytes, or the address of a Call
};

/// A function that a worker's driver runs while another thread waits for it.
struct Call {
  void (*run)(void* what) noexcept = nullptr;
  void* what = nullptr;
  bool done = false;  ///< guarded by Shared::gate
};

class Worker final : public Pollable {
 public:
  static constexpr JobId kNoJob = ~JobId{0};

  /// Throws InputError or RunError. `io`, `shared` and `wakeup` must outlive the worker. `wakeup` wakes the driving
  /// thread.
  Worker(std::uint32_t number, PacketIo& io, Shared& shared, Wakeup& wakeup, Nanos now);
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // ---- Any thread. ----

  /// Makes the calling thread the driver. Returns false if another thread drives the worker.
  bool enter() noexcept { return !driven_.exchange(true, std::memory_order_acquire); }
  void leave() noexcept { driven_.store(false, std::memory_order_release); }
  /// Returns whether the calling thread is in a callback from this worker's poll().
  [[nodiscard]] bool is_calling_back() const noexcept { return calling_back_ == this; }
  /// Returns whether the calling thread is in a callback from any worker's poll().
  [[nodiscard]] static bool in_callback() noexcept { return calling_back_ != nullptr; }
  /// Returns false if the queue of commands is full.
  bool push(const Command& command) noexcept {
    if (!commands_.push(command)) return false;
    if (wakeup_.wake()) wakeups_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  [[nodiscard]] bool has_commands() const noexcept { return commands_.has_some(); }
  [[nodiscard]] OperationPool& operations() noexcept { return operations_; }
  [[nodiscard]] Wakeup& wakeup() noexcept { return wakeup_; }
  /// Returns the connection that a handle names, and sets `face`; null if there is none. If the face has kLeft, only
  /// the face is valid.
  [[nodiscard]] Link* find_any_thread(const HandleParts& parts, std::uint64_t& face) noexcept {
    if (parts.slot >= links_.size()) return nullptr;
    Link& link = links_[parts.slot];
    face = link.face.load(std::memory_order_acquire);
    return Face::generation(face) == parts.generation && Face::is_some(face) ? &link : nullptr;
  }
  /// Reserves a connection with a handle for connect(). Returns null if there is no room. For `reports_failure`, see
  /// Link.
  Link* reserve_link(ConnectionKind kind, const EndpointAddress& peer, std::uint64_t random,
                     bool reports_failure) noexcept;
  /// Frees a reserved connection that no operation has started.
  void unreserve_link(Link& link) noexcept;
  /// Reports the end of an operation to test() and wait(), or frees the operation if it was forgotten.
  void report_to_handle(Operation& operation) noexcept;
  [[nodiscard]] std::uint64_t wakeups() const noexcept { return wakeups_.load(std::memory_order_relaxed); }

  // ---- Driving thread. ----

  Nanos poll(Nanos now) override;
  /// Runs the commands of other threads. Must be called before any direct post, so that the order is kept.
  void drain() noexcept;
  void start(Operation& operation) noexcept;
  /// Returns false if it is too late to cancel.
  bool cancel(OperationHandle handle) noexcept;
  void close(ConnectionHandle handle) noexcept;
  void abort(ConnectionHandle handle) noexcept;
  /// Ends everything with Code::destroyed. Afterwards the driver must call poll() until is_quiet().
  void end_all() noexcept;
  /// Returns whether all transport connections have ended and all completions are delivered.
  [[nodiscard]] bool is_quiet() const { return live_transports_ == 0 && reports_.empty() && !commands_.has_some(); }
  /// Frees the transport, so that the datapath can be destroyed.
  void drop_shard() { shard_.reset(); }
  /// Calls the callbacks and adds the events that are due. poll() calls this function. After end_all() the driver also
  /// calls it directly.
  void deliver() noexcept;

  void set_now(Nanos now) { now_ = std::max(now_, now); }
  [[nodiscard]] Shard& shard() { return *shard_; }
  [[nodiscard]] bool has_shard() const { return shard_ != nullptr; }
  /// Returns null if there is no such connection, or if only its face is left.
  [[nodiscard]] Link* find(ConnectionHandle handle) noexcept;
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  void count_in_place() { ++in_place_; }

  // The following functions name a job by the number of its slot.
  /// `plan` is set at the first iteration whose size is known.
  void set_job(std::uint32_t slot, JobId job, const std::optional<PhasePlan>& plan = std::nullopt) {
    jobs_[slot] = job;
    plans_[slot] = plan;
  }
  /// Discards the plan that waits for the first iteration, because the program has set or cleared a plan.
  void forget_plan(std::uint32_t slot) { plans_[slot].reset(); }
  void begin_iteration(std::uint32_t slot, Bytes bytes, Beginning beginning) noexcept;
  [[nodiscard]] JobId job(std::uint32_t slot) const { return jobs_[slot]; }
  void attach(Link& link) noexcept;
  void forget_job(std::uint32_t slot) noexcept;
  /// Adds what the job's connections on this shard know of the path.
  void add_to(JobReport& report, std::uint32_t slot) const noexcept;

  /// Approximate memory in bytes that a worker needs for each of max_operations and max_connections, before any
  /// connection exists. See the constructors of Worker and Shard.
  static const Bytes operation_bytes;
  static const Bytes connection_bytes;

  struct Counters {
    std::uint64_t broken_protocols = 0;
    std::uint64_t unintroduced = 0;
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::uint64_t in_place() const { return in_place_; }

 private:
  static constexpr std::size_t kTaken = 32;  ///< maximum number of completions taken at a time
  /// Frames reserved for answers, so that the program's messages do not delay them.
  static constexpr std::size_t kKeptForAnswers = 2;

  // Type of a transport completion, in the highest byte of its tag.
  enum class Cookie : std::uint8_t { none, operation, hello, send_frame, receive_frame, discarded };
  struct Route {
    ConnectionId id = 0;
    std::uint32_t link = 0;
    std::uint8_t part = 0;
  };
  struct Report {
    Completion completion;
    Callback callback = nullptr;     ///< null for an event, which goes to the queue
    Operation* operation = nullptr;  ///< freed when it is reported; null for an event
  };

  static std::uint64_t cookie(Cookie type, std::uint64_t what) { return static_cast<std::uint64_t>(type) << 56 | what; }

  // In worker.cpp: driving, and the end of operations.
  bool take_completions() noexcept;
  void on_completion(const mltcp::Completion& completion) noexcept;
  void on_operation(Link& link, Operation& operation, const mltcp::Completion& completion) noexcept;
  void run(const Command& command) noexcept;
  void end(Operation& operation, Code code, Cause cause) noexcept;
  /// Ends an operation that was posted on a connection that is closing or has ended. `link` is null if the connection
  /// no longer exists.
  void end_posted_late(Operation& operation, Link* link) noexcept;
  void report(Operation& operation, const Completion& completion) noexcept;
  void event(Link& link, Completion::Kind kind, Code code, Cause cause) noexcept;
  void set_deadline(Operation& operation, Nanos limit) noexcept;
  void expire() noexcept;
  void expire(Operation& operation) noexcept;
  bool withdraw(Operation& operation, Code code, Cause cause) noexcept;
  void start_ordered(Operation& operation) noexcept;
  void flush_ordered(Link& link) noexcept;
  bool post_ordered(Link& link, Operation& operation) noexcept;

  // In worker_links.cpp: connections from hello to end.
  Link* take_link() noexcept;
  void leave_place(Link& link) noexcept;
  void forget(ConnectionHandle handle) noexcept;
  void start_connect(Operation& operation) noexcept;
  bool open_transport(Link& link, std::uint32_t part) noexcept;
  [[nodiscard]] Hello hello_of(const Link& link, std::uint32_t part) const noexcept;
  bool exchange_hellos(Link& link, std::uint32_t part, const Hello& hello) noexcept;
  bool send_hello(Link& link, std::uint32_t part, std::uint64_t tag) noexcept;
  void add_route(Link& link, std::uint32_t part, ConnectionId id) noexcept;
  void on_accepted(ConnectionId id) noexcept;
  void on_hello(Link& link, std::uint32_t part, const mltcp::Completion& completion) noexcept;
  void on_question(Link& link, const Hello& hello, Verdict verdict) noexcept;
  void on_answer(Link& link, std::uint32_t part, const Hello& hello, Verdict verdict) noexcept;
  void pair(Link& link, const Hello& hello) noexcept;
  void answer(Link& link, std::uint32_t part) noexcept;
  void turn_away(Link& link, Verdict verdict) noexcept;
  void drop_unintroduced(Link& link) noexcept;
  void accept(Link& link, const Hello& hello) noexcept;
  void open(Link& link) noexcept;
  void on_transport_closed(Link& link, std::uint32_t part, Status status) noexcept;
  void end_link(Link& link, Code code, Cause cause, bool notify_peer) noexcept;
  void end_operations(Link& link) noexcept;
  void close_when_flushed(Link& link) noexcept;
  void retire(Link& link) noexcept;
  void free_link(Link& link) noexcept;
  [[nodiscard]] static Code code_of(Status status, bool was_open, Cause& cause);
  /// Returns the code and cause for an operation that the transport has ended with `status`.
  [[nodiscard]] static Code code_of(const Link& link, Status status, Cause& cause);

  // In worker_tagged.cpp: tagged messages.
  void begin_tagged(Link& link) noexcept;
  void start_send_tagged(Operation& operation) noexcept;
  void start_receive_tagged(Operation& operation) noexcept;
  void unpost(Operation& receive) noexcept;
  void end_posted(Link* link, Code code, Cause cause) noexcept;
  void start_peek(Operation& operation) noexcept;
  void start_receive_message(Operation& operation) noexcept;
  void give(Operation& receive, Unexpected& message) noexcept;
  void prefetch_matches(std::span<const mltcp::Completion> completions) noexcept;
  void on_frame_arrived(Link& link, const mltcp::Completion& completion) noexcept;
  Cause on_frame(Link& link, const Frame& frame, std::uint32_t index) noexcept;
  Cause on_credit(Tagged& tagged, std::uint32_t credit) noexcept;
  Cause on_message(Link& link, const Frame& frame, std::uint32_t index) noexcept;
  Cause on_cts(Link& link, const Frame& frame) noexcept;
  Cause on_cancel(Link& link, const Frame& frame) noexcept;
  Cause on_cancelled(Link& link, const Frame& frame) noexcept;
  Operation* announced(Link& link, std::uint64_t id) noexcept;
  void finish_eager(Operation& receive, Link& link, std::uint64_t tag, std::span<const std::byte> bytes) noexcept;
  void on_frame_sent(Link& link, const mltcp::Completion& completion) noexcept;
  void on_flowed(Link& link, Operation& operation, const mltcp::Completion& completion) noexcept;
  void release(Unexpected& message) noexcept;
  void drop_messages(Link& link, bool all) noexcept;
  void settle_ended(Link& link) noexcept;
  void post_receive_frames(Link& link) noexcept;
  void pump(Link& link) noexcept;
  bool pump_replies(Link& link) noexcept;
  void pump_sends(Link& link) noexcept;
  void pump_granted(Link& link) noexcept;
  bool send_frame(Link& link, const Frame& frame, Operation* eager) noexcept;
  void end_unsaid(Link& link) noexcept;
  void take_back(Operation& send, Code code) noexcept;
  void break_off(Link& link, Cause cause) noexcept;

  // In worker_ahead.cpp: receives that are granted before their message is announced.
  void grant_ahead(Link& link, Operation& receive) noexcept;
  void reserve(Link& link, Operation& receive, const Frame& frame, std::span<const std::byte> eager) noexcept;
  void on_ahead(Link& link, Operation& receive, const mltcp::Completion& completion) noexcept;
  void on_given_back(Link& link, Operation& receive) noexcept;
  void ask_back(Operation& receive) noexcept;
  void expire_withdrawal(Operation& receive) noexcept;
  [[nodiscard]] std::uint64_t data_progress(const Link& link) const noexcept;
  void on_discarded(Link& link, const mltcp::Completion& completion) noexcept;
  Cause on_grant(Link& link, const Frame& frame) noexcept;
  Cause on_withdraw(Link& link, const Frame& frame) noexcept;
  Cause on_used(Link& link, const Frame& frame) noexcept;
  bool send_ahead(Tagged& tagged, Operation& send) noexcept;
  bool mark_used(Link& link, std::uint64_t tag) noexcept;
  static void give_back_grants(Tagged& tagged, std::uint32_t count) noexcept;
  static void obey(Tagged& tagged, Operation& send, Bytes wanted) noexcept;
  [[nodiscard]] Unexpected* find_message(MessageHandle handle) noexcept;
  [[nodiscard]] MessageHandle handle_of_message(const Unexpected& message) const;

  inline static thread_local const Worker* calling_back_ = nullptr;

  const std::uint32_t number_;
  Shared& shared_;
  Wakeup& wakeup_;
  std::atomic<bool> driven_{false};
  std::atomic<std::uint64_t> wakeups_{0};
  BoundedRing<Command> commands_;
  OperationPool operations_;
  BoundedRing<std::uint32_t> free_links_;
  std::atomic<std::uint32_t> known_links_{0};  ///< number of connections that count towards max_connections

  std::unique_ptr<Shard> shard_;
  Nanos now_;
  bool is_ending_ = false;
  bool posted_ = false;  ///< whether something was posted to the shard since its latest poll
  std::uint64_t ended_ = 0;
  std::uint64_t in_place_ = 0;
  Counters counters_;
  std::vector<Link> links_;
  /// Incoming connections that are not accepted yet, the oldest first. Their number is limited to the places beyond
  /// max_connections.
  List<Link, &Link::among_unintroduced> unintroduced_;
  std::vector<Route> routes_;
  std::uint32_t route_mask_ = 0;
  std::uint32_t live_transports_ = 0;
  Matcher matcher_;
  std::uint32_t claims_ = 0;  ///< number of messages that peek() has taken
  DeadlineHeap operation_deadlines_;
  DeadlineHeap link_deadlines_;
  GrowableRing<Report> reports_;
  std::vector<JobId> jobs_;
  std::vector<std::optional<PhasePlan>> plans_;  ///< for each job, the plan that waits for the first iteration
};

}  // namespace mltcp::endpoint
