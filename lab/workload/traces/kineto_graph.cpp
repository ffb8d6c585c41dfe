// Graphs of traces of PyTorch's profiler (see kineto_graph.h).
#include "mltcp/lab/workload/traces/kineto_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <deque>
#include <map>
#include <utility>

#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/kineto_steps.h"

namespace mltcp::workload {
namespace {

using namespace mltcp::literals;
using Kind = KinetoDetails::Kind;

// Maximum time from the end of a communication to the start of a kernel that waited for it.
constexpr Nanos kResume = 25_us;
// Maximum time from the end of a communication to the return of a host call that waited for it.
constexpr Nanos kReturn = 50_us;
constexpr Nanos kShortestWait = 5_us;  // shorter waits are measurement noise
// Maximum time from the end of a communication to the start of the next one queued behind it.
constexpr Nanos kQueued = 30_us;
constexpr Nanos kTolerance = 1_us;   // some profilers write times in whole microseconds
constexpr std::size_t kLooked = 64;  // maximum number of kernels or communications that one search examines
constexpr std::size_t kMaxLanes = 1000;
constexpr std::size_t kMaxPending = 16;  // if more communications are pending, one node waits for all of them
constexpr Nanos kMaxClock(3'000'000'000'000'000'000);
// In the year 2001; clocks with earlier times have no common origin.
constexpr Nanos kMinClock(1'000'000'000'000'000'000);

/// Work of the GPU other than communication.
struct Kernel {
  Nanos start;
  Nanos end;
  Nanos launch;
  Nanos possible;  ///< earliest possible start, given the launch and the stream
  std::int64_t correlation = -1;
  std::uint32_t stream = 0;
};

/// One operation of a communication. It becomes one node.
struct Transfer {
  KinetoTransfer what;
  std::uint32_t group = 0;
  std::uint32_t peer = 0;
};

struct Communication {
  const KinetoEvents::Communication* kernel = nullptr;
  Nanos start;
  Nanos end;
  Nanos launch;
  Nanos ready;  ///< end of the computation for which the communication waits
  std::size_t step = 0;
  std::size_t lane = 0;
  std::size_t in_lane = 0;  ///< index among the communications of the lane
  std::size_t first = 0;    ///< index of the first transfer of this communication; all its transfers run together
  std::size_t count = 0;
  std::uint32_t node = 0;  ///< node of the first transfer, once it exists; the nodes of the other transfers follow
};

/// The GPU waits for a communication from time `from` to time `to`. If the times are equal, the GPU does not wait, but
/// computation depends on the communication.
struct Wait {
  Nanos from;
  Nanos to;
  std::size_t communication = 0;
};

class KinetoReader {
 public:
  KinetoReader(GraphBuilder& builder, const KinetoEvents& events, const KinetoSteps& steps)
      : builder_(builder), events_(events), steps_(steps) {}

  PartialGraph read() {
    find_rank();
    find_steps();
    find_computation();
    find_communications();
    find_waits();
    write();
    PartialGraph part = builder_.take();
    part.world = events_.workers;
    part.common_clock = absolute_;
    return part;
  }

 private:
  void find_rank() {
    rank_ = events_.rank.value_or(kUnknownRank);
    if (rank_ == kUnknownRank) rank_ = rank_of_name(builder_.part().graph.sources.front());
    builder_.rank(rank_);
    const bool usable = events_.clock >= Nanos(0) && events_.clock <= kMaxClock;
    clock_ = usable ? events_.clock : Nanos(0);
    if (events_.devices > 1)
      builder_.warn(fmt::format("kernels of {} GPUs are taken as those of one", events_.devices));
  }

  /// Returns the rank in a file name such as "worker3.json" or "dir/rank-12_step.json", for traces that do not state
  /// the rank. Returns kUnknownRank if there is none.
  static std::uint32_t rank_of_name(const std::string& path) {
    std::string name = path.substr(path.find_last_of("/:") + 1);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const std::string_view word : {"rank", "worker"}) {
      std::size_t at = name.find(word);
      if (at == std::string::npos) continue;
      at += word.size();
      while (at < name.size() && (name[at] == '_' || name[at] == '-')) ++at;
      std::uint32_t rank = 0;
      const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
      if (error == std::errc() && rank < 10'000'000) return rank;
    }
    return kUnknownRank;
  }

  void find_steps() {
    begin_ = steps_.steps.front().start;
    finish_ = steps_.steps.back().end();
    absolute_ = clock_ + begin_ >= kMinClock;
    for (const auto& step : steps_.steps) builder_.step(step.name, shown(step.start), step.length);
    for (const std::string& warning : steps_.warnings) builder_.warn(warning);
    if (!events_.unknown_type.empty()) builder_.warn(events_.unknown_type);
  }

  /// Converts a time to the clock of the graph.
  [[nodiscard]] Nanos shown(Nanos time) const { return absolute_ ? clock_ + time : time - begin_; }

  void find_computation() {
    std::vector<Nanos> latencies;
    builder_.hold(events_.kernels.size() * (sizeof(kernels_.front()) + sizeof(Nanos)));
    for (const auto& each : events_.kernels) {
      const Nanos launched = std::min(each.launch().value_or(each.start), each.start);
      if (each.known == KinetoEvents::Kernel::Call::own && each.call <= each.start + kTolerance)
        latencies.push_back(each.start - launched);
      if (launched > steps_.launched_until || each.end() <= begin_) continue;
      kernels_.push_back({each.start, each.end(), launched, launched, each.correlation, each.stream});
    }
    // The latency is the time from launch to start of a kernel that nothing delays: a low percentile over all kernels.
    if (!latencies.empty()) {
      const auto few = latencies.begin() + static_cast<std::ptrdiff_t>(latencies.size() / 50);
      std::nth_element(latencies.begin(), few, latencies.end());
      latency_ = *few;
    }
    std::map<std::uint32_t, Nanos> ended;  // latest end of a kernel, by stream
    for (Kernel& kernel : kernels_) {
      const auto [last, is_first] = ended.try_emplace(kernel.stream, kernel.launch);
      kernel.possible = std::max(kernel.launch + latency_, last->second);
      last->second = std::max(last->second, kernel.end);
      if (!busy_.empty() && kernel.start <= busy_.back().second)
        busy_.back().second = std::max(busy_.back().second, kernel.end);
      else
        busy_.emplace_back(kernel.start, kernel.end);
    }
    for (const Kernel& kernel : kernels_) ended_.emplace_back(kernel.launch, kernel.end);
    std::ranges::sort(ended_);
    for (std::size_t i = 1; i < ended_.size(); ++i) ended_[i].second = std::max(ended_[i].second, ended_[i - 1].second);
  }

  /// Returns the latest end of all kernels launched up to `when`, or the beginning of the trace if there are none.
  [[nodiscard]] Nanos end_of_launched(Nanos when) const {
    const auto after = std::ranges::partition_point(ended_, [&](const auto& e) { return e.first <= when; });
    return after == ended_.begin() ? begin_ : std::prev(after)->second;
  }

  void find_communications() {
    std::size_t alone = 0;
    std::size_t peerless = 0;
    for (const auto& each : steps_.communications) {
      Communication one;
      one.kernel = each.kernel;
      one.start = each.start;
      one.end = each.end();
      one.launch = std::min(each.launch, each.start);
      one.step = each.step;
      one.first = transfers_.size();
      for (std::size_t i = each.first; i < each.first + each.count; ++i) {
        Transfer transfer;
        transfer.what = steps_.transfers[i];
        const bool message = transfer.what.kind == Kind::send || transfer.what.kind == Kind::receive;
        if (message ? find_peer(transfer) : find_group(*each.kernel, transfer))
          transfers_.push_back(transfer);
        else if (!message || rank_ == kUnknownRank || transfer.peer != rank_)
          ++(message ? peerless : alone);
      }
      one.count = transfers_.size() - one.first;
      if (one.count > 0) communications_.push_back(one);
    }
    if (broadcasts_ > 0)
      builder_.warn(fmt::format(
          "the trace does not name the root of {} broadcasts: assuming the first rank of each group", broadcasts_));
    builder_.warn(peerless, "message", "without the other end or a size: left out");
    builder_.warn(alone, "communication", "with a group of one rank: left out");
    // A stream runs its kernels in the order in which they were launched.
    std::ranges::stable_sort(communications_, {}, &Communication::launch);
    std::map<std::uint32_t, std::size_t> lanes;
    std::vector<const Communication*> last;
    std::vector<std::size_t> count;
    for (Communication& one : communications_) {
      one.lane = lanes.try_emplace(one.kernel->stream, lanes.size()).first->second;
      if (last.size() <= one.lane) last.resize(one.lane + 1), count.resize(one.lane + 1);
      one.in_lane = count[one.lane]++;
      const Communication* const before = std::exchange(last[one.lane], &one);
      const Nanos min = steps_.steps[one.step].start;  // the nodes of a rank must be in the order of steps
      one.ready = std::max(one.start, min);
      if (before == nullptr || before->end < one.start - kQueued || before->end > one.start + kTolerance) continue;
      const Nanos launched = std::max(one.launch, end_of_launched(one.launch)) + latency_;
      one.ready = std::max(std::clamp(launched, std::min(before->ready, one.start), one.start), min);
    }
    lanes_ = lanes.size();
    if (lanes_ > kMaxLanes)
      builder_.fail(fmt::format("it communicates on {} streams", lanes_), "give the trace of one process");
  }

  bool find_group(const KinetoEvents::Communication& kernel, Transfer& one) {
    const std::uint32_t size = one.what.workers;
    const bool is_size_stated = kernel.details.workers > 0 || events_.workers > 0 || size > 1;
    if (is_size_stated && size < 2) return false;
    const KinetoEvents::Group* const group =
        one.what.group >= 0 ? &events_.groups[static_cast<std::size_t>(one.what.group)] : nullptr;
    if (one.what.collective == Collective::broadcast && one.what.kind == Kind::collective) ++broadcasts_;
    one.peer = 0;  // the trace does not state the root of a broadcast; the first rank is assumed
    if (group != nullptr && !group->ranks.empty()) {
      if (rank_ == kUnknownRank || std::ranges::binary_search(group->ranks, rank_)) {
        one.group = builder_.group(group->ranks);
        one.peer = group->ranks.front();
        return true;
      }
      if (!std::exchange(foreign_, true))
        builder_.warn(
            fmt::format("event {}: rank {} is not in the group that it communicates in; using only the group's size",
                        kernel.event, rank_));
    }
    if (!is_size_stated || size == events_.workers) {
      one.group = builder_.group({});
    } else {
      one.group = builder_.group({}, {size, group != nullptr ? group->name : std::string()});
      if (rank_ != kUnknownRank) one.peer = rank_ - rank_ % size;
    }
    return true;
  }

  bool find_peer(Transfer& one) const {
    one.peer = kUnknownRank;
    if (one.what.size == 0 || one.what.peer < 0) return false;
    std::int64_t peer = one.what.peer;
    if (one.what.peer_of_group && one.what.group >= 0) {
      const auto& ranks = events_.groups[static_cast<std::size_t>(one.what.group)].ranks;
      if (!ranks.empty()) {
        if (static_cast<std::uint64_t>(peer) >= ranks.size()) return false;
        peer = ranks[static_cast<std::size_t>(peer)];
      }
    }
    one.peer = static_cast<std::uint32_t>(peer);
    return one.peer != rank_;
  }

  void find_waits() {
    for (std::size_t i = 0; i < communications_.size(); ++i) {
      const Communication& one = communications_[i];
      if (one.end <= one.ready) continue;
      Nanos since = Nanos::never();
      auto kernel =
          std::ranges::partition_point(kernels_, [&](const Kernel& k) { return k.start < one.end - kTolerance; });
      for (std::size_t looked = 0; kernel != kernels_.end() && kernel->start <= one.end + kResume && looked < kLooked;
           ++kernel, ++looked)
        if (kernel->possible <= one.end - kShortestWait) since = std::min(since, kernel->possible);
      // The GPU was idle from `idle` until the communication ended.
      const auto after =
          std::ranges::partition_point(busy_, [&](const auto& b) { return b.first < one.end - kTolerance; });
      const Nanos idle = after == busy_.begin() ? begin_ : std::prev(after)->second;
      if (since.is_never() && idle <= one.end - kShortestWait) since = returned(one.end);
      // The communication is the last work of the GPU, and the host launches no more work.
      if (since.is_never() && one.end == finish_ && one.end > steps_.launched_until) since = steps_.launched_until;
      if (since.is_never()) continue;
      const Nanos from = std::min(std::max({idle, one.ready, since}), one.end);
      waits_.push_back({from, one.end, i});
    }
    if (events_.waits.empty())
      match_wait_calls();
    else
      find_stream_waits();
    std::ranges::sort(waits_, [](const Wait& a, const Wait& b) {
      return std::tie(a.to, a.communication) < std::tie(b.to, b.communication);
    });
  }

  /// Returns when the host began a call that waits for the GPU and returns at `end`. Returns never() if there is no
  /// such call.
  [[nodiscard]] Nanos returned(Nanos end) const {
    Nanos since = Nanos::never();
    const auto& all = events_.synchronisations;
    auto at = std::ranges::partition_point(all, [&](const KinetoSpan& s) { return s.start <= end - kShortestWait; });
    // Calls of one thread do not overlap. So examining 16 calls is enough unless more than 16 threads wait at once.
    for (int looked = 0; at != all.begin() && looked < 16; ++looked) {
      --at;
      if (at->end() >= end - kTolerance && at->end() <= end + kReturn) since = std::min(since, at->start);
    }
    return since;
  }

  /// Finds waits for communications from recorded waits of one stream for another ("Stream Wait Event").
  void find_stream_waits() {
    std::map<std::uint32_t, std::vector<const Kernel*>> kernels;  // kernels by stream, sorted by correlation
    for (const Kernel& kernel : kernels_) kernels[kernel.stream].push_back(&kernel);
    for (auto& [stream, all] : kernels)
      std::ranges::sort(all, [](const Kernel* a, const Kernel* b) { return a->correlation < b->correlation; });
    // Communications by stream, sorted by correlation.
    std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::size_t>>> lanes;
    for (std::size_t i = 0; i < communications_.size(); ++i)
      lanes[communications_[i].kernel->stream].emplace_back(communications_[i].kernel->correlation, i);
    for (auto& [stream, all] : lanes) std::ranges::sort(all);
    for (const auto& wait : events_.waits) {
      const auto waiting = kernels.find(wait.stream);
      const auto lane = lanes.find(wait.of_stream);
      if (waiting == kernels.end() || lane == lanes.end()) continue;
      const auto next = std::ranges::partition_point(
          waiting->second, [&](const Kernel* k) { return k->correlation < wait.correlation; });
      const auto after =
          std::ranges::partition_point(lane->second, [&](const auto& c) { return c.first < wait.of_correlation; });
      if (next == waiting->second.end() || after == lane->second.begin()) continue;
      const std::size_t index = std::prev(after)->second;
      const Communication& one = communications_[index];
      const Nanos at = (*next)->start;
      if (one.end > at + kTolerance || one.end <= one.ready) continue;
      waits_.push_back({std::max(at, one.end), std::max(at, one.end), index});
    }
  }

  /// Matches calls of cudaStreamWaitEvent with the communications for which they may wait. The waiting stream is
  /// unknown.
  void match_wait_calls() {
    if (events_.wait_calls.empty() || communications_.empty()) return;
    // Annotations and operations that launch communications, by thread.
    std::map<std::uint32_t, std::vector<KinetoSpan>> launching;
    for (const Communication& one : communications_) {
      const auto* const launch = events_.launch(one.kernel->correlation);
      if (launch == nullptr || launch->thread >= events_.around.size()) continue;
      const auto& around = events_.around[launch->thread];
      auto at = std::ranges::partition_point(around, [&](const KinetoSpan& s) { return s.start <= launch->start; });
      for (int looked = 0; at != around.begin() && looked < 4; ++looked)
        if ((--at)->end() >= launch->start) launching[launch->thread].push_back({at->start, at->length});
    }
    // By thread: launch and start of each kernel.
    std::map<std::uint32_t, std::vector<std::pair<Nanos, Nanos>>> launched;
    for (const Kernel& kernel : kernels_)
      if (const auto* const launch = events_.launch(kernel.correlation))
        launched[launch->thread].emplace_back(kernel.launch, kernel.start);
    for (auto& [thread, all] : launched) std::ranges::sort(all);
    for (auto& [thread, all] : launching)
      std::ranges::sort(all, [](const auto& a, const auto& b) { return a.start < b.start; });
    std::deque<std::size_t> open;  // communications for which no call waits yet, in the order of their launch
    std::size_t next = 0;
    std::size_t last_step = 0;
    for (const auto& call : events_.wait_calls) {
      for (; next < communications_.size() && communications_[next].launch < call.start; ++next) open.push_back(next);
      const auto step = steps_.step_of(call.start);
      if (!step) continue;
      if (*step != std::exchange(last_step, *step))
        std::erase_if(open, [&](std::size_t index) { return communications_[index].step < *step; });
      if (open.empty() || within(launching[call.thread], call.start)) continue;
      const auto& all = launched[call.thread];
      const auto after = std::ranges::partition_point(all, [&](const auto& l) { return l.first < call.start; });
      if (after == all.end()) continue;
      const auto last = open.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(open.size(), kLooked));
      const auto found = std::find_if(open.begin(), last, [&](std::size_t index) {
        return communications_[index].end <= after->second + kTolerance;
      });
      if (found == last) continue;
      const Communication& one = communications_[*found];
      const Nanos at = std::max(after->second, one.end);
      if (one.ready < one.end) waits_.push_back({at, at, *found});
      open.erase(found);
    }
  }

  static bool within(const std::vector<KinetoSpan>& spans, Nanos at) {
    auto span = std::ranges::partition_point(spans, [&](const KinetoSpan& s) { return s.start <= at; });
    for (int looked = 0; span != spans.begin() && looked < 4; ++looked)
      if ((--span)->end() >= at) return true;
    return false;
  }

  void write() {
    lane_ = builder_.lane("GPU");
    compute_ = builder_.name("compute");
    joined_.assign(lanes_, 0);
    last_.assign(lanes_, nullptr);
    at_ = begin_;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < communications_.size(); ++i) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::pair(communications_[a].step, communications_[a].ready) <
             std::pair(communications_[b].step, communications_[b].ready);
    });
    for (const Wait& wait : waits_)
      if (wait.from < wait.to) idle_.emplace_back(wait.from, wait.to);
    std::ranges::sort(idle_);
    auto wait = waits_.begin();
    auto next = order.begin();
    std::size_t bound = 1;
    while (wait != waits_.end() || next != order.end() || bound < steps_.steps.size()) {
      const Nanos wait_at = wait == waits_.end() ? Nanos::never() : wait->to;
      const Nanos bound_at = bound == steps_.steps.size() ? Nanos::never() : steps_.steps[bound].start;
      const Nanos next_at = next == order.end() ? Nanos::never() : communications_[*next].ready;
      if (wait_at <= std::min(bound_at, next_at)) {
        compute_until(wait_at);
        depend(communications_[wait->communication]);
        ++wait;
      } else if (bound_at <= next_at && (next == order.end() || communications_[*next].step >= bound)) {
        compute_until(bound_at);
        for (const Communication* last : last_)
          if (last != nullptr && last->end <= bound_at) depend(*last);
        step_ = bound++;
      } else {
        compute_until(next_at);
        communicate(communications_[*next++]);
      }
    }
    compute_until(finish_);
  }

  /// Makes the next computation depend on the communication.
  void depend(const Communication& one) {
    if (joined_[one.lane] > one.in_lane) return;  // computation already depends on a later communication of the lane
    joined_[one.lane] = one.in_lane + 1;
    wait_for(one, pending_);
  }
  static void wait_for(const Communication& one, std::vector<std::uint32_t>& waits) {
    for (std::uint32_t i = 0; i < one.count; ++i) waits.push_back(one.node + i);
  }

  void compute_until(Nanos end) {
    end = std::min(end, finish_);
    while (at_ < end) {
      // Skips idle times that have ended.
      while (idle_at_ < idle_.size() && idle_[idle_at_].second <= at_) ++idle_at_;
      if (idle_at_ < idle_.size() && idle_[idle_at_].first <= at_) {
        at_ = std::min(idle_[idle_at_].second, end);
        continue;
      }
      const Nanos until = idle_at_ < idle_.size() ? std::min(end, idle_[idle_at_].first) : end;
      compute(until - at_);
      at_ = until;
    }
  }

  void compute(Nanos length) {
    GraphNode node;
    node.name = compute_;
    node.lane = lane_;
    node.step = static_cast<std::uint32_t>(step_);
    node.start = shown(at_);
    node.length = length;
    std::vector<std::uint32_t> waits = std::exchange(pending_, {});
    if (computed_) waits.push_back(*computed_);
    std::ranges::sort(waits);
    computed_ = builder_.add(0, node, waits);
  }

  void communicate(Communication& one) {
    // If many communications are pending, one computation of length 0 waits for all of them. Without this computation,
    // each of many new communications would wait for each pending communication.
    if (pending_.size() > kMaxPending) compute(Nanos(0));
    std::vector<std::uint32_t> waits = pending_;
    if (computed_) waits.push_back(*computed_);
    const Communication* const before = std::exchange(last_[one.lane], &one);
    if (before != nullptr && before->count > kMaxPending && one.count > 1) {
      // One node waits for all operations of the previous communication. Each new operation waits for only this node.
      std::vector<std::uint32_t> all;
      wait_for(*before, all);
      GraphNode joint;
      joint.name = compute_;
      joint.lane = lane_;
      joint.step = static_cast<std::uint32_t>(one.step);
      joint.start = shown(one.start);
      waits.push_back(builder_.add(0, joint, all));
    } else if (before != nullptr) {
      wait_for(*before, waits);
    }
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    for (std::size_t i = 0; i < one.count; ++i) {
      const Transfer& transfer = transfers_[one.first + i];
      const bool barrier = transfer.what.kind == Kind::barrier;
      GraphNode node;
      node.kind = transfer.what.kind == Kind::send      ? GraphNode::Kind::send
                  : transfer.what.kind == Kind::receive ? GraphNode::Kind::receive
                                                        : GraphNode::Kind::collective;
      node.collective = barrier ? Collective::all_reduce : transfer.what.collective;
      node.bytes = barrier ? 0 : transfer.what.size;
      node.group = transfer.group;
      node.peer = transfer.peer;
      node.name = builder_.name(one_line(events_.names[one.kernel->name]));
      node.lane = builder_.lane(fmt::format("stream {}", one.kernel->stream));
      node.step = static_cast<std::uint32_t>(one.step);
      node.start = shown(one.start);
      node.length = one.end - one.start;
      const std::uint32_t added = builder_.add(0, node, waits);
      if (i == 0) one.node = added;
    }
  }

  GraphBuilder& builder_;
  const KinetoEvents& events_;
  const KinetoSteps& steps_;
  std::uint32_t rank_ = kUnknownRank;
  std::size_t broadcasts_ = 0;
  bool foreign_ = false;  ///< whether a group that does not contain this rank has been seen
  Nanos clock_;
  bool absolute_ = false;
  Nanos begin_;
  Nanos finish_;
  Nanos latency_;
  std::vector<Kernel> kernels_;
  std::vector<std::pair<Nanos, Nanos>> busy_;  ///< start and end of times in which kernels run; disjoint, sorted
  /// Launch of a kernel, and latest end of all kernels launched until then; sorted.
  std::vector<std::pair<Nanos, Nanos>> ended_;
  std::vector<Communication> communications_;  ///< sorted by launch
  std::vector<Transfer> transfers_;
  std::size_t lanes_ = 0;
  std::vector<Wait> waits_;  ///< sorted by end
  // State while nodes are written.
  std::vector<std::pair<Nanos, Nanos>> idle_;  ///< times in which the GPU waits and does not compute
  std::size_t idle_at_ = 0;
  Nanos at_;  ///< time up to which computation has been written
  std::size_t step_ = 0;
  std::uint32_t lane_ = 0;
  std::uint32_t compute_ = 0;
  std::optional<std::uint32_t> computed_;
  std::vector<std::uint32_t> pending_;      ///< communications that the next computation waits for
  std::vector<std::size_t> joined_;         ///< by lane: number of communications on which computation depends
  std::vector<const Communication*> last_;  ///< by lane: last communication written
};

bool recognise_kineto(const std::string& /*name*/, std::string_view beginning) {
  const std::size_t at = beginning.find_first_not_of(" \t\r\n");
  const auto has = [&](std::string_view key) { return beginning.find(key) != std::string_view::npos; };
  // In traces of large jobs, long lists of groups precede the events. Other keys identify such a trace.
  return at != std::string_view::npos && beginning[at] == '{' &&
         (has("\"traceEvents\"") || has("\"distributedInfo\"") || has("\"baseTimeNanoseconds\"") ||
          (has("\"schemaVersion\"") && has("\"deviceProperties\"")));
}

PartialGraph read_kineto(TraceInput& input, const TraceOptions& /*options*/) {
  GraphBuilder builder("Kineto", input);
  const KinetoKeep keep = [&](std::size_t bytes) { builder.hold(bytes); };
  KinetoEvents events =
      read_kineto_events([&](char* to, std::size_t max) { return input.read(to, max); }, input.name(), keep);
  return graph_of_events(builder, events);
}

}  // namespace

PartialGraph graph_of_events(GraphBuilder& builder, KinetoEvents& events) {
  const KinetoSteps steps = find_kineto_steps(events, [&](std::size_t bytes) { builder.hold(bytes); });
  return KinetoReader(builder, events, steps).read();
}

constinit const TraceFormat kKinetoFormat{"Kineto",
                                          "a trace of PyTorch's profiler (Chrome trace events, JSON), one file a rank",
                                          recognise_kineto, read_kineto};

}  // namespace mltcp::workload
