// An endpoint's set-up, driving and end (see core.h). Posting is in core_posts.cpp, jobs and memory in core_jobs.cpp.
#include "mltcp/endpoint/internal/core.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/endpoint/environment.h"
#include "mltcp/endpoint/internal/core_waiting.h"
#include "mltcp/endpoint/internal/live_endpoints.h"
#include "mltcp/transport/capture/captured_datapath.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::endpoint {
namespace {

constexpr std::uint16_t kFirstFreePort = 49'152;
constexpr int kPortsToTry = 16;
/// Maximum time that a closing endpoint waits for the transport's last packets and for devices that still read memory.
constexpr Nanos kLongestEnd{1'000'000'000};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the fork handler has no parameter
std::atomic<std::uint32_t> forks{0};

void check_range(std::string_view key, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
  if (value < min || value > max)
    throw InputError(fmt::format("{} is {}; give a value from {} to {}", key, value, min, max));
}

/// Returns the error text for a lack of memory. The text names the settings that determine the memory and how much each
/// needs, the largest first.
std::string memory_text(const EndpointConfig& config) {
  struct Asks {
    std::string_view setting;
    std::uint64_t value;
    double megabytes;
  };
  const auto all = [&](std::uint64_t count, Bytes each) {
    return static_cast<double>(config.shards) * static_cast<double>(count) * static_cast<double>(each) * 1e-6;
  };
  std::array<Asks, 2> asks{{
      {"max_operations", config.max_operations, all(config.max_operations, Worker::operation_bytes)},
      {"max_connections", config.max_connections, all(config.max_connections, Worker::connection_bytes)},
  }};
  if (asks[1].megabytes > asks[0].megabytes) std::swap(asks[0], asks[1]);
  return fmt::format(
      "out of memory: with {} {} of {} needs about {:.1f} MB, and {} of {} needs {:.1f} MB; lower the first, or free "
      "memory",
      plural(config.shards, "shard"), asks[0].setting, asks[0].value, asks[0].megabytes, asks[1].setting, asks[1].value,
      asks[1].megabytes);
}

/// Returns the capture that EndpointConfig::capture or MLTCP_PCAP requests; none if neither is set. If MLTCP_PCAP
/// requests several captures in a process, the names of the second and later captures contain a number.
std::optional<capture::CaptureOptions> capture_of(const EndpointConfig& config) {
  static std::atomic<unsigned> captures{0};
  const bool own = !config.capture.empty();
  const std::string text(own ? config.capture : variable(&trusted_variable, "MLTCP_PCAP"));
  if (text.empty()) return std::nullopt;
  capture::CaptureOptions options = capture::parse_capture(own ? "capture" : "MLTCP_PCAP", text);
  if (own) return options;
  if (const unsigned number = ++captures; number > 1) options = capture::with_suffix(options, std::to_string(number));
  return options;
}

/// Reads the key that EndpointConfig::key or MLTCP_KEY_FILE names, unless the program has set `connection.keys`.
void take_key(EndpointConfig& config) {
  auto& keys = config.connection.keys;
  if (keys.size() > 1)
    throw InputError(fmt::format("connection.keys: {} keys; an endpoint has one at most", keys.size()));
  const auto made = [](const security::JobKey& key, bool authenticate) {
    return security::packet_key(key, authenticate ? security::Protection::authenticate : security::Protection::encrypt);
  };
  if (!config.key.empty()) {
    if (!keys.empty()) throw InputError("key and connection.keys are both given; give one of them");
    try {
      keys = {made(security::JobKey::from_source(config.key), config.authenticate)};
    } catch (const InputError& error) {
      throw InputError(fmt::format("key: {}", error.what()));
    }
  } else if (!keys.empty()) {
    if (config.authenticate)
      throw InputError(
          "authenticate is for a named key, but connection.keys is given; create that key by security::packet_key(key, "
          "security::Protection::authenticate)");
  } else {
    const bool authenticate = read_authenticate(&trusted_variable) || config.authenticate;
    if (const auto key = read_key(&trusted_variable))
      keys = {made(*key, authenticate)};
    else if (authenticate)
      throw InputError("authenticate: there is no key; give key, or name its file in MLTCP_KEY_FILE");
  }
  config.key = {};  // the text belongs to the caller, who may free it now
}

/// Prints that a capture is incomplete, because the program has no other way to learn this.
void log_capture(const std::string& line, bool is_complete) {
  if (!is_complete) fmt::print(stderr, "mltcp: capture: {}\n", line);
}

/// Throws RunError if the system cannot start another thread.
template <typename Run>
std::thread begin_thread(Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    throw RunError(fmt::format(
        "cannot start a thread for a shard: {}; raise the limit of processes (ulimit -u), or use fewer shards",
        std::strerror(error.code().value())));
  }
}

}  // namespace

std::uint32_t Core::fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

// ---- Set-up ----

Core::Core(const EndpointConfig& config) : config_(config), fork_count_at_(0), jobs_(config.max_jobs) {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  if (registered != 0) throw RunError("cannot register a handler for fork(); free some memory");
  fork_count_at_ = fork_count();
}

std::shared_ptr<Core> Core::open(const EndpointConfig& config) {
  try {
    return set_up(config);
  } catch (const std::bad_alloc&) {
    throw RunError(memory_text(config));
  }
}

std::shared_ptr<Core> Core::set_up(const EndpointConfig& config) {
  const std::shared_ptr<Core> core(new Core(config));
  core->check();
  take_key(core->config_);
  core->shared_.config = &core->config_;
  core->shared_.gate = &core->gate_;
  core->shared_.connection = core->config_.connection;
  ConnectionConfig& connection = core->shared_.connection;
  connection.give_up_after = config.peer_timeout;
  connection.idle_limit = config.peer_timeout;
  connection.keep_alive = config.peer_timeout / 4;
  connection.max_sends = std::max(connection.max_sends, config.control_frames + 8);
  connection.max_receives = std::max(connection.max_receives, config.control_frames + 8);
  SystemRandom random;
  core->random_ = config.seed ? *config.seed : random.next();
  core->next_shard_ = core->random_ >> 8;
  core->regions_.resize(config.max_memory_regions);
  // Each connection needs a place for the event of its beginning and a place for the event of its end.
  core->events_ = std::make_unique<CompletionRing>(config.max_connections * std::uint32_t{config.shards} * 4);
  core->shared_.events = core->events_.get();
  if (config.driving == Driving::threads) {
    core->start_threads(core);
  } else {
    core->open_datapath();
    core->make_workers();
  }
  try {
    show_endpoint(core);
  } catch (...) {
    core->close(true);
    core->join();
    throw;
  }
  return core;
}

void Core::check() const {
  check_range("shards", config_.shards, 1, 256);
  check_range("max_connections", config_.max_connections, 1, 65'536);
  if (config_.max_accepted_per_address)
    check_range("max_accepted_per_address", *config_.max_accepted_per_address, 1, 1U << 20);
  check_range("max_operations", config_.max_operations, 1, 1U << 20);
  check_range("max_jobs", config_.max_jobs, 0, 1024);
  check_range("max_memory_regions", config_.max_memory_regions, 0, RegisteredMemory::kMaxRanges);
  check_range("eager_limit", config_.eager_limit, 0, 32'768);
  check_range("unexpected_messages", config_.unexpected_messages, 1, 16'384);
  check_range("control_frames", config_.control_frames, 4, 1024);
  if (config_.spin < Nanos() || config_.spin > Nanos(1'000'000'000))
    throw InputError(fmt::format("spin is {} ns; give a value from 0 to 1 s", config_.spin.count));
  if (config_.peer_timeout < Nanos(10'000'000) || config_.peer_timeout > Nanos(3'600'000'000'000))
    throw InputError(fmt::format("peer_timeout is {} ns; give a value from 10 ms to 1 h", config_.peer_timeout.count));
  const auto& ip = config_.address.ip;
  if (std::all_of(ip.begin(), ip.end(), [](std::uint8_t byte) { return byte == 0; }) ||
      (config_.address.is_v4() && config_.address.v4_ip() == 0))
    throw InputError("the endpoint's address names no interface; give an address of this host that peers can reach");
  if (config_.address.port != 0 && config_.address.port + config_.shards - 1 > 65'535)
    throw InputError(fmt::format("{} shards from port {} on need ports above 65535; give a lower port", config_.shards,
                                 config_.address.port));
}

void Core::open_datapath() {
  HostDatapathConfig& datapath = config_.datapath;
  datapath.shards = datapath.usual_shards = datapath.max_shards = config_.shards;
  datapath.sleeps = config_.idle == Idle::sleep;
  capture_ = capture_of(config_);
  config_.capture = {};  // the text belongs to the caller, who may free it now
  if (config_.address.port != 0) {
    take_place();
    return;
  }
  SystemRandom random;
  const std::uint32_t span = 65'536U - kFirstFreePort - config_.shards + 1;
  std::exception_ptr first;  // the first failure, which is reported because it may have caused the later failures
  for (int attempt = 1;; ++attempt) {
    config_.address.port = free_host_ports(datapath, place());
    if (config_.address.port == 0)
      config_.address.port = static_cast<std::uint16_t>(kFirstFreePort + random.next() % span);
    try {
      take_place();
      return;
    } catch (const std::exception&) {
      datapath_.reset();
      if (first == nullptr) first = std::current_exception();
      if (attempt == kPortsToTry) std::rethrow_exception(first);
    }
  }
}

HostPlace Core::place() const {
  HostPlace place;
  place.address = config_.address;
  place.prefix_bits = config_.prefix_bits;
  place.gateway = config_.gateway;
  place.shards = config_.shards;
  return place;
}

void Core::take_place() {
  check_host_datapath(config_.datapath, place());
  datapath_ = capture_ ? capture::open_captured(config_.datapath, *capture_, log_capture)
                       : open_host_datapath(config_.datapath);
  datapath_->take_place(place());
  description_ = datapath_->description();
  time_ = &datapath_->time();
}

/// Returns whether a shard's PacketIo may find packets of another shard. One thread must then drive all shards.
bool Core::shares_packets() {
  for (std::uint16_t shard = 0; shard < config_.shards; ++shard) {
    PacketIo& io = datapath_->io(shard);
    for (const PacketIo* const feeder : io.feeders())
      if (feeder != &io) return true;
  }
  return false;
}

void Core::make_workers() {
  SystemRandom random;
  EndpointAddress::Id id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::uint8_t>(random.next());
  shared_.address = EndpointAddress(config_.address, config_.shards, id);
  shared_.time = time_;
  one_drives_all_ = shares_packets();
  loops_ = config_.driving == Driving::threads && !one_drives_all_ ? config_.shards : 1;
  for (std::size_t loop = 0; loop < loops_; ++loop) wakeups_.push_back(std::make_unique<Wakeup>());
  for (std::uint16_t shard = 0; shard < config_.shards; ++shard)
    workers_.push_back(std::make_unique<Worker>(shard, datapath_->io(shard), shared_,
                                                *wakeups_[loops_ == 1 ? 0 : shard], time_->now()));
  if (config_.driving == Driving::threads) return;
  caller_loop_ = std::make_unique<PollLoop>(*time_, config_.idle);
  for (std::uint16_t shard = 0; shard < config_.shards; ++shard)
    caller_loop_->attach(datapath_->io(shard), *workers_[shard]);
  caller_loop_->wake_by(*wakeups_[0]);
  caller_loop_->be_prompt(config_.spin);
}

/// Starts the driving threads. The first thread opens the datapath and is the last to leave it, because opening may pin
/// the thread to a CPU.
void Core::start_threads(const std::shared_ptr<Core>& self) {
  std::string failure;
  bool is_input = false;
  bool ready = false;
  running_ = 1;
  threads_.reserve(1);  // so that push_back() cannot fail once the thread runs
  threads_.push_back(
      begin_thread([self, &failure, &is_input, &ready] { self->main_thread(self, failure, is_input, ready); }));
  gate_.wait(Nanos::never(), [&] { return ready; });
  if (failure.empty()) return;
  threads_[0].join();
  threads_.clear();
  if (is_input) throw InputError(failure);
  throw RunError(failure);
}

void Core::main_thread(const std::shared_ptr<Core>& self, std::string& failure, bool& is_input, bool& ready) {
  std::vector<std::thread> others;
  try {
    open_datapath();
    make_workers();
    others.reserve(loops_);
    for (std::size_t loop = 1; loop < loops_; ++loop) {
      gate_.notify([&] { ++running_; });
      others.push_back(begin_thread([self, loop] {
        self->run_loop(loop, 1);
        self->gate_.notify([&] { --self->running_; });
      }));
    }
  } catch (const std::exception& error) {
    shared_.closing.store(true);
    for (const auto& wakeup : wakeups_) wakeup->wake();
    for (std::thread& other : others) other.join();
    workers_.clear();
    datapath_.reset();
    const bool input = dynamic_cast<const InputError*>(&error) != nullptr;
    std::string text = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? memory_text(config_) : error.what();
    gate_.notify([&] {
      failure = std::move(text);
      is_input = input;
      running_ = 0;
      ready = true;
    });
    return;
  }
  gate_.notify([&] { ready = true; });
  run_loop(0, loops_ == 1 ? workers_.size() : 1);
  for (std::thread& other : others) other.join();
  release_datapath();
  gate_.notify([&] { running_ = 0; });
}

void Core::run_loop(std::size_t first, std::size_t count) noexcept {
  try {
    PollLoop loop(*time_, config_.idle);
    for (std::size_t i = first; i < first + count; ++i) {
      while (!workers_[i]->enter()) std::this_thread::yield();  // another thread is posting directly
      loop.attach(datapath_->io(static_cast<std::uint16_t>(i)), *workers_[i]);
    }
    loop.wake_by(workers_[first]->wakeup());
    loop.be_prompt(config_.spin);
    loop.run(Nanos::never(), [&] { return shared_.closing.load(std::memory_order_acquire); });
  } catch (const std::exception& error) {
    set_failure(error.what());
    shared_.closing.store(true);
  }
  finish(first, count);
}

// ---- The end ----

/// Ends all connections and operations of these workers, and leaves the workers. The calling thread must be their
/// driver.
void Core::finish(std::size_t first, std::size_t count) noexcept {
  try {
    const Nanos end = time_->now() + kLongestEnd;
    for (std::size_t i = first; i < first + count; ++i) {
      workers_[i]->set_now(time_->now());
      workers_[i]->end_all();
    }
    for (bool quiet = false; !quiet && time_->now() < end;) {
      quiet = true;
      for (std::size_t i = first; i < first + count; ++i) {
        workers_[i]->poll(time_->now());
        quiet = quiet && workers_[i]->is_quiet();
      }
      if (!quiet) time_->pause();
    }
    // If the transport is not quiet, devices may still read the memory of its messages, so the operations of these
    // messages are not reported.
    for (std::size_t i = first; i < first + count; ++i) workers_[i]->deliver();
  } catch (const std::exception& error) {
    set_failure(error.what());
  }
  for (std::size_t i = first; i < first + count; ++i) {
    workers_[i]->drop_shard();
    workers_[i]->leave();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    settle(*workers_[i]);
  }
}

/// Runs commands that were pushed while the last driver was leaving the worker.
void Core::settle(Worker& worker) noexcept {
  while (worker.has_commands() && worker.enter()) {
    worker.drain();
    worker.deliver();
    worker.leave();
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

Nanos Core::now() noexcept {
  clock_readers_.fetch_add(1, std::memory_order_seq_cst);
  const Nanos now = is_forked() || shared_.closing.load(std::memory_order_seq_cst) ? monotonic_now() : time_->now();
  clock_readers_.fetch_sub(1, std::memory_order_release);
  return now;
}

void Core::join() noexcept {
  if (Worker::in_callback()) return;
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void Core::release_datapath() noexcept {
  while (clock_readers_.load(std::memory_order_seq_cst) > 0) std::this_thread::yield();
  {
    const std::lock_guard lock(set_up_);
    for (Region& region : regions_) region.memory.reset();
  }
  caller_loop_.reset();
  datapath_.reset();
  finished_.store(true, std::memory_order_release);
  gate_.notify();
}

Code Core::close(bool wait) noexcept {
  if (is_forked()) return Code::forked;
  shared_.closing.store(true, std::memory_order_seq_cst);
  for (const auto& wakeup : wakeups_) wakeup->wake();
  gate_.notify();
  if (Worker::in_callback()) return Code::ok;  // the driver finishes the closing when the callback has returned
  if (config_.driving == Driving::caller) {
    finish_here();
    return Code::ok;
  }
  if (wait) gate_.wait(kLongestEnd * 2, [&] { return running_ == 0; });
  return Code::ok;
}

/// Ends an endpoint with Driving::caller. The first thread that enters all workers ends them.
void Core::finish_here() noexcept {
  for (int round = 0; !finished_.load(std::memory_order_acquire); ++round) {
    std::size_t entered = 0;
    while (entered < workers_.size() && workers_[entered]->enter()) ++entered;
    if (entered == workers_.size()) {
      if (finished_.load(std::memory_order_acquire)) {
        for (const auto& worker : workers_) worker->leave();
        return;
      }
      finish(0, workers_.size());
      for (PacketIo* const io : armed_) io->disarm();
      if (waits_)
        for (std::uint16_t shard = 0; shard < config_.shards; ++shard) datapath_->io(shard).end_waiting();
      release_datapath();
      return;
    }
    while (entered-- > 0) workers_[entered]->leave();
    gate_.wait(Nanos(1'000'000), [&] { return finished_.load(std::memory_order_acquire); });
  }
}

Core::~Core() {
  for (std::thread& thread : threads_)
    // A running thread holds a reference to the core. So each thread has ended, or it is the calling thread.
    if (thread.joinable()) thread.detach();
  if (poll_file_ >= 0) ::close(poll_file_);
  if (timer_file_ >= 0) ::close(timer_file_);
}

// ---- Driving by the caller ----

std::size_t Core::progress() noexcept {
  if (usable() != Code::ok || config_.driving != Driving::caller || Worker::in_callback()) return 0;
  if (one_drives_all_ && looping_.exchange(true, std::memory_order_acquire)) return 0;
  std::size_t ended = 0;
  try {
    for (const auto& worker : workers_) {
      if (!worker->enter()) continue;
      const std::uint64_t before = worker->ended();
      worker->poll(time_->now());
      ended += static_cast<std::size_t>(worker->ended() - before);
      worker->leave();
    }
  } catch (const std::exception& error) {
    set_failure(error.what());
    shared_.closing.store(true);
  }
  if (one_drives_all_) looping_.store(false, std::memory_order_release);
  if (shared_.closing.load(std::memory_order_relaxed)) finish_here();
  return ended;
}

void Core::make_poll_file() {
  const auto need = [](int file) {
    if (file < 0)
      throw RunError(fmt::format("cannot create a file to wait on: {}; raise the limit of open files (ulimit -n)",
                                 std::strerror(errno)));
    return file;
  };
  std::vector<int> files{wakeups_[0]->file()};
  std::vector<PacketIo*> begun;
  bool able = true;
  for (std::uint16_t shard = 0; shard < config_.shards && able; ++shard) {
    PacketIo& io = datapath_->io(shard);
    // Any thread may wait on the file, so there can be no file if waiting must begin and end in one thread.
    const auto wakeup = io.begin_waiting();
    able = wakeup.has_value();
    if (!able) break;
    begun.push_back(&io);
    if (wakeup->file >= 0) files.push_back(wakeup->file);
    if (wakeup->needs_arming) armed_.push_back(&io);
  }
  waits_ = able;
  if (!able) {
    for (PacketIo* const io : begun) io->end_waiting();
    armed_.clear();
    return;
  }
  poll_file_ = need(epoll_create1(EPOLL_CLOEXEC));
  timer_file_ = need(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  files.push_back(timer_file_);
  for (const int file : files) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = file;
    if (epoll_ctl(poll_file_, EPOLL_CTL_ADD, file, &event) != 0) need(-1);
  }
}

int Core::file() noexcept {
  if (config_.driving != Driving::caller || usable() != Code::ok) return -1;
  const std::lock_guard lock(set_up_);
  if (has_tried_poll_file_) return poll_file_;
  has_tried_poll_file_ = true;
  try {
    make_poll_file();
  } catch (const std::exception& error) {
    failure_ = error.what();
    poll_file_ = -1;
  }
  return poll_file_;
}

Code Core::arm() noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  if (file() < 0 || Worker::in_callback()) return Code::unsupported;
  Wakeup& wakeup = *wakeups_[0];
  for (PacketIo* const io : armed_) io->disarm();
  wakeup.disarm();
  for (PacketIo* const io : armed_) io->arm();
  wakeup.arm();
  Nanos next = Nanos::never();
  Nanos now;
  bool busy = false;
  for (std::size_t shard = 0; shard < workers_.size(); ++shard) {
    Worker& worker = *workers_[shard];
    if (!worker.enter()) return Code::ok;
    const PacketIo& io = datapath_->io(static_cast<std::uint16_t>(shard));
    const std::uint64_t activity = io.activity();
    now = time_->now();
    next = std::min({next, worker.poll(now), io.deadline()});
    busy = busy || worker.has_commands() || io.activity() != activity || io.is_blocked();
    worker.leave();
  }
  if (shared_.closing.load(std::memory_order_relaxed)) finish_here();
  if (finished_.load(std::memory_order_relaxed)) return Code::destroyed;
  if (busy || next <= now) return Code::ok;
  itimerspec timer{};
  if (!next.is_never()) {
    const Nanos left = std::min(next - now, Nanos(3'600'000'000'000));
    timer.it_value = {static_cast<time_t>(left.count / 1'000'000'000), static_cast<long>(left.count % 1'000'000'000)};
  }
  timerfd_settime(timer_file_, 0, &timer, nullptr);
  return Code::nothing;
}

std::string Core::failure() const {
  const std::lock_guard lock(set_up_);
  return failure_;
}
void Core::set_failure(const std::string& why) noexcept {
  const std::lock_guard lock(set_up_);
  failure_ = why;
}

}  // namespace mltcp::endpoint
