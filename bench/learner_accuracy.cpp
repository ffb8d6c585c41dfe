// Measures how soon and how exactly iterations are learned (cc/iteration_learner.h) from traffic like that of real
// jobs.
//
//   learner_accuracy TRACE...      a folder's files count as one row
//
// The typical step of a trace is repeated over a link of 10 Gbps. Congestion lengthens each burst by a random factor,
// uniform from 1 to a maximum. If data is still being sent when the next communication is due, that communication
// waits. Each compute time is multiplied by a normally distributed factor. In the last row, one iteration in 50
// computes ten times as long. The true boundaries are those of the profiler. The program runs in virtual time, with the
// same results for the same seeds. Only the last lines measure real time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/cc/iteration_learner.h"
#include "mltcp/lab/workload/traces/trace_summary.h"

namespace {

using namespace mltcp;

constexpr Rate kLinkRate(10'000'000'000);
constexpr int kIterations = 200;
constexpr std::uint64_t kSeeds = 20;
constexpr Bytes kPacketBytes = 65'536;  // bytes per acknowledgement

struct Scenario {
  double stretch = 1;
  double jitter = 0;
  double stragglers = 0;
};
constexpr Scenario kScenarios[] = {{1, 0, 0}, {2, 0, 0}, {2, 0.01, 0}, {2, 0.05, 0}, {4, 0.05, 0}, {4, 0.05, 0.02}};

struct Communication {
  Nanos compute;  ///< compute time before the communication
  Bytes bytes = 0;
  bool overlaps = false;
};
struct Step {
  std::vector<Communication> communications;
  Nanos compute;  ///< compute time after all communications
};
using Job = std::vector<Step>;

Job job_of(const std::filesystem::path& file) {
  Step step;
  const workload::TraceView view;
  const workload::ExecutionGraph graph = workload::read_traces(std::span(&file, 1), workload::options_of(view));
  for (const workload::Phase& phase : workload::summary_of(graph, view).phases) {
    if (phase.kind == workload::Phase::Kind::compute)
      step.compute += phase.compute;
    else
      step.communications.push_back({std::exchange(step.compute, Nanos(0)), phase.bytes, phase.overlap});
  }
  return {std::move(step)};
}

struct Sums {
  int runs = 0;
  int never_known = 0;
  double learned_after = 0;  ///< sum over runs: iterations until a correct size was known
  int learned_after_worst = 0;
  double wrong_bytes = 0;  ///< bytes delivered while the known size was wrong by more than 5%
  double all_bytes = 0;
  double known_bytes = 0;  ///< bytes delivered while a size was known, from the first correct size on
  double bytes_since_known = 0;
  double ratio_error = 0;  ///< sum of the errors of the bytes ratio, each multiplied by bytes
  int known_at_end = 0;
  double size_error = 0;  ///< sum of the relative errors of the size in the runs counted by known_at_end
  std::uint64_t boundaries = 0;
  std::uint64_t right = 0;
};

class Run {
 public:
  Run(const Job& job, const Scenario& scenario, std::uint64_t seed, Sums& sums)
      : job_(job), scenario_(scenario), sums_(sums), random_(Random::stream(seed, 1)) {}

  void go() {
    for (iteration_ = 0; iteration_ < kIterations; ++iteration_) {
      const Step& step = job_[static_cast<std::size_t>(iteration_) % job_.size()];
      size_ = 0;
      for (const Communication& communication : step.communications) size_ += communication.bytes;
      iterate(step);
    }
    ++sums_.runs;
    if (known_from_ < 0) {
      ++sums_.never_known;
      return;
    }
    sums_.learned_after += known_from_;
    sums_.learned_after_worst = std::max(sums_.learned_after_worst, known_from_);
    // A true boundary counts as found if a learned boundary is at most 1% of an iteration's bytes away.
    for (const Bytes truth : true_begins_) {
      const bool found = std::any_of(begins_.begin(), begins_.end(), [&](Bytes begin) {
        return (begin > truth ? begin - truth : truth - begin) <= size_ / 100;
      });
      ++sums_.boundaries;
      sums_.right += found ? 1U : 0U;
    }
    if (!learner_.known()) return;
    ++sums_.known_at_end;
    sums_.size_error += std::abs(static_cast<double>(learner_.bytes_per_iteration()) / static_cast<double>(size_) - 1);
  }

 private:
  Nanos jittered(Nanos compute) {
    const double factor = std::max(0.05, 1 + scenario_.jitter * random_.normal());
    return Nanos(static_cast<std::int64_t>(static_cast<double>(compute.count) * factor));
  }

  void iterate(const Step& step) {
    const std::int64_t slower = random_.chance(scenario_.stragglers) ? 10 : 1;
    true_begin_ = position_;
    if (known_from_ >= 0) true_begins_.push_back(position_);
    for (const Communication& communication : step.communications) {
      now_ += jittered(communication.compute * slower);
      const Nanos begin = std::max(now_, link_free_);
      if (begin > link_free_ && learner_.on_send(begin)) begins_.push_back(position_ - learner_.bytes_sent());
      const double stretch = 1 + (scenario_.stretch - 1) * random_.uniform();
      const double nanos = static_cast<double>(kLinkRate.time_for(communication.bytes).count) * stretch;
      for (Bytes sent = 0; sent < communication.bytes;) {
        const Bytes bytes = std::min(kPacketBytes, communication.bytes - sent);
        sent += bytes;
        const double part = static_cast<double>(sent) / static_cast<double>(communication.bytes);
        deliver(begin + Nanos(static_cast<std::int64_t>(nanos * part)), bytes);
      }
      link_free_ = begin + Nanos(static_cast<std::int64_t>(nanos));
      if (!communication.overlaps) now_ = link_free_;
    }
    now_ = std::max(now_, link_free_) + jittered(step.compute * slower);
  }

  void deliver(Nanos now, Bytes bytes) {
    learner_.on_delivered(now, bytes);
    position_ += bytes;
    const auto weight = static_cast<double>(bytes);
    sums_.all_bytes += weight;
    const double off = std::abs(static_cast<double>(learner_.bytes_per_iteration()) - static_cast<double>(size_)) /
                       static_cast<double>(size_);
    if (learner_.known()) {
      if (off > 0.05) sums_.wrong_bytes += weight;
      if (known_from_ < 0 && off <= 0.01) known_from_ = iteration_;
    }
    if (known_from_ < 0) return;
    sums_.bytes_since_known += weight;
    if (!learner_.known()) return;
    sums_.known_bytes += weight;
    const double truth = static_cast<double>(position_ - true_begin_) / static_cast<double>(size_);
    sums_.ratio_error += weight * std::abs(learner_.bytes_ratio() - truth);
  }

  const Job& job_;
  const Scenario& scenario_;
  Sums& sums_;
  Random random_;
  cc::IterationLearner learner_;
  Nanos now_{1'000'000};
  Nanos link_free_;
  Bytes position_ = 0;
  Bytes true_begin_ = 0;
  Bytes size_ = 0;
  int iteration_ = 0;
  int known_from_ = -1;
  std::vector<Bytes> begins_;
  std::vector<Bytes> true_begins_;
};

void measure(const std::string& name, const std::vector<Job>& jobs) {
  for (const Scenario& scenario : kScenarios) {
    Sums sums;
    for (const Job& job : jobs)
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) Run(job, scenario, seed, sums).go();
    const double learned = std::max(1, sums.runs - sums.never_known);
    fmt::print(
        "| {} | {} | {:.0f}% | {:.0f}% | {} of {} | {:.1f} ({}) | {:.5f}% | {:.2f}% | {:.2f}% | {:.4f} | {:.3f}% |\n",
        name, scenario.stretch > 1 ? fmt::format("1 to {:.0f}", scenario.stretch) : "1", scenario.jitter * 100,
        scenario.stragglers * 100, sums.runs - sums.never_known, sums.runs, sums.learned_after / learned,
        sums.learned_after_worst, 100 * sums.size_error / std::max(1, sums.known_at_end),
        100 * static_cast<double>(sums.right) / static_cast<double>(std::max<std::uint64_t>(sums.boundaries, 1)),
        100 * sums.known_bytes / std::max(sums.bytes_since_known, 1.0),
        sums.ratio_error / std::max(sums.known_bytes, 1.0), 100 * sums.wrong_bytes / sums.all_bytes);
  }
}

/// Returns the shortest time of several rounds, because other load on the machine can only make a round slower.
template <typename F>
double nanos_per(int times, F&& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 7; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) work(i);
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  return best / times;
}

void measure_cost() {
  constexpr int times = 200'000;
  cc::IterationLearner learner;
  Nanos now(1);
  for (int i = 0; i < 5; ++i) {
    learner.on_send(now += Nanos(100'000'000));
    learner.on_delivered(now += Nanos(10'000'000), 1'000'000'000'000);
  }
  learner.on_send(now += Nanos(100'000'000));
  double sum = 0;
  const double counted = nanos_per(times * 50, [&](int) {
    learner.on_delivered(now += Nanos(1000), 1448);
    sum += learner.known() ? 1 : 0;
  });
  const double delivered = nanos_per(times * 50, [&](int) {
    learner.on_delivered(now += Nanos(1000), 1448);
    sum += learner.bytes_ratio();
  });
  learner = {};
  const double known = nanos_per(times, [&](int) {
    learner.on_send(now += Nanos(100'000'000));
    learner.on_delivered(now += Nanos(10'000'000), 10'000'000);
  });
  learner = {};
  Random random(1);
  const double unknown = nanos_per(times / 10, [&](int) {
    learner.on_send(now += Nanos(static_cast<std::int64_t>(-1e7 * std::log(1 - random.uniform()))));
    learner.on_delivered(now += Nanos(1'000'000), 1 + static_cast<Bytes>(-1e6 * std::log(1 - random.uniform())));
  });
  fmt::print(
      "\ncost: {:.1f} ns per acknowledgement, {:.1f} ns with its bytes_ratio; {:.0f} ns per burst of a job that is "
      "known, {:.0f} ns per burst of random traffic; {} bytes per job{}\n",
      counted, delivered, known, unknown, sizeof(cc::IterationLearner), sum < 1 ? "?" : "");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw InputError("usage: learner_accuracy TRACE...");
    fmt::print(
        "| trace | bursts take | jitter | stragglers | learned | after iterations: mean (worst) | error of the size | "
        "boundaries found | known from then on | error of bytes_ratio | known wrongly |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 1; i < argc; ++i) {
      const std::filesystem::path path = argv[i];
      std::vector<std::filesystem::path> files;
      if (std::filesystem::is_directory(path)) {
        for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
        std::sort(files.begin(), files.end());
      } else {
        files.push_back(path);
      }
      std::vector<Job> jobs;
      for (const auto& file : files) jobs.push_back(job_of(file));
      measure(path.has_stem() ? path.stem().string() : path.parent_path().stem().string(), jobs);
    }
    measure_cost();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "learner_accuracy: {}\n", error.what());
    return 2;
  }
}
