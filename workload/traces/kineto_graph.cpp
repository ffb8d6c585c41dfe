// Graphs of traces of PyTorch's profiler (see kineto_graph.h).
#include "mltcp/workload/traces/kineto_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "mltcp/base/text.h"
#include "mltcp/workload/internal/kineto_events.h"
#include "mltcp/workload/traces/graph_builder.h"

namespace mltcp::workload {
namespace {

using namespace mltcp::literals;
using Kind = KinetoDetails::Kind;

constexpr Nanos kResume = 25_us;       // from the end of what was waited for to the beginning of what waited
constexpr Nanos kReturn = 50_us;       // the same of a call of the host
constexpr Nanos kShortestWait = 5_us;  // anything shorter is how times scatter
constexpr Nanos kQueued = 30_us;       // from a communication to the next that was queued behind it
constexpr Nanos kTolerance = 1_us;     // of times: older profilers write whole microseconds
constexpr std::size_t kLooked = 64;    // kernels, or communications, that are looked at for one
constexpr std::size_t kMostLanes = 1000;
constexpr Nanos kMostClock(3'000'000'000'000'000'000);
constexpr Nanos kLeastClock(1'000'000'000'000'000'000);  // in 2001: what is less counts from no common beginning

/// What the GPU does but communicate.
struct Kernel {
  Nanos start;
  Nanos end;
  Nanos launch;
  Nanos possible;  ///< when it could have begun, as to launch and stream
  std::int64_t correlation = -1;
  std::uint32_t stream = 0;
};

struct Communication {
  const KinetoEvents::Communication* kernel = nullptr;
  KinetoTransfer transfer;
  Nanos start;
  Nanos end;
  Nanos launch;
  Nanos ready;  ///< up to when it waits for computation
  std::size_t step = 0;
  std::size_t lane = 0;
  std::size_t in_lane = 0;  ///< its place there
  std::uint32_t group = 0;
  std::uint32_t peer = 0;
  std::uint32_t node = 0;  ///< once it is there
};

/// From `from` to `to` the GPU waits for a communication; not at all if they are equal, but what follows depends on it.
struct Wait {
  Nanos from;
  Nanos to;
  std::size_t communication = 0;
};

class Reader {
 public:
  Reader(GraphBuilder& builder, const KinetoEvents& events) : builder_(builder), events_(events) {}

  PartialGraph read() {
    find_rank();
    find_steps();
    find_computation();
    find_communications();
    find_bounds();
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
    const bool usable = events_.clock >= Nanos(0) && events_.clock <= kMostClock;
    clock_ = usable ? events_.clock : Nanos(0);
    if (events_.devices > 1)
      builder_.warn(fmt::format("kernels of {} GPUs are taken for those of one", events_.devices));
  }

  /// "worker3.json", "dir/rank-12_step.json": files whose trace doesn't tell.
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
    struct Named {
      Nanos start;
      Nanos length;
      std::string name;
    };
    std::vector<Named> steps;
    for (const auto& step : events_.steps) steps.push_back({step.start, step.length, one_line(step.name)});
    if (steps.empty()) {
      Nanos first = Nanos::never();
      Nanos last;
      const auto take = [&](const auto& all) {
        for (const auto& each : all) {
          const auto* const launch = events_.launch(each.correlation);
          first = std::min({first, each.start, launch != nullptr ? launch->start : each.start});
          last = std::max(last, each.end());
        }
      };
      take(events_.kernels);
      take(events_.communications);
      if (first.is_never())
        builder_.fail("it has neither \"ProfilerStep#\" nor kernels of a GPU",
                      "profile with ProfilerActivity.CUDA, and call step() of torch.profiler.profile once in each "
                      "iteration");
      steps.push_back({first, last - first, std::string()});
      builder_.warn("there is no \"ProfilerStep#\": all of it is taken for one step");
    }
    begin_ = steps.front().start;
    absolute_ = clock_ + begin_ >= kLeastClock;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i > 0) {
        const Nanos over = steps[i - 1].start + steps[i - 1].length - steps[i].start;
        if (over * 100 > std::min(steps[i - 1].length, steps[i].length) && over > 1_ms)
          builder_.fail(fmt::format("{} begins {:.3f} ms before {} ends", in_quotes(steps[i].name), over.millis(),
                                    in_quotes(steps[i - 1].name)),
                        "give a trace of one loop, whose steps follow each other");
      }
      builder_.step(steps[i].name, shown(steps[i].start), steps[i].length);
      bounds_.push_back(steps[i].start);
    }
    finish_ = steps.back().start + steps.back().length;
  }

  /// Of a time, what goes into the graph.
  [[nodiscard]] Nanos shown(Nanos time) const { return absolute_ ? clock_ + time : time - begin_; }

  /// The step in which something was launched; nothing if in none.
  [[nodiscard]] std::optional<std::size_t> step_of(Nanos launch) const {
    const auto after = std::upper_bound(bounds_.begin(), bounds_.end(), launch);
    if (after == bounds_.begin() || (after == bounds_.end() && launch > finish_)) return std::nullopt;
    return static_cast<std::size_t>(after - bounds_.begin()) - 1;
  }

  void find_computation() {
    std::size_t backwards = 0;
    std::vector<Nanos> latencies;
    builder_.hold(events_.kernels.size() * (sizeof(kernels_.front()) + sizeof(Nanos)));
    for (const auto& each : events_.kernels) {
      const auto* const launch = events_.launch(each.correlation);
      Nanos launched = each.start;
      if (launch != nullptr && launch->start <= each.start + kTolerance) {
        launched = std::min(launch->start, each.start);
        latencies.push_back(each.start - launched);
      } else if (launch != nullptr) {
        ++backwards;
      }
      if (launched > finish_ || each.end() <= begin_) continue;
      kernels_.push_back({each.start, each.end(), launched, launched, each.correlation, each.stream});
    }
    if (backwards > 0)
      builder_.warn(
          fmt::format("{} kernels begin before they are launched: the clocks of host and GPU differ", backwards));
    // How long a kernel takes to begin that nothing holds up: what few stay below.
    if (!latencies.empty()) {
      const auto few = latencies.begin() + static_cast<std::ptrdiff_t>(latencies.size() / 50);
      std::nth_element(latencies.begin(), few, latencies.end());
      latency_ = *few;
    }
    std::map<std::uint32_t, Nanos> ended;  // by stream
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
    std::sort(ended_.begin(), ended_.end());
    for (std::size_t i = 1; i < ended_.size(); ++i) ended_[i].second = std::max(ended_[i].second, ended_[i - 1].second);
  }

  /// The latest end of what was launched up to `when`; the beginning of the trace if nothing was.
  [[nodiscard]] Nanos end_of_launched(Nanos when, bool including) const {
    const auto after =
        including ? std::partition_point(ended_.begin(), ended_.end(), [&](const auto& e) { return e.first <= when; })
                  : std::partition_point(ended_.begin(), ended_.end(), [&](const auto& e) { return e.first < when; });
    return after == ended_.begin() ? begin_ : std::prev(after)->second;
  }

  void find_communications() {
    std::size_t outside = 0;
    std::size_t unknown = 0;
    std::size_t alone = 0;
    std::size_t unlaunched = 0;
    std::size_t peerless = 0;
    for (const auto& each : events_.communications) {
      const auto* const launch = events_.launch(each.correlation);
      Communication one;
      one.kernel = &each;
      one.start = each.start;
      one.end = each.end();
      one.launch = launch == nullptr ? each.start : std::min(launch->start, each.start);
      const auto step = step_of(one.launch);
      if (!step) {
        ++outside;
        continue;
      }
      one.step = *step;
      const auto transfer = events_.resolve(each);
      if (!transfer) {
        ++unknown;
        continue;
      }
      one.transfer = *transfer;
      const bool message = transfer->kind == Kind::send || transfer->kind == Kind::receive;
      if (message ? !find_peer(one) : false) {
        ++peerless;
        continue;
      }
      if (!message && !find_group(one)) {
        ++alone;
        continue;
      }
      if (launch == nullptr) ++unlaunched;
      communications_.push_back(one);
    }
    if (outside > 0) builder_.warn(fmt::format("{} communications lie outside all steps and are left out", outside));
    if (unknown > 0)
      builder_.warn(fmt::format("{} communications whose size or kind is not told are left out", unknown));
    if (!events_.unknown_type.empty()) builder_.warn(events_.unknown_type);
    if (broadcasts_ > 0)
      builder_.warn(
          fmt::format("the roots of {} broadcasts are not told; the first rank of each group is taken", broadcasts_));
    if (peerless > 0)
      builder_.warn(fmt::format("{} messages whose other end or size is not told are left out", peerless));
    if (alone > 0) builder_.warn(fmt::format("{} communications of a rank with nobody else are left out", alone));
    if (unlaunched > 0)
      builder_.warn(
          fmt::format("the launches of {} communications are not in it; their start is taken instead", unlaunched));
    // A stream runs its kernels in the order in which they were launched.
    std::stable_sort(communications_.begin(), communications_.end(),
                     [](const Communication& a, const Communication& b) { return a.launch < b.launch; });
    std::map<std::uint32_t, std::size_t> lanes;
    std::vector<const Communication*> last;
    std::vector<std::size_t> count;
    for (Communication& one : communications_) {
      one.lane = lanes.try_emplace(one.kernel->stream, lanes.size()).first->second;
      if (last.size() <= one.lane) last.resize(one.lane + 1), count.resize(one.lane + 1);
      one.in_lane = count[one.lane]++;
      const Communication* const before = std::exchange(last[one.lane], &one);
      one.ready = one.start;
      if (before == nullptr || before->end < one.start - kQueued || before->end > one.start + kTolerance) continue;
      const Nanos launched = std::max(one.launch, end_of_launched(one.launch, true)) + latency_;
      one.ready = std::clamp(launched, std::min(before->ready, one.start), one.start);
    }
    lanes_ = lanes.size();
    if (lanes_ > kMostLanes)
      builder_.fail(fmt::format("it communicates on {} streams", lanes_), "give the trace of one process");
  }

  bool find_group(Communication& one) {
    const std::uint32_t size = one.transfer.workers;
    const bool told = one.kernel->details.workers > 0 || events_.workers > 0 || size > 1;
    if (told && size < 2) return false;
    const KinetoEvents::Group* const group =
        one.transfer.group >= 0 ? &events_.groups[static_cast<std::size_t>(one.transfer.group)] : nullptr;
    if (one.transfer.collective == Collective::broadcast && one.transfer.kind == Kind::collective) ++broadcasts_;
    one.peer = 0;  // a broadcast's root is not told: the first rank
    if (group != nullptr && !group->ranks.empty()) {
      if (rank_ == kUnknownRank || std::binary_search(group->ranks.begin(), group->ranks.end(), rank_)) {
        one.group = builder_.group(group->ranks);
        one.peer = group->ranks.front();
        return true;
      }
      if (!std::exchange(foreign_, true))
        builder_.warn(
            fmt::format("event {}: rank {} is not in the group that it communicates in; the group's size is "
                        "taken alone",
                        one.kernel->event, rank_));
    }
    if (!told || size == events_.workers) {
      one.group = builder_.group({});
    } else {
      one.group = builder_.group({}, {size, group != nullptr ? group->name : std::string()});
      if (rank_ != kUnknownRank) one.peer = rank_ - rank_ % size;
    }
    return true;
  }

  bool find_peer(Communication& one) const {
    if (one.transfer.size == 0 || one.transfer.peer < 0) return false;
    std::int64_t peer = one.transfer.peer;
    if (one.transfer.peer_of_group && one.transfer.group >= 0) {
      const auto& ranks = events_.groups[static_cast<std::size_t>(one.transfer.group)].ranks;
      if (!ranks.empty()) {
        if (static_cast<std::uint64_t>(peer) >= ranks.size()) return false;
        peer = ranks[static_cast<std::size_t>(peer)];
      }
    }
    one.peer = static_cast<std::uint32_t>(peer);
    return one.peer != rank_;
  }

  /// Where steps begin on the GPU.
  void find_bounds() {
    const std::vector<Nanos> starts = bounds_;
    std::vector<Nanos> first(starts.size(), Nanos::never());
    for (const Kernel& kernel : kernels_)
      if (const auto step = step_of(kernel.launch)) first[*step] = std::min(first[*step], kernel.start);
    for (std::size_t i = first.size() - 1; i-- > 0;) first[i] = std::min(first[i], first[i + 1]);
    for (std::size_t i = 1; i < starts.size(); ++i) {
      bounds_[i] = std::max(starts[i], std::min(std::max(starts[i], end_of_launched(starts[i], false)), first[i]));
      bounds_[i] = std::max(bounds_[i], bounds_[i - 1]);
    }
    finish_ = std::max({finish_, end_of_launched(finish_, true), bounds_.back()});
  }

  void find_waits() {
    for (std::size_t i = 0; i < communications_.size(); ++i) {
      const Communication& one = communications_[i];
      if (one.end <= one.ready) continue;
      Nanos since = Nanos::never();
      auto kernel = std::partition_point(kernels_.begin(), kernels_.end(),
                                         [&](const Kernel& k) { return k.start < one.end - kTolerance; });
      for (std::size_t looked = 0; kernel != kernels_.end() && kernel->start <= one.end + kResume && looked < kLooked;
           ++kernel, ++looked)
        if (kernel->possible <= one.end - kShortestWait) since = std::min(since, kernel->possible);
      // Up to the end, the GPU was idle since `idle`.
      const auto after = std::partition_point(busy_.begin(), busy_.end(),
                                              [&](const auto& b) { return b.first < one.end - kTolerance; });
      const Nanos idle = after == busy_.begin() ? begin_ : std::prev(after)->second;
      if (since.is_never() && idle <= one.end - kShortestWait) since = returned(one.end);
      if (since.is_never()) continue;
      const Nanos from = std::min(std::max({idle, one.ready, since}), one.end);
      waits_.push_back({from, one.end, i});
    }
    if (events_.waits.empty())
      match_wait_calls();
    else
      find_stream_waits();
    std::sort(waits_.begin(), waits_.end(), [](const Wait& a, const Wait& b) {
      return std::tie(a.to, a.communication) < std::tie(b.to, b.communication);
    });
  }

  /// When the host began a call that waits for the GPU and returned at `end`; never() if there is none.
  [[nodiscard]] Nanos returned(Nanos end) const {
    Nanos since = Nanos::never();
    const auto& all = events_.synchronisations;
    auto at = std::partition_point(all.begin(), all.end(),
                                   [&](const KinetoSpan& s) { return s.start <= end - kShortestWait; });
    // Calls of a thread don't overlap: looking at a few is enough, unless there are as many threads that wait.
    for (int looked = 0; at != all.begin() && looked < 16; ++looked) {
      --at;
      if (at->end() >= end - kTolerance && at->end() <= end + kReturn) since = std::min(since, at->start);
    }
    return since;
  }

  /// What the profiler recorded of streams that wait for each other.
  void find_stream_waits() {
    std::map<std::uint32_t, std::vector<const Kernel*>> kernels;  // by stream, by correlation
    for (const Kernel& kernel : kernels_) kernels[kernel.stream].push_back(&kernel);
    for (auto& [stream, all] : kernels)
      std::sort(all.begin(), all.end(),
                [](const Kernel* a, const Kernel* b) { return a->correlation < b->correlation; });
    std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::size_t>>> lanes;  // the same of communications
    for (std::size_t i = 0; i < communications_.size(); ++i)
      lanes[communications_[i].kernel->stream].emplace_back(communications_[i].kernel->correlation, i);
    for (auto& [stream, all] : lanes) std::sort(all.begin(), all.end());
    for (const auto& wait : events_.waits) {
      const auto waiting = kernels.find(wait.stream);
      const auto lane = lanes.find(wait.of_stream);
      if (waiting == kernels.end() || lane == lanes.end()) continue;
      const auto next = std::partition_point(waiting->second.begin(), waiting->second.end(),
                                             [&](const Kernel* k) { return k->correlation < wait.correlation; });
      const auto after = std::partition_point(lane->second.begin(), lane->second.end(),
                                              [&](const auto& c) { return c.first < wait.of_correlation; });
      if (next == waiting->second.end() || after == lane->second.begin()) continue;
      const std::size_t index = std::prev(after)->second;
      const Communication& one = communications_[index];
      const Nanos at = (*next)->start;
      if (one.end > at + kTolerance || one.end <= one.ready) continue;
      waits_.push_back({std::max(at, one.end), std::max(at, one.end), index});
    }
  }

  /// Calls that let a stream wait for another without telling which, matched with what there was to wait for.
  void match_wait_calls() {
    // By thread: what launched communications, and what was launched.
    std::map<std::uint32_t, std::vector<KinetoSpan>> launching;
    for (const Communication& one : communications_) {
      const auto* const launch = events_.launch(one.kernel->correlation);
      if (launch == nullptr || launch->thread >= events_.around.size()) continue;
      const auto& around = events_.around[launch->thread];
      auto at = std::partition_point(around.begin(), around.end(),
                                     [&](const KinetoSpan& s) { return s.start <= launch->start; });
      for (int looked = 0; at != around.begin() && looked < 4; ++looked)
        if ((--at)->end() >= launch->start) launching[launch->thread].push_back({at->start, at->length});
    }
    std::map<std::uint32_t, std::vector<std::pair<Nanos, Nanos>>> launched;  // when, and start of the kernel
    for (const Kernel& kernel : kernels_)
      if (const auto* const launch = events_.launch(kernel.correlation))
        launched[launch->thread].emplace_back(kernel.launch, kernel.start);
    for (auto& [thread, all] : launched) std::sort(all.begin(), all.end());
    for (auto& [thread, all] : launching)
      std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    std::deque<std::size_t> open;  // communications that nothing has waited for, by launch
    std::size_t next = 0;
    std::size_t last_step = 0;
    for (const auto& call : events_.wait_calls) {
      for (; next < communications_.size() && communications_[next].launch < call.start; ++next) open.push_back(next);
      const auto step = step_of(call.start);
      if (!step) continue;
      if (*step != std::exchange(last_step, *step))
        std::erase_if(open, [&](std::size_t index) { return communications_[index].step < *step; });
      if (open.empty() || within(launching[call.thread], call.start)) continue;
      const auto& all = launched[call.thread];
      const auto after =
          std::partition_point(all.begin(), all.end(), [&](const auto& l) { return l.first < call.start; });
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
    auto span = std::partition_point(spans.begin(), spans.end(), [&](const KinetoSpan& s) { return s.start <= at; });
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
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return communications_[a].ready < communications_[b].ready; });
    for (const Wait& wait : waits_)
      if (wait.from < wait.to) idle_.emplace_back(wait.from, wait.to);
    std::sort(idle_.begin(), idle_.end());
    auto wait = waits_.begin();
    auto next = order.begin();
    std::size_t bound = 1;
    while (wait != waits_.end() || next != order.end() || bound < bounds_.size()) {
      const Nanos wait_at = wait == waits_.end() ? Nanos::never() : wait->to;
      const Nanos bound_at = bound == bounds_.size() ? Nanos::never() : bounds_[bound];
      const Nanos next_at = next == order.end() ? Nanos::never() : communications_[*next].ready;
      if (wait_at <= std::min(bound_at, next_at)) {
        compute_until(wait_at);
        depend(communications_[wait->communication]);
        ++wait;
      } else if (bound_at <= next_at) {
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

  /// What is computed next comes after a communication.
  void depend(const Communication& one) {
    if (joined_[one.lane] > one.in_lane) return;  // it has waited for a later one
    joined_[one.lane] = one.in_lane + 1;
    pending_.push_back(one.node);
  }

  void compute_until(Nanos end) {
    end = std::min(end, finish_);
    while (at_ < end) {
      // What was waited for before is over.
      while (idle_at_ < idle_.size() && idle_[idle_at_].second <= at_) ++idle_at_;
      if (idle_at_ < idle_.size() && idle_[idle_at_].first <= at_) {
        at_ = std::min(idle_[idle_at_].second, end);
        continue;
      }
      const Nanos until = idle_at_ < idle_.size() ? std::min(end, idle_[idle_at_].first) : end;
      GraphNode node;
      node.name = compute_;
      node.lane = lane_;
      node.step = static_cast<std::uint32_t>(step_);
      node.start = shown(at_);
      node.length = until - at_;
      std::vector<std::uint32_t> waits = std::exchange(pending_, {});
      if (computed_) waits.push_back(*computed_);
      std::sort(waits.begin(), waits.end());
      computed_ = builder_.add(0, node, waits);
      at_ = until;
    }
  }

  void communicate(Communication& one) {
    GraphNode node;
    node.kind = one.transfer.kind == Kind::send      ? GraphNode::Kind::send
                : one.transfer.kind == Kind::receive ? GraphNode::Kind::receive
                                                     : GraphNode::Kind::collective;
    node.collective = one.transfer.kind == Kind::barrier ? Collective::all_reduce : one.transfer.collective;
    node.bytes = one.transfer.kind == Kind::barrier ? 0 : one.transfer.size;
    node.group = one.group;
    node.peer = one.peer;
    node.name = builder_.name(one_line(events_.names[one.kernel->name]));
    node.lane = builder_.lane(fmt::format("stream {}", one.kernel->stream));
    // What was launched in a step belongs to it, as long as steps of a rank's nodes ascend.
    const auto begun =
        static_cast<std::size_t>(std::upper_bound(bounds_.begin(), bounds_.end(), one.ready) - bounds_.begin());
    step_of_last_ = std::max({step_of_last_, computed_ ? builder_.at(0).nodes[*computed_].step : 0,
                              static_cast<std::uint32_t>(std::min(one.step, std::max<std::size_t>(begun, 1) - 1))});
    node.step = step_of_last_;
    node.start = shown(one.start);
    node.length = one.end - one.start;
    std::vector<std::uint32_t> waits = pending_;
    if (computed_) waits.push_back(*computed_);
    const Communication* const before = std::exchange(last_[one.lane], &one);
    if (before != nullptr) waits.push_back(before->node);
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    one.node = builder_.add(0, node, waits);
  }

  GraphBuilder& builder_;
  const KinetoEvents& events_;
  std::uint32_t rank_ = kUnknownRank;
  std::size_t broadcasts_ = 0;
  bool foreign_ = false;  ///< a group without its rank has been seen
  Nanos clock_;
  bool absolute_ = false;
  Nanos begin_;
  Nanos finish_;
  Nanos latency_;
  std::vector<Nanos> bounds_;  ///< where steps begin
  std::vector<Kernel> kernels_;
  std::vector<std::pair<Nanos, Nanos>> busy_;   ///< from, to; apart from each other
  std::vector<std::pair<Nanos, Nanos>> ended_;  ///< by launch: up to it, the latest end
  std::vector<Communication> communications_;   ///< by launch
  std::size_t lanes_ = 0;
  std::vector<Wait> waits_;  ///< by end
  // While nodes are written:
  std::vector<std::pair<Nanos, Nanos>> idle_;  ///< no computation but waiting
  std::size_t idle_at_ = 0;
  Nanos at_;  ///< up to where computation is written
  std::size_t step_ = 0;
  std::uint32_t step_of_last_ = 0;
  std::uint32_t lane_ = 0;
  std::uint32_t compute_ = 0;
  std::optional<std::uint32_t> computed_;
  std::vector<std::uint32_t> pending_;      ///< communications that the next computation waits for
  std::vector<std::size_t> joined_;         ///< of each lane, how many computation has waited for
  std::vector<const Communication*> last_;  ///< of each lane
};

bool recognise(const std::string& /*name*/, std::string_view beginning) {
  const std::size_t at = beginning.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const auto has = [&](std::string_view key) { return beginning.find(key) != std::string_view::npos; };
  // Lists of large jobs' groups stand before the events.
  return at != std::string_view::npos && beginning[at] == '{' &&
         (has("\"traceEvents\"") || has("\"distributedInfo\"") || has("\"baseTimeNanoseconds\"") ||
          (has("\"schemaVersion\"") && has("\"deviceProperties\"")));
}

PartialGraph read(TraceInput& input, const TraceOptions& /*options*/) {
  GraphBuilder builder("Kineto", input);
  const KinetoEvents events = read_kineto_events([&](char* to, std::size_t most) { return input.read(to, most); },
                                                 input.name(), [&](std::size_t bytes) { builder.hold(bytes); });
  return Reader(builder, events).read();
}

}  // namespace

constinit const TraceFormat kKinetoFormat{
    "Kineto", "a trace of PyTorch's profiler (Chrome trace events, JSON), one file a rank", recognise, read};

}  // namespace mltcp::workload
