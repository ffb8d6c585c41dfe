// Summarises execution graphs and finds their periods (see graph_phases.h).
#include "mltcp/lab/workload/graph_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::workload {
namespace {

using Kind = GraphNode::Kind;

// minimum share of equal pairs among all pairs of communications that are one period apart
constexpr double kAlike = 0.9;
// Maximum number of communications in a trace in which a period is searched.
constexpr std::size_t kMaxSearched = 200'000;
// Maximum number of pairs to compare in the search for a period. The search usually ends after far fewer pairs.
constexpr std::size_t kMaxCompared = 200'000'000;
constexpr Nanos kLatestPlaced(std::int64_t{1} << 62);  // latest end of a node whose times are computed: 146 years
constexpr Bytes kMaxSent = std::uint64_t{1} << 62;

/// An interval of time.
struct Span {
  Nanos from;
  Nanos to;
};

/// Returns the union of `spans` as disjoint spans in ascending order.
std::vector<Span> merged(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::from);
  std::vector<Span> result;
  for (const Span& span : spans) {
    if (span.to <= span.from) continue;
    if (!result.empty() && span.from <= result.back().to)
      result.back().to = std::max(result.back().to, span.to);
    else
      result.push_back(span);
  }
  return result;
}
Nanos length_of(const std::vector<Span>& spans) {
  Nanos sum;
  for (const Span& span : spans) sum += span.to - span.from;
  return sum;
}
/// Returns the length of the intersection of two lists of disjoint, ascending spans. `a` may have many more spans than
/// `b`, so the search begins at the first span of `a` that can overlap `b`.
Nanos length_of_both(const std::vector<Span>& a, const std::vector<Span>& b) {
  Nanos sum;
  if (b.empty()) return sum;
  auto at = std::lower_bound(a.begin(), a.end(), b.front().from,
                             [](const Span& span, Nanos time) { return span.to <= time; });
  for (std::size_t j = 0; at != a.end() && j < b.size();) {
    const Nanos from = std::max(at->from, b[j].from);
    const Nanos to = std::min(at->to, b[j].to);
    if (to > from) sum += to - from;
    if (at->to < b[j].to)
      ++at;
    else
      ++j;
  }
  return sum;
}
/// Returns how much time of `spans` is within `where`. `spans` must be disjoint and ascending.
Nanos within(const std::vector<Span>& spans, const Span& where) {
  auto at = std::lower_bound(spans.begin(), spans.end(), where.from,
                             [](const Span& span, Nanos time) { return span.to <= time; });
  Nanos sum;
  for (; at != spans.end() && at->from < where.to; ++at)
    sum += std::min(at->to, where.to) - std::max(at->from, where.from);
  return sum;
}

/// Returns the standard deviation divided by the mean; 0 for fewer than two lengths.
double spread(const std::vector<Nanos>& lengths) {
  if (lengths.size() < 2) return 0;
  double mean = 0;
  for (const Nanos length : lengths) mean += length.seconds();
  mean /= static_cast<double>(lengths.size());
  if (mean <= 0) return 0;
  double square = 0;
  for (const Nanos length : lengths) square += (length.seconds() - mean) * (length.seconds() - mean);
  return std::sqrt(square / static_cast<double>(lengths.size() - 1)) / mean;
}

class Summary {
 public:
  Summary(const ExecutionGraph& graph, const PhaseOptions& options)
      : graph_(graph), options_(options), rank_(graph.ranks.at(options.rank)) {}

  GraphSummary run() {
    if (rank_.nodes.empty())
      throw InputError(fmt::format("{}: rank {} has no nodes; choose one that has a trace",
                                   graph_.sources.empty() ? "a graph" : graph_.sources.front(), options_.rank));
    result_.format = graph_.format;
    result_.sources = graph_.sources;
    result_.warnings = graph_.warnings;
    result_.ranks = graph_.ranks.size();
    result_.rank = options_.rank < graph_.recorded_ranks.size() ? graph_.recorded_ranks[options_.rank] : options_.rank;
    for (const GraphNode& node : rank_.nodes) {
      sent_.push_back(sent_by(node));
      result_.computes = result_.computes || (node.kind == Kind::compute && node.length.count > 0);
    }
    lay_out();
    std::vector<Span> spans;
    for (std::size_t i = 0; i < rank_.nodes.size(); ++i)
      if (rank_.nodes[i].kind == Kind::compute) spans.push_back(times_[i]);
    computing_ = merged(std::move(spans));
    divide();
    for (const Iteration& one : iterations_) result_.steps.push_back(sum_up(one));
    std::vector<std::size_t> order(result_.steps.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return result_.steps[a].length < result_.steps[b].length; });
    result_.typical = order[(order.size() - 1) / 2];
    const Iteration& typical = iterations_[result_.typical];
    for (const std::uint32_t index : typical.communications) {
      const GraphNode& node = rank_.nodes[index];
      const std::string kind = node.kind == Kind::send      ? "send"
                               : node.kind == Kind::receive ? "receive"
                               : node.bytes == 0            ? "barrier"
                                                            : std::string(name(node.collective));
      GraphSummary::Sum& sum = result_.communications[kind];
      ++sum.count;
      sum.size = std::min(sum.size + std::min(node.bytes, kMaxSent), kMaxSent);
      sum.sent = std::min(sum.sent + sent_[index], kMaxSent);
    }
    phases_of(typical);
    return std::move(result_);
  }

 private:
  struct Iteration {
    std::string name;
    Span time;
    std::vector<std::uint32_t> communications;  ///< indices of nodes, in the order of their starts
  };

  [[nodiscard]] Bytes sent_by(const GraphNode& node) const {
    if (node.kind != Kind::send && node.kind != Kind::collective) return 0;
    std::optional<Bytes> bytes = node.bytes;
    if (node.kind == Kind::collective)
      bytes = bytes_sent(
          node.collective, node.bytes,
          options_.workers > 0 ? options_.workers : static_cast<std::uint32_t>(graph_.groups[node.group].size()));
    if (options_.bytes_scale == 1) return std::min(bytes.value_or(kMaxSent), kMaxSent);
    // Rounds up, so that a size above 0 remains above 0.
    const double scaled = std::ceil(static_cast<double>(bytes.value_or(kMaxSent)) * options_.bytes_scale);
    return scaled < static_cast<double>(kMaxSent) ? static_cast<Bytes>(scaled) : kMaxSent;
  }

  void lay_out() {
    // If the lengths of all communications are 0, the trace does not record lengths, so its times are not used.
    const bool communicates =
        std::ranges::any_of(rank_.nodes, [](const GraphNode& node) { return node.kind != Kind::compute; });
    result_.recorded = options_.compute_scale == 1 &&
                       std::ranges::none_of(rank_.nodes, [](const GraphNode& node) { return node.start.is_never(); }) &&
                       std::ranges::any_of(rank_.nodes, [&](const GraphNode& node) {
                         return node.length.count > 0 && (!communicates || node.kind != Kind::compute);
                       });
    Nanos computed;
    Nanos sent;
    // Sum of the lengths of all computations so far. The sum is scaled, because many short computations, scaled one by
    // one, would be rounded to 0.
    long double unscaled = 0;
    Nanos scaled;
    for (std::size_t i = 0; i < rank_.nodes.size(); ++i) {
      const GraphNode& node = rank_.nodes[i];
      if (result_.recorded) {
        ready_.push_back(node.start);
        times_.push_back({node.start, node.start + node.length});
        continue;
      }
      Nanos from;
      Nanos ready;
      for (std::uint32_t wait = 0; wait < node.waits; ++wait) {
        const std::uint32_t before = rank_.waits[node.first_wait + wait];
        from = std::max(from, times_[before].to);
        ready = std::max(ready, rank_.nodes[before].kind == Kind::compute ? times_[before].to : ready_[before]);
      }
      ready_.push_back(ready);
      if (node.kind == Kind::compute) {
        unscaled += static_cast<long double>(node.length.count);
        const Nanos before = scaled;
        scaled = Nanos(std::llround(std::min(unscaled * static_cast<long double>(options_.compute_scale), 4e18L)));
        const Nanos length = scaled - before;
        // A computation of length 0 does not wait for the previous computation.
        if (length.count > 0) from = computed = std::max(from, computed);
        times_.push_back({from, from + length});
        computed = std::max(computed, from + length);
      } else {
        from = std::max(from, sent);
        sent = from + options_.link.time_for(sent_[i]);
        times_.push_back({from, sent});
      }
      if (times_.back().to > kLatestPlaced)
        throw InputError(
            fmt::format("{}: laid out, rank {} takes more than 146 years; give a higher rate of the link, or "
                        "lower factors",
                        graph_.sources.empty() ? "a graph" : graph_.sources.front(), options_.rank));
    }
  }

  void divide() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < rank_.nodes.size(); ++i)
      if (rank_.nodes[i].kind != Kind::compute) all.push_back(i);
    std::ranges::stable_sort(all, [&](std::uint32_t a, std::uint32_t b) { return times_[a].from < times_[b].from; });
    const bool marked = graph_.steps.size() > 1 || !graph_.steps.front().name.empty();
    if (marked) return by_steps(all);
    if (by_repetition(all)) return;
    Iteration one;
    one.time = {Nanos::never(), Nanos(0)};
    for (const Span& span : times_) one.time = {std::min(one.time.from, span.from), std::max(one.time.to, span.to)};
    one.communications = all;
    iterations_.push_back(std::move(one));
  }

  void by_steps(const std::vector<std::uint32_t>& all) {
    result_.period = GraphSummary::Period::marked;
    std::vector<Iteration> of(graph_.steps.size());
    std::vector<bool> used(of.size(), false);
    for (Iteration& one : of) one.time = {Nanos::never(), Nanos(0)};
    for (std::size_t i = 0; i < rank_.nodes.size(); ++i) {
      Iteration& one = of[rank_.nodes[i].step];
      used[rank_.nodes[i].step] = true;
      one.time = {std::min(one.time.from, times_[i].from), std::max(one.time.to, times_[i].to)};
    }
    for (const std::uint32_t index : all) of[rank_.nodes[index].step].communications.push_back(index);
    std::vector<Nanos> lengths;
    Nanos end;
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (!used[i]) continue;
      const auto& step = graph_.steps[i];
      of[i].name = step.name;
      // A recorded step has its recorded start and length. A step without them begins no earlier than the end of the
      // previous step, so that no time counts twice.
      if (result_.recorded && !step.start.is_never() && step.length.count > 0)
        of[i].time = {step.start, step.start + step.length};
      else
        of[i].time.from = std::min(std::max(of[i].time.from, end), of[i].time.to);
      end = std::max(end, of[i].time.to);
      lengths.push_back(of[i].time.to - of[i].time.from);
      iterations_.push_back(std::move(of[i]));
    }
    result_.confidence = lengths.size() > 1 ? 1 / (1 + spread(lengths)) : 0.5;
  }

  bool by_repetition(const std::vector<std::uint32_t>& all) {
    const std::size_t count = all.size();
    if (count < 4) return false;
    if (count > kMaxSearched) return give_up();
    // Each kind of communication gets a number, because kinds are compared often.
    std::map<std::tuple<Kind, Collective, Bytes, std::uint32_t, std::uint32_t>, std::uint32_t> sorts;
    std::vector<std::uint32_t> sort_of;
    sort_of.reserve(count);
    for (const std::uint32_t index : all) {
      const GraphNode& node = rank_.nodes[index];
      const auto next = static_cast<std::uint32_t>(sorts.size());
      sort_of.push_back(
          sorts.try_emplace({node.kind, node.collective, node.bytes, node.group, node.peer}, next).first->second);
    }
    std::size_t compared = 0;
    for (std::size_t period = 2; period <= count / 2 && compared < kMaxCompared; ++period) {
      const std::size_t pairs = count - period;
      const auto max_others = static_cast<std::size_t>(static_cast<double>(pairs) * (1 - kAlike));
      std::size_t others = 0;
      std::size_t pair = 0;
      for (; pair < pairs && others <= max_others; ++pair)
        if (sort_of[pair] != sort_of[pair + period]) ++others;
      compared += pair;
      if (others > max_others) continue;
      const bool different = std::any_of(
          all.begin() + 1, all.begin() + static_cast<std::ptrdiff_t>(period), [&](const std::uint32_t& one) {
            return sort_of[static_cast<std::size_t>(&one - all.data())] != sort_of.front() &&
                   !two_ends(rank_.nodes[one], rank_.nodes[all.front()]);
          });
      if (!different) return false;
      const std::size_t repetitions = count / period;
      std::vector<Nanos> lengths;
      for (std::size_t i = 0; i < repetitions; ++i) {
        Iteration one;
        const std::size_t first = i * period;
        const std::size_t next = first + period;
        one.communications.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                                  all.begin() + static_cast<std::ptrdiff_t>(next));
        const Nanos from = times_[all[first]].from;
        Nanos to = times_[all[next - 1]].to;
        if (next < count) {
          to = std::max(to, times_[all[next]].from);
          lengths.push_back(times_[all[next]].from - from);
        }
        one.time = {from, next < count ? times_[all[next]].from : to};
        iterations_.push_back(std::move(one));
      }
      // The last repetition is dropped, because no communication follows that would show where it ends.
      if (repetitions > 1 && count == repetitions * period) iterations_.pop_back();
      result_.period = GraphSummary::Period::repeated;
      result_.confidence = static_cast<double>(pairs - others) / static_cast<double>(pairs) *
                           (1 - 1 / static_cast<double>(repetitions)) / (1 + spread(lengths));
      return true;
    }
    return compared >= kMaxCompared && give_up();
  }

  bool give_up() {
    result_.warnings.push_back(
        fmt::format("{}: the search for repetitions takes too long, so the trace is taken as one iteration; mark "
                    "steps, or give a part of the trace",
                    graph_.sources.empty() ? "a graph" : graph_.sources.front()));
    return false;
  }

  GraphSummary::Step sum_up(const Iteration& one) {
    std::vector<Span> communicating;
    GraphSummary::Step step;
    step.name = one.name;
    step.length = one.time.to - one.time.from;
    step.communications = one.communications.size();
    for (const std::uint32_t index : one.communications) {
      communicating.push_back({std::max(times_[index].from, one.time.from), std::min(times_[index].to, one.time.to)});
      step.sent = std::min(step.sent + sent_[index], kMaxSent);
    }
    communicating = merged(std::move(communicating));
    step.compute = within(computing_, one.time);
    step.communicate = length_of(communicating);
    step.both = length_of_both(computing_, communicating);
    return step;
  }

  /// Returns whether one of two nodes is a send, and the other is a receive of equal size. In a ring, a rank runs such
  /// a pair at the same time, so the two nodes count as one kind of communication.
  static bool two_ends(const GraphNode& a, const GraphNode& b) {
    return a.bytes == b.bytes &&
           ((a.kind == Kind::send && b.kind == Kind::receive) || (a.kind == Kind::receive && b.kind == Kind::send));
  }

  /// Divides an iteration into phases. With recorded times, all time between communications is compute time. A
  /// communication is assumed to delay no computation if the rank computes during at least half of it. Without recorded
  /// times, only computations are compute time, because the rest is waiting for the link. A communication is then
  /// assumed to delay a computation if the computation begins at the end of the communication, and the rank was idle
  /// just before. If the rank computes during the first part of such a communication, this part becomes a separate
  /// phase that overlaps with the computation.
  void phases_of(const Iteration& one) {
    constexpr double min = 0.01;  // minimum size of a separate first part, as a share of the communication
    Nanos at = one.time.from;
    const auto compute_until = [&](Nanos until) {
      if (until <= at) return;
      Phase phase;
      phase.compute = result_.recorded ? until - at : within(computing_, {at, until});
      if (phase.compute.count > 0) result_.phases.push_back(std::move(phase));
      at = until;
    };
    for (const std::uint32_t index : one.communications) {
      if (sent_[index] == 0) continue;
      const Span& time = times_[index];
      const Nanos from = options_.any_link ? ready_[index] : time.from;
      Phase phase;
      phase.kind = Phase::Kind::communicate;
      phase.bytes = sent_[index];
      phase.label = one_line(graph_.names[rank_.nodes[index].name]);
      const Nanos beside = within(computing_, {from, time.to});
      const Nanos length = time.to - time.from;
      std::optional<Nanos> idle;
      if (result_.recorded)
        phase.overlap = beside * 2 >= length && length.count > 0;
      else if (idle = idle_before(time.to, one.time.to); !idle)
        phase.overlap = beside.count > 0;
      if (idle && *idle > time.from) {
        const double share = static_cast<double>((*idle - time.from).count) / static_cast<double>(length.count);
        const auto first = std::min(static_cast<Bytes>(static_cast<double>(phase.bytes) * share), phase.bytes - 1);
        if (share >= min && first > 0) {
          compute_until(std::min(from, one.time.to));
          result_.phases.push_back(phase);
          result_.phases.back().bytes = first;
          result_.phases.back().overlap = true;
          phase.bytes -= first;
        }
        compute_until(*idle);
      }
      compute_until(std::min(from, one.time.to));
      if (!phase.overlap) at = std::max(at, std::min(time.to, one.time.to));
      result_.phases.push_back(std::move(phase));
    }
    compute_until(one.time.to);
  }

  /// If the rank begins to compute exactly at `time`, returns the time at which its previous computation ended, or 0 if
  /// there is none. Returns nothing if it does not begin then, or if `time` is not before `end`.
  [[nodiscard]] std::optional<Nanos> idle_before(Nanos time, Nanos end) const {
    const auto next = std::lower_bound(computing_.begin(), computing_.end(), time,
                                       [](const Span& span, Nanos when) { return span.from < when; });
    if (next == computing_.end() || next->from != time || time >= end) return std::nullopt;
    return next == computing_.begin() ? Nanos(0) : std::prev(next)->to;
  }

  const ExecutionGraph& graph_;
  PhaseOptions options_;
  const RankGraph& rank_;
  GraphSummary result_;
  std::vector<Bytes> sent_;  ///< by node: bytes sent
  std::vector<Span> times_;
  /// By node: time at which all computations for which the node waits, directly or indirectly, have ended.
  std::vector<Nanos> ready_;
  std::vector<Iteration> iterations_;
  std::vector<Span> computing_;
};

std::string in_ms(Nanos time) { return fmt::format("{:.3f} ms", time.millis()); }
std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }
double ratio(Nanos part, Nanos all) {
  return all.count > 0 ? static_cast<double>(part.count) / static_cast<double>(all.count) : 0;
}

}  // namespace

std::string_view name(GraphSummary::Period period) {
  using enum GraphSummary::Period;
  return word_of<GraphSummary::Period>(period, {{marked, "marked by the trace"},
                                                {repeated, "found by repetition"},
                                                {single, "none found: the whole trace is taken as one"}});
}

std::string_view key_of(GraphSummary::Period period) {
  constexpr std::string_view keys[] = {"marked", "repeated", "single"};
  return keys[static_cast<std::size_t>(period)];
}

GraphSummary summarise(const ExecutionGraph& graph, const PhaseOptions& options) {
  return Summary(graph, options).run();
}

bool is_training_loop(const GraphSummary& summary) { return summary.format == kTwelveColumns; }

Job to_job(const GraphSummary& summary, const std::string& job_name) {
  Job job;
  job.name = job_name;
  job.phases = summary.phases;
  if (std::ranges::none_of(job.phases, [](const Phase& phase) { return phase.bytes > 0; }))
    throw InputError(fmt::format(
        "{}: rank {} sends nothing in an iteration; {}", summary.sources.empty() ? "a trace" : summary.sources.front(),
        summary.rank,
        is_training_loop(summary) ? "choose network \"all\", or 2 or more workers" : "choose another trace"));
  return job;
}

std::string describe(const GraphSummary& summary, Rate link) {
  constexpr std::size_t max_steps = 12;
  constexpr std::size_t max_arcs = 12;
  std::string text = fmt::format("{}: {}{}, {}; rank {}\n", summary.sources.front(), summary.format,
                                 summary.sources.size() > 1 ? fmt::format(" ({} files)", summary.sources.size()) : "",
                                 plural(summary.ranks, "rank"), summary.rank);
  text += fmt::format("iterations  {}, {}, confidence {:.2f}\n", summary.steps.size(), name(summary.period),
                      summary.confidence);
  if (!summary.recorded)
    text += fmt::format("times       {}laid out by dependencies, communication at {}\n",
                        summary.computes ? "" : "none of computation; ", to_text(link));
  for (std::size_t i = 0; i < std::min(summary.steps.size(), max_steps); ++i) {
    const auto& step = summary.steps[i];
    text += fmt::format("  {:<18}{}{}: computes {}, communicates {}, both {}; sends {} in {}\n",
                        step.name.empty() ? fmt::format("iteration {}", i) : one_line(step.name), in_ms(step.length),
                        i == summary.typical ? " (typical)" : "", in_ms(step.compute), in_ms(step.communicate),
                        in_ms(step.both), rounded(step.sent), plural(step.communications, "communication"));
  }
  if (summary.steps.size() > max_steps) text += fmt::format("  and {} more\n", summary.steps.size() - max_steps);
  const auto& typical = summary.steps[summary.typical];
  if (typical.communicate.count > 0)
    text += fmt::format("overlap     {} of communication is beside computation\n",
                        percent(ratio(typical.both, typical.communicate)));
  for (const auto& [kind, sum] : summary.communications)
    text += fmt::format("  {:<18}{} of {} in all; sends {}\n", kind, sum.count, rounded(sum.size), rounded(sum.sent));
  std::size_t sending = 0;
  Nanos computing;
  for (const Phase& phase : summary.phases) {
    if (phase.kind == Phase::Kind::communicate)
      ++sending;
    else
      computing += phase.compute;
  }
  text += fmt::format("phases      {}, {} of them send\n", summary.phases.size(), sending);
  if (sending > 0) {
    const IdealIteration ideal = ideal_iteration(summary.phases, link);
    text += fmt::format("alone at {}: iteration {}, link busy {} ({})\n", to_text(link), in_ms(ideal.length),
                        in_ms(ideal.sending), percent(ideal.duty_cycle()));
    const auto transfers = ideal_transfers(summary.phases, link);
    text += fmt::format("circle      of {}, {}:", in_ms(ideal.length), plural(transfers.size(), "arc"));
    for (std::size_t i = 0; i < std::min(transfers.size(), max_arcs); ++i)
      text += fmt::format("{} {:.1f} to {:.1f} degrees", i == 0 ? "" : ",",
                          360 * ratio(transfers[i].from, ideal.length), 360 * ratio(transfers[i].to, ideal.length));
    if (transfers.size() > max_arcs) text += fmt::format(", and {} more", transfers.size() - max_arcs);
    text += '\n';
  }
  for (const std::string& warning : summary.warnings) text += fmt::format("warning: {}\n", warning);
  return text;
}

}  // namespace mltcp::workload
