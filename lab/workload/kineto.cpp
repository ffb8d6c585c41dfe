// Reader of PyTorch profiler traces (see kineto.h).
#include "mltcp/lab/workload/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/kineto_steps.h"

namespace mltcp::workload {
namespace {

constexpr TextFile kKinetoFile{"a trace of PyTorch's profiler", std::size_t{1} << 30};
constexpr Uint128 kMostSentBytes = std::uint64_t{1} << 62;

using Kind = KinetoDetails::Kind;

/// The times at which the GPU computes, apart from each other, so that they can be added up.
class Computation {
 public:
  explicit Computation(const std::vector<KinetoEvents::Kernel>& kernels) {
    for (const auto& kernel : kernels) {
      if (kernel.copies) continue;
      if (!joined_.empty() && kernel.start <= joined_.back().end())
        joined_.back().length = std::max(joined_.back().end(), kernel.end()) - joined_.back().start;
      else
        joined_.push_back({kernel.start, kernel.length});
    }
  }

  /// Part of the time in which the GPU computes, 0 to 1.
  [[nodiscard]] double share(Nanos begin, Nanos end) const {
    Nanos sum;
    auto at = std::partition_point(joined_.begin(), joined_.end(),
                                   [&](const KinetoSpan& span) { return span.end() <= begin; });
    for (; at != joined_.end() && at->start < end; ++at) sum += std::min(at->end(), end) - std::max(at->start, begin);
    return begin < end ? static_cast<double>(sum.count) / static_cast<double>((end - begin).count) : 0;
  }

 private:
  std::vector<KinetoSpan> joined_;
};

KinetoTrace make_trace(KinetoEvents events) {
  if (!events.unknown_type.empty())
    throw InputError(one_line(fmt::format("{}: {}; leave out what communicates it", events.file, events.unknown_type)));
  if (events.steps.empty())
    throw InputError(
        one_line(fmt::format("{}: there is no \"ProfilerStep#\"; call step() of torch.profiler.profile once in each "
                             "iteration",
                             events.file)));
  const KinetoSteps found = find_kineto_steps(events);
  KinetoTrace trace;
  trace.file = events.file;
  trace.rank = events.rank.value_or(0);
  trace.workers = std::max(events.workers, 1U);
  for (const std::string& warning : found.warnings)
    trace.warnings.push_back(one_line(fmt::format("{}: {}", trace.file, warning)));
  auto& steps = trace.steps;
  for (const auto& step : found.steps)
    steps.push_back({step.name, step.start - found.steps.front().start, step.length, {}});
  const Computation computation(events.kernels);
  std::vector<double> shares;  // of the steps; -1: not known yet
  shares.resize(steps.size(), -1);
  for (const auto& one : found.communications) {
    const KinetoSpan& step = found.steps[one.step];
    double& all = shares[one.step];
    if (all < 0) all = computation.share(step.start, step.end());
    const double share = computation.share(one.start, one.end());
    for (std::size_t i = one.first; i < one.first + one.count; ++i) {
      const KinetoTransfer& transfer = found.transfers[i];
      KinetoCommunication communication{std::max(one.start - step.start, Nanos(0)),
                                        one.length,
                                        transfer.collective,
                                        transfer.size,
                                        transfer.workers,
                                        share > 0 && share * 2 >= all};
      if (transfer.kind == Kind::send) {
        // What a send sends is what a worker sends that forwards a broadcast.
        communication.collective = Collective::broadcast;
        communication.workers = 2;
      }
      if (transfer.kind == Kind::receive) communication.size = 0;
      steps[one.step].communications.push_back(communication);
    }
  }
  for (KinetoStep& step : steps)
    std::stable_sort(step.communications.begin(), step.communications.end(),
                     [](const KinetoCommunication& a, const KinetoCommunication& b) { return a.start < b.start; });
  return trace;
}

}  // namespace

const KinetoStep& KinetoTrace::typical() const {
  std::vector<const KinetoStep*> order;
  for (const KinetoStep& step : steps) order.push_back(&step);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(), [](const KinetoStep* a, const KinetoStep* b) {
    return std::pair(a->length, a->start) < std::pair(b->length, b->start);
  });
  return **middle;
}

bool is_kineto(const std::filesystem::path& path) { return path.extension() == ".json"; }

KinetoTrace load_kineto(const std::filesystem::path& path) {
  const std::string file = path.string();
  return parse_kineto(read_text_file(path, file, kKinetoFile), file);
}

KinetoTrace parse_kineto(std::string_view text, const std::string& file) {
  return make_trace(read_kineto_events(
      [&](char* to, std::size_t most) {
        const std::size_t length = text.copy(to, most);
        text.remove_prefix(length);
        return length;
      },
      file));
}

std::optional<Bytes> sent_bytes(const KinetoCommunication& communication, const MappingOptions& options) {
  const auto sent = bytes_sent(communication.collective, communication.size,
                               options.workers > 0 ? options.workers : communication.workers);
  if (!sent || *sent == 0) return sent;
  const long double scaled =
      std::round(static_cast<long double>(*sent) * static_cast<long double>(options.bytes_scale));
  if (scaled > static_cast<long double>(kMostSentBytes)) return std::nullopt;
  return std::max(static_cast<Bytes>(scaled), Bytes{1});
}

std::vector<Phase> to_phases(const KinetoTrace& trace, const KinetoStep& step, const MappingOptions& options) {
  check(options, trace.file);
  std::vector<Phase> phases;
  Nanos unscaled;  // compute time so far: scaled as a sum, so that short pieces don't vanish
  Nanos scaled;
  const auto compute = [&](Nanos until, Nanos from) {
    if (until <= from) return;
    unscaled += until - from;
    const long double sum =
        std::round(static_cast<long double>(unscaled.count) * static_cast<long double>(options.compute_scale));
    if (sum > static_cast<long double>(kMostSentBytes))
      throw InputError(
          fmt::format("{}: the compute times of a step exceed 146 years; lower compute_scale", trace.file));
    Phase phase;
    phase.compute = Nanos(static_cast<std::int64_t>(sum)) - scaled;
    if (phase.compute.count == 0) return;
    scaled += phase.compute;
    if (!phases.empty() && phases.back().kind == Phase::Kind::compute)
      phases.back().compute += phase.compute;
    else
      phases.push_back(std::move(phase));
  };
  Nanos now;
  Uint128 sum = 0;
  for (const KinetoCommunication& communication : step.communications) {
    compute(communication.start, now);
    now = std::max(now, communication.start + (communication.overlaps ? Nanos(0) : communication.length));
    Phase phase;
    phase.kind = Phase::Kind::communicate;
    const std::optional<Bytes> sent = sent_bytes(communication, options);
    if (!sent || (sum += *sent) > kMostSentBytes)
      throw InputError(fmt::format("{}: the bytes of a step do not fit into 62 bits; lower bytes_scale", trace.file));
    phase.bytes = *sent;
    if (phase.bytes == 0) continue;
    phase.overlap = communication.overlaps;
    phase.label = fmt::format("{} of {}", name(communication.collective), rounded(communication.size));
    phases.push_back(std::move(phase));
  }
  compute(step.length, now);
  return phases;
}

Job to_job(const KinetoTrace& trace, const std::string& job_name, const MappingOptions& options) {
  Job job;
  job.name = job_name;
  job.phases = to_phases(trace, trace.typical(), options);
  if (job.bytes_per_iteration() == 0)
    throw InputError(
        one_line(fmt::format("{}: {} sends nothing; give a trace of several workers with their "
                             "communications in it",
                             trace.file, trace.typical().name)));
  return job;
}

}  // namespace mltcp::workload
