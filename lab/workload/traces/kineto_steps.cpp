// See kineto_steps.h.
#include "mltcp/lab/workload/traces/kineto_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

using namespace mltcp::literals;
using Kind = KinetoDetails::Kind;
using KernelCall = KinetoEvents::Kernel::Call;

constexpr int kLooked = 4;  // maximum depth of nested annotations and operations

bool is_message(Kind kind) { return kind == Kind::send || kind == Kind::receive; }

class StepFinder {
 public:
  StepFinder(KinetoEvents& events, const KinetoKeep& keep) : events_(events), threads_(events.around.size()) {
    if (keep)
      keep(events.communications.size() *
               (sizeof(KinetoSteps::Communication) + sizeof(KinetoTransfer) + sizeof(Launched)) +
           threads_.size() * sizeof(Thread) + events.steps.size() * (sizeof(KinetoSteps::Step) + sizeof(Run)));
  }

  KinetoSteps find() {
    result_.warnings = events_.warnings;
    find_marks();
    runs_.resize(result_.steps.size() + 1);
    for (const auto& kernel : events_.kernels) run(kernel);
    find_communications();
    find_bounds();
    leave_out_steps();
    return std::move(result_);
  }

 private:
  struct Launched {
    const KinetoEvents::Communication* kernel;
    const KinetoEvents::Launch* call;  ///< nullptr if the launch was not recorded
    Nanos at;
  };
  /// The time in which the GPU runs the kernels launched in a step.
  struct Run {
    Nanos begin = Nanos::never();
    Nanos end;
    Nanos communicates;  ///< start of the last communication
  };
  /// The progress through the records of a thread.
  struct Thread {
    std::size_t next = 0;  ///< index in KinetoEvents::around of the first record after all launches so far
    const KinetoEvents::Around* description = nullptr;  ///< record that describes the last communication
    std::size_t last = 0;                               ///< index of the last communication
    bool group = false;                                 ///< whether the last communication has several operations
  };

  [[noreturn]] void fail(std::string_view cause, std::string_view cure) const {
    throw InputError(one_line(fmt::format("{}: {}; {}", events_.file, cause, cure)));
  }
  void warn(std::string_view warning) { result_.warnings.emplace_back(warning); }
  void warn(std::size_t count, std::string_view noun, std::string_view what) {
    if (count > 0) warn(fmt::format("{} {}", plural(count, noun), what));
  }

  /// Finds the steps of the host.
  void find_marks() {
    for (const auto& mark : events_.steps) {
      KinetoSteps::Step step;
      static_cast<KinetoSpan&>(step) = mark;
      step.name = one_line(mark.name);
      step.launched = mark.start;
      if (!result_.steps.empty()) {
        const KinetoSteps::Step& before = result_.steps.back();
        const Nanos over = before.end() - step.start;
        if (over * 100 > std::min(before.length, step.length) && over > 1_ms)
          fail(fmt::format("{} begins {:.3f} ms before {} ends", in_quotes(step.name), over.millis(),
                           in_quotes(before.name)),
               "give a trace of one loop, whose steps follow each other");
      }
      result_.steps.push_back(std::move(step));
    }
    if (result_.steps.empty()) {
      Nanos first = Nanos::never();
      Nanos last;
      const auto take = [&](const auto& all) {
        for (const auto& each : all) {
          first = std::min({first, each.start, each.launch().value_or(first)});
          last = std::max(last, each.end());
        }
      };
      take(events_.kernels);
      take(events_.communications);
      if (first.is_never())
        fail(fmt::format("it has neither \"ProfilerStep#\" nor kernels of a GPU{}",
                         events_.warnings.empty() ? "" : ", or their times are wrong"),
             "profile with ProfilerActivity.CUDA, and call step() of torch.profiler.profile once in each iteration");
      KinetoSteps::Step step;
      step.start = step.launched = first;
      step.length = last - first;
      result_.steps.push_back(std::move(step));
      warn("there is no \"ProfilerStep#\": the whole trace is taken as one step");
    }
    result_.launched_until = result_.steps.back().end();
  }

  /// Adds the kernel to the run of the step in which it was launched.
  void run(const KinetoEvents::Kernel& kernel) {
    const auto launch = kernel.launch();
    std::size_t at = 0;  // index of the run of kernels launched before the first step
    if (launch && *launch >= result_.steps.front().launched) {
      const auto step = result_.step_of(*launch);
      if (!step) return;
      at = *step + 1;
    }
    runs_[at].begin = std::min(runs_[at].begin, kernel.start);
    runs_[at].end = std::max(runs_[at].end, kernel.end());
  }

  void find_communications() {
    std::vector<Launched> all;
    std::size_t before = 0;
    std::size_t outside = 0;
    std::size_t unlaunched = 0;
    std::size_t nearest = 0;
    all.reserve(events_.communications.size());
    for (const auto& kernel : events_.communications) {
      run(kernel);
      const auto launch = kernel.launch();
      if (kernel.known == KernelCall::none && !events_.of_host) ++unlaunched;
      if (kernel.known == KernelCall::nearest) ++nearest;
      if (kernel.known == KernelCall::earlier) ++before;
      if (launch) all.push_back({&kernel, events_.launch(kernel.correlation), *launch});
    }
    std::ranges::stable_sort(all, {}, &Launched::at);
    for (const Launched& one : all) {
      const auto step = result_.step_of(one.at);
      if (!step) ++outside;
      resolve(one, step);
      if (step) runs_[*step + 1].communicates = std::max(runs_[*step + 1].communicates, one.kernel->start);
    }
    if (events_.of_host)
      warn(fmt::format("no kernels communicate: using {} that the host recorded instead, whose durations are unknown",
                       plural(events_.communications.size(), "communication")));
    warn(before, "communication", "launched before the recording: left out");
    warn(outside, "communication", "outside all steps: left out");
    warn(unknown_, "communication", "without a size or kind: left out");
    for (const auto& [count, instead] : {std::pair{unlaunched, "their start"}, {nearest, "the launch before each"}})
      if (count > 0)
        warn(
            fmt::format("the launch of {} is not in it; {} is taken instead", plural(count, "communication"), instead));
    std::map<std::string_view, std::size_t> instead;
    for (const KinetoTransfer& transfer : result_.transfers)
      if (transfer.instead != nullptr) ++instead[transfer.instead];
    for (const auto& [what, count] : instead) warn(fmt::format("{}: {}", what, count));
    if (!events_.of_host) warn(without_kernels(), "communication", "of the host without a kernel: left out");
  }

  /// Finds what a kernel communicates, and adds it to `step`. Marks the host's records of the kernel as used, even if
  /// the kernel is in no step.
  void resolve(const Launched& one, std::optional<std::size_t> step) {
    const std::size_t first = result_.transfers.size();
    std::optional<KinetoTransfer> transfer = complete(*one.kernel, one.kernel->details);
    Thread nobody;
    Thread& thread = one.call != nullptr && one.call->thread < threads_.size() ? threads_[one.call->thread] : nobody;
    const KinetoEvents::Around* description = nullptr;
    bool goes_on = false;  // true for a further kernel of the last operation
    if (&thread != &nobody) {
      auto& around = events_.around[one.call->thread];
      const auto after = std::upper_bound(around.begin(), around.end(), one.at,
                                          [](Nanos when, const auto& each) { return when < each.start; });
      // Visits the records around the launch from the innermost to the outermost. The innermost record is the last one
      // that began before the launch.
      auto at = after;
      for (int looked = 0; looked < kLooked && at != around.begin(); ++looked) {
        --at;
        if (at->end() < one.at) continue;
        at->used = true;
        if (transfer && description != nullptr) continue;
        const auto found = complete(*one.kernel, at->details);
        if (!found) continue;
        description = &*at;
        if (!transfer) transfer = found;
      }
      const auto next = around.begin() + static_cast<std::ptrdiff_t>(thread.next);
      if (transfer && description == nullptr) {
        // No record surrounds the launch, because the operation ended before the launch. Marks the last unused
        // operation before the launch as used.
        at = after;
        for (int looked = 0; looked < kLooked && at > next; ++looked)
          if ((--at)->operation && !std::exchange(at->used, true)) break;
      }
      if (transfer)
        goes_on = description != nullptr && description == thread.description;
      else if (!take_group(*one.kernel, next, after))
        goes_on = thread.group && next == after;
      thread.next = std::max(thread.next, static_cast<std::size_t>(after - around.begin()));
    }
    if (goes_on && thread.last < result_.communications.size() &&
        result_.communications[thread.last].kernel->stream == one.kernel->stream) {
      KinetoSteps::Communication& last = result_.communications[thread.last];
      last.length = std::max(last.end(), one.kernel->end()) - last.start;
      return;
    }
    if (transfer) result_.transfers.push_back(*transfer);
    const std::size_t count = result_.transfers.size() - first;
    thread.description = step ? description : nullptr;
    thread.group = step && !transfer && count > 0;
    if (!step) return result_.transfers.resize(first);
    if (count == 0) {
      ++unknown_;
      return;
    }
    KinetoSteps::Communication communication;
    static_cast<KinetoSpan&>(communication) = *one.kernel;
    communication.kernel = one.kernel;
    communication.launch = one.at;
    communication.step = *step;
    communication.first = first;
    communication.count = count;
    thread.last = result_.communications.size();
    result_.communications.push_back(communication);
  }

  using Place = std::vector<KinetoEvents::Around>::iterator;

  /// Adds the transfers of the records from `next` to `after` that are launched together. Returns false if there are
  /// none.
  bool take_group(const KinetoEvents::Communication& kernel, Place next, Place after) {
    auto mark = after;
    while (mark != next && !std::prev(mark)->coalesced) --mark;
    // Without the mark "nccl:coalesced", adds only messages, because PyTorch before 2.0 launches groups of messages
    // without a mark.
    const bool marked = mark != next;
    if (marked) after = std::prev(mark);
    if (!marked && kernel.details.kind != Kind::unknown) return false;
    bool operations = false;
    for (auto at = next; at != after; ++at) operations |= at->operation && !at->used && complete(kernel, at->details);
    const std::size_t first = result_.transfers.size();
    for (auto at = next; at != after; ++at) {
      if (at->used || at->operation != operations) continue;
      const auto transfer = complete(kernel, at->details);
      if (!transfer || (!marked && !is_message(transfer->kind))) continue;
      result_.transfers.push_back(*transfer);
      at->used = true;
    }
    return result_.transfers.size() > first;
  }

  /// Returns the transfer of a kernel according to `details`. Returns an empty value if they are not sufficient.
  [[nodiscard]] std::optional<KinetoTransfer> complete(const KinetoEvents::Communication& kernel,
                                                       const KinetoDetails& details) const {
    const KinetoDetails& kind = details.kind != Kind::unknown ? details : kernel.details;
    KinetoTransfer result;
    result.kind = kind.kind;
    result.collective = kind.collective;
    result.instead = kind.instead;
    result.workers = details.workers > 0 ? details.workers : std::max(events_.workers, 1U);
    result.group = details.group >= 0 ? details.group : kernel.details.group;
    result.peer = details.peer;
    result.peer_of_group = details.peer_of_group;
    if (result.kind == Kind::unknown) return std::nullopt;
    if (result.kind == Kind::barrier) return result;
    if (result.kind == Kind::receive) {
      // The size is that of the received data. A message without a size is kept, because its sender may state the size.
      result.size = details.out.value_or(details.in.value_or(0));
      return result;
    }
    // The size of an all-gather is the total of all ranks, which is the size of its output.
    if (result.collective == Collective::all_gather) {
      if (!details.in && !details.out) return std::nullopt;
      const Uint128 size = details.out ? Uint128{*details.out} : Uint128{*details.in} * result.workers;
      result.size = static_cast<Bytes>(std::min<Uint128>(size, kMaxKinetoBytes));
      return result;
    }
    if (!details.in) return std::nullopt;
    result.size = *details.in;
    // For a gather, the output has the total size.
    if (kind.instead != nullptr) result.size = std::max(result.size, details.out.value_or(0));
    return result;
  }

  /// Returns the number of communications that the host recorded in a step and that no kernel used.
  [[nodiscard]] std::size_t without_kernels() const {
    bool operations = false;
    const KinetoEvents::Communication nothing;
    const auto sends = [&](const KinetoEvents::Around& around) {
      const auto transfer = complete(nothing, around.details);
      return transfer && transfer->kind != Kind::receive && transfer->size > 0;
    };
    for (const auto& all : events_.around)
      for (const auto& around : all) operations |= around.operation && sends(around);
    std::size_t count = 0;
    for (const auto& all : events_.around)
      for (const auto& around : all)
        if (around.operation == operations && !around.used && sends(around) && result_.step_of(around.start)) ++count;
    return count;
  }

  void find_bounds() {
    auto& steps = result_.steps;
    Nanos ended;         // end of the kernels launched before the step
    Nanos communicates;  // start of the last communication launched before the step
    Nanos next = Nanos::never();
    Nanos behind;  // time from the end of the host's last step to the end of the last kernel
    for (std::size_t i = runs_.size(); i-- > 0;) {
      next = runs_[i].begin = std::min(runs_[i].begin, next);
      behind = std::max(behind, runs_[i].end - steps.back().end());
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      ended = std::max(ended, runs_[i].end);
      communicates = std::max(communicates, runs_[i].communicates);
      const Nanos host = steps[i].start;
      Nanos& start = steps[i].start;
      const Nanos end = steps[i].end();
      start = std::max({host, std::min(ended, runs_[i + 1].begin), communicates});
      if (i == 0) {
        start = std::min(start, host + behind);
      } else {
        start = std::max(start, steps[i - 1].start);
        KinetoSpan& before = steps[i - 1];
        before.length = std::min(start, std::max(before.end(), ended)) - before.start;
      }
      steps[i].length = std::max(end - start, Nanos(0));
    }
    // Assumes that the last step overlaps a next step by as much as the previous step overlaps the last step.
    const Nanos beside = steps.size() > 1 ? std::max(ended - steps.back().start, Nanos(0)) : Nanos(0);
    ended = std::max(ended, runs_.back().end) - beside;
    steps.back().length =
        std::max({steps.back().end(), ended, communicates, runs_.back().communicates}) - steps.back().start;
  }

  /// Leaves out the last steps of the host if the GPU ran none of their kernels before the recording ended.
  void leave_out_steps() {
    auto& steps = result_.steps;
    Nanos launched;  // time of the host's last launch
    for (const auto& launch : events_.launches) launched = std::max(launched, launch.start);
    std::size_t none = 0;
    while (steps.size() > 1 && runs_[steps.size()].end.count == 0 && steps.back().start > steps.back().launched &&
           launched >= steps.back().launched) {
      result_.launched_until = steps.back().launched - Nanos(1);
      steps.pop_back();
      ++none;
    }
    warn(none, "step", "that the GPU had not begun when the recording ended: left out");
  }

  KinetoEvents& events_;
  KinetoSteps result_;
  std::vector<Run> runs_;  ///< first for kernels launched before the first step, then for each step
  std::vector<Thread> threads_;
  std::size_t unknown_ = 0;
};

}  // namespace

std::optional<std::size_t> KinetoSteps::step_of(Nanos launch) const {
  const auto after = std::upper_bound(steps.begin(), steps.end(), launch,
                                      [](Nanos when, const Step& step) { return when < step.launched; });
  if (after == steps.begin() || (after == steps.end() && launch > launched_until)) return std::nullopt;
  return static_cast<std::size_t>(after - steps.begin()) - 1;
}

KinetoSteps find_kineto_steps(KinetoEvents& events, const KinetoKeep& keep) { return StepFinder(events, keep).find(); }

}  // namespace mltcp::workload
