// Loops over datapaths; see poll_loop.h.
//
// A datapath signals packets only on request, so every round polls all datapaths. A round is idle if no packet moved,
// nothing was due and nothing is blocked. After several idle rounds in a row the loop pauses or sleeps (Idle).
#include "mltcp/transport/poll_loop.h"

#include <algorithm>
#include <array>

namespace mltcp {
namespace {

/// Number of idle rounds in a row before the loop pauses or sleeps. Answers to packets just sent often arrive during
/// these rounds. A loop that can sleep makes fewer rounds, because a busy machine wakes it up quickly, and the programs
/// that answer may need this CPU.
constexpr std::uint32_t kIdleRounds = 64;
constexpr std::uint32_t kIdleRoundsOfSleeper = 8;
/// Number of idle rounds after be_prompt(). Each round takes as long as a wake-up, and keeps the CPU from the programs
/// that answer. The argument of be_prompt() can prolong the polling.
constexpr std::uint32_t kIdleRoundsOfPrompt = 2;
constexpr Nanos kNap{50'000};
/// While many packets arrive at sockets, which need no arming, the loop naps until this much time has passed since the
/// latest packet. It does not sleep, because each packet would wake it.
constexpr Nanos kAwake{200'000};
/// There are many packets if more than this number moved since the latest nap or sleep, or if a packet ended the latest
/// sleep within kShortSleep. A request and its response are only two packets, and take longer than kShortSleep.
constexpr std::uint64_t kFewPackets = 3;
constexpr Nanos kShortSleep{20'000};
/// After be_prompt() the loop naps as soon as this many sleeps in a row were short, because each packet of a stream
/// would wake it. A loop that answers requests quickly also naps at times, but seldom.
constexpr std::uint32_t kShortInARow = 8;
/// A nap shorter than this is not worth a system call.
constexpr Nanos kShortestNap{5'000};

}  // namespace

/// Makes the datapaths signal packets to the calling thread as long as this object exists. If a datapath cannot signal
/// packets, or receives packets from a datapath outside this loop, is_able() returns false.
class PollLoop::Waiting {
 public:
  Waiting(const std::vector<Entry>& entries, Waker* waker) : waker_(waker) {
    const auto is_here = [&](const PacketIo* io) {
      return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.io == io; });
    };
    able_ = !entries.empty() && std::all_of(entries.begin(), entries.end(), [&](const Entry& entry) {
      const auto feeders = entry.io->feeders();
      return std::all_of(feeders.begin(), feeders.end(), is_here);
    });
    for (const Entry& entry : entries) {
      if (!able_) break;
      const auto wakeup = entry.io->begin_waiting();
      able_ = wakeup.has_value();
      if (!able_) break;
      begun_.push_back(entry.io);
      if (wakeup->file >= 0) files_.push_back(wakeup->file);
      if (wakeup->needs_arming) armed_.push_back(entry.io);
    }
    able_ = able_ && !files_.empty();
    if (waker_ == nullptr) return;
    wakers_file_[0] = waker_->file();
    files_.push_back(wakers_file_[0]);
  }
  ~Waiting() {
    for (PacketIo* const io : begun_) io->end_waiting();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// Returns whether wait() ends when a packet arrives. Returns false after a file descriptor has failed permanently.
  [[nodiscard]] bool is_able() const { return able_; }
  /// Returns whether all file descriptors (sockets) signal packets without arming.
  [[nodiscard]] bool needs_no_arming() const { return armed_.empty(); }

  /// Sleeps until a packet arrives, for at most `max`. Does not sleep if `is_idle` returns false after arming. Returns
  /// whether a file descriptor ended the sleep.
  template <typename IsIdle>
  bool wait(BasicLoopTime<TimeSource>& loop, TimeSource& time, Nanos max, IsIdle is_idle) {
    WaitEnd end = WaitEnd::timed_out;
    for (PacketIo* const io : armed_) io->arm();
    if (waker_ != nullptr) waker_->arm();
    if ((armed_.empty() && waker_ == nullptr) || is_idle()) {
      loop.count_sleep(max, [&] { end = time.wait(files_, max); });
      if (end == WaitEnd::failed) able_ = false;
    }
    if (waker_ != nullptr) waker_->disarm();
    for (PacketIo* const io : armed_) io->disarm();
    return end != WaitEnd::timed_out;
  }

  /// Sleeps for `nap`. Only the waker can end the sleep earlier.
  template <typename IsIdle>
  void nap(BasicLoopTime<TimeSource>& loop, TimeSource& time, Nanos nap, IsIdle is_idle) {
    if (waker_ == nullptr) {
      loop.sleep_for(nap);
      return;
    }
    waker_->arm();
    if (is_idle()) loop.count_sleep(nap, [&] { time.wait(wakers_file_, nap); });
    waker_->disarm();
  }

 private:
  std::vector<PacketIo*> begun_;
  std::vector<PacketIo*> armed_;
  std::vector<int> files_;
  Waker* waker_;
  std::array<int, 1> wakers_file_{-1};
  bool able_ = false;
};

void PollLoop::attach(PacketIo& io, Pollable& pollable) { entries_.push_back({&io, &pollable, Nanos()}); }

bool PollLoop::run(Nanos until, const std::function<bool()>& stop) {
  struct InLoop {
    explicit InLoop(TimeSource& source) : time(source) { time.begin_loop(); }
    ~InLoop() { time.end_loop(); }
    InLoop(const InLoop&) = delete;
    InLoop& operator=(const InLoop&) = delete;
    TimeSource& time;
  };
  const InLoop in_loop(time_);
  Waiting waiting(idle_ == Idle::sleep ? entries_ : std::vector<Entry>(), idle_ == Idle::sleep ? waker_ : nullptr);
  loop_.start(time_, Nanos(), time_.now());
  for (Entry& entry : entries_) entry.due = Nanos();
  const std::uint32_t patience = !waiting.is_able() ? kIdleRounds
                                 : is_prompt_       ? kIdleRoundsOfPrompt
                                                    : kIdleRoundsOfSleeper;
  std::uint32_t idle_rounds = 0;
  Nanos busy_at;
  bool woken = false;  ///< a file descriptor ended the latest sleep
  Nanos woken_at;
  std::uint64_t moved = 0;         ///< packets moved since the latest nap or sleep
  bool slept_short = false;        ///< the latest nap or sleep was a sleep that a packet ended within kShortSleep
  std::uint32_t short_sleeps = 0;  ///< short sleeps in a row, not counting naps
  for (;;) {
    Nanos now = loop_.begin_round();
    const bool ends = is_stopped(stop);
    const bool last = ends || now > until;  // the last round does work that is already due, such as acknowledgements
    Nanos next = until;
    bool busy = false;
    bool blocked = false;
    for (Entry& entry : entries_) {
      now = loop_.now();
      busy = busy || entry.due <= now;
      entry.due = entry.pollable->poll(now);
      const std::uint64_t activity = entry.io->activity();
      busy = busy || activity != entry.activity;
      moved += activity - entry.activity;
      blocked = blocked || entry.io->is_blocked();
      entry.activity = activity;
      next = std::min({next, entry.due, entry.io->deadline()});
    }
    if (last) return ends;
    idle_rounds = busy || (blocked && idle_ != Idle::sleep) ? 0 : idle_rounds + 1;
    if (busy) busy_at = now;
    if (idle_ == Idle::spin || idle_rounds < patience) continue;
    if (idle_ == Idle::pause) {
      time_.pause();
      continue;
    }
    if (next - now <= kShortestNap || now - busy_at < spin_) continue;
    // A file descriptor ended the sleep, but no packet moved: the packet was for another program, or there was no
    // memory for it. The next sleep may end in the same way, so the loop naps.
    const bool in_vain = woken && busy_at < woken_at;
    woken = false;
    const bool many = moved > 0 && (is_prompt_ ? short_sleeps >= kShortInARow : moved > kFewPackets || slept_short);
    const bool awake = waiting.needs_no_arming() && many && now - busy_at < kAwake;
    moved = 0;
    if (waiting.is_able() && !awake && !in_vain && !blocked) {
      woken = waiting.wait(loop_, time_, std::min(next - now, kLongestSleep), [&] { return has_nothing_before(next); });
      woken_at = now;
      slept_short = woken && time_.now() - now < kShortSleep;
      short_sleeps = slept_short ? short_sleeps + 1 : 0;
      idle_rounds = 0;
    } else {
      waiting.nap(loop_, time_, std::min(next - now, kNap), [&] { return has_nothing_before(next); });
      slept_short = false;
      short_sleeps = std::min(short_sleeps, kShortInARow - 1);
    }
  }
}

bool PollLoop::is_stopped(const std::function<bool()>& stop) {
  if (!stop_requested_.load(std::memory_order_acquire)) [[likely]]
    return stop && stop();
  stop_requested_.store(false, std::memory_order_relaxed);
  return true;
}

/// Polls all Pollables once. Returns whether no packet moved, nothing is blocked, and nothing is due before `next`.
bool PollLoop::has_nothing_before(Nanos next) {
  bool came = false;
  for (Entry& entry : entries_) {
    entry.due = entry.pollable->poll(loop_.now());
    came = came || entry.io->activity() != entry.activity || entry.io->is_blocked() ||
           std::min(entry.due, entry.io->deadline()) < next;
  }
  return !came;
}

}  // namespace mltcp
