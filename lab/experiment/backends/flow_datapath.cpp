// Datapath flow: experiments at flow level (see flow_level.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/backends/link_results.h"
#include "mltcp/lab/experiment/backends/live_run.h"
#include "mltcp/lab/experiment/backends/packet_run.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/workload/worker_hosts.h"

namespace mltcp::experiment {
namespace {

constexpr std::size_t kUsageBins = 16384;
constexpr std::size_t kTopologyUsageBins = 4096;  // number of bins per link; small because a topology has many links

void refuse_what_flows_lack(const Experiment& experiment, const RunPlan& plan) {
  const auto refuse = [](std::string_view what, std::string_view cure) {
    throw InputError(fmt::format("datapath flow has no {}; {}, or use datapath sim", what, cure));
  };
  if (policy_named(plan.policy).priorities)
    refuse("priority queues", fmt::format("leave policy \"{}\" out", plan.policy));
  if (policy_named(plan.policy).turns) refuse(kWhatTurnsNeed, fmt::format("leave policy \"{}\" out", plan.policy));
  if (experiment.bottleneck.faults.any()) refuse("packets for faults to act on", "leave bottleneck.faults out");
  if (experiment.mltcp.scale_decrease) refuse("congestion windows to decrease", "leave mltcp.decrease out");
  if (experiment.mltcp.learn_iterations) refuse("packets to learn iterations from", "set mltcp.iterations = \"exact\"");
}

FlowFabric fabric_of(const Experiment& experiment, const RunPlan& plan) {
  if (experiment.topology) return flow_fabric(*experiment.topology);
  fabric::DumbbellConfig dumbbell = network_of(experiment);
  dumbbell.pairs = static_cast<std::uint32_t>(plan.jobs.size());
  return flow_fabric(dumbbell);
}

class FlowRun final : public LiveRun {
 public:
  FlowRun(const Experiment& experiment, const RunPlan& plan)
      : plan_(plan), cluster_(fabric_of(experiment, plan)), unfinished_(plan.jobs.size()) {
    const std::vector<JobSpec> specs = job_specs(experiment, plan, false, false);
    for (const JobSpec& spec : specs) jobs_.push_back(&cluster_.job(cluster_.add_job(spec)));
    patience_ = patience_with(experiment, specs);
    if (plan.metered) meter_links(experiment);
    cluster_.on_iteration([this](FlowLevelCluster::JobId /*job*/, const FlowLevelCluster::Iteration& iteration) {
      if (iteration.last) --unfinished_;
      if (tell_) tell_();
    });
  }

  [[nodiscard]] std::span<RunningJob* const> jobs() const override { return jobs_; }
  void connect() override {}
  Nanos choose_epoch() override { return Nanos(0); }
  void record(SeriesRecorder& recorder, Nanos /*epoch*/) override {
    cluster_.record(recorder);
    recorded_ = true;
  }
  void start(Nanos /*epoch*/) override {}  // jobs already have their start times
  bool run(Nanos until) override {
    return cluster_.run(until, [this] {
      on_event();
      return unfinished_ == 0;
    });
  }
  [[nodiscard]] Nanos now() const override { return cluster_.now(); }
  [[nodiscard]] Nanos patience() const override { return patience_; }
  bool reports_progress(std::function<void()> tell) override {
    tell_ = std::move(tell);
    return true;
  }

  std::vector<JobNetwork::LinkView> finish(Run& run) override {
    if (recorded_) cluster_.finish_record();
    record_jobs(jobs_, plan_, run);
    const std::vector<FlowFabric::Link>& links = cluster_.fabric().links;
    configs_.resize(links.size());
    std::vector<JobNetwork::LinkView> views;
    std::vector<Carried> carried;
    for (std::uint32_t link = 0; link < links.size(); ++link) {
      configs_[link].rate = links[link].rate;
      const auto meter = meters_.find(link);
      views.push_back(
          {links[link].name, &configs_[link], &no_counters_, meter == meters_.end() ? nullptr : &meter->second});
      carried.push_back({static_cast<Bytes>(std::llround(cluster_.use(link).wire_bytes)), cluster_.jobs_on(link)});
    }
    const auto contend = [&](std::size_t link, auto& result) {
      const sim::FlowNetwork::LinkUse use = cluster_.use(static_cast<std::uint32_t>(link));
      result.contended = use.contended;
      result.contended_bytes = static_cast<Bytes>(std::llround(use.contended_wire_bytes));
    };
    contend(record_links(views, Nanos(0), names_of(plan_), run, carried), run.bottleneck);
    for (std::size_t link = 0; link < run.links.size(); ++link) contend(link, run.links[link]);
    return views;
  }

 private:
  /// For every link that several jobs share, records over time how much each job uses the link. If no link is shared,
  /// records all used links.
  void meter_links(const Experiment& experiment) {
    const auto used_by = [&](std::size_t min) {
      std::vector<std::uint32_t> found;
      for (std::uint32_t link = 0; link < cluster_.fabric().links.size(); ++link)
        if (cluster_.jobs_on(link) >= min) found.push_back(link);
      return found;
    };
    std::vector<std::uint32_t> metered = used_by(2);
    if (metered.empty()) metered = used_by(1);
    const Nanos usual = experiment.topology ? Nanos(100'000) : Nanos(1'000'000);
    const Nanos bin = plan_.usage_bin.count > 0 ? plan_.usage_bin : usual;
    for (const std::uint32_t link : metered) {
      const auto at = meters_.try_emplace(link, bin, experiment.topology ? kTopologyUsageBins : kUsageBins).first;
      cluster_.meter(link, &at->second);
    }
  }

  const RunPlan& plan_;
  FlowLevelCluster cluster_;
  std::size_t unfinished_;
  Nanos patience_;
  std::vector<RunningJob*> jobs_;
  std::map<std::uint32_t, fabric::UsageMeter> meters_;
  std::vector<fabric::LinkConfig> configs_;
  const fabric::LinkCounters no_counters_;
  std::function<void()> tell_;
  bool recorded_ = false;
};

class FlowDatapath final : public Datapath {
 public:
  std::unique_ptr<LiveRun> prepare(const Experiment& experiment, const RunPlan& plan) override {
    refuse_what_flows_lack(experiment, plan);
    return std::make_unique<FlowRun>(experiment, plan);
  }
  [[nodiscard]] const DatapathKind& kind() const override { return datapath_kind("flow"); }
  [[nodiscard]] bool real_payload() const override { return false; }
  [[nodiscard]] std::string description() const override { return "virtual time, flows instead of packets"; }
};

}  // namespace

std::unique_ptr<Datapath> make_flow_datapath() { return std::make_unique<FlowDatapath>(); }

std::vector<std::string> warnings_at_flow_level(const Experiment& experiment) {
  const auto& policies = experiment.policies;
  if (std::ranges::find(policies, "mltcp") == policies.end()) return {};
  const std::vector<workload::Job>& jobs = experiment.jobs;
  const auto regular = [](const workload::Job& job) {
    return !job.unaware && !job.compute_varies() && job.start_jitter.count == 0;
  };
  const auto together = [&](const workload::Job& a, const workload::Job& b) {
    return regular(a) && regular(b) && a.start == b.start && a.hosts.size() == b.hosts.size() && alike(a, b);
  };
  // The links of each job; a dumbbell has only link 0.
  std::vector<std::set<std::uint32_t>> links(jobs.size(), {0});
  if (experiment.topology) {
    const FlowFabric fabric = flow_fabric(*experiment.topology);
    for (const workload::Placement& placement : workload::place(jobs, experiment.topology->hosts())) {
      JobSpec job;
      job.job = jobs[placement.job];
      job.number = placement.job;
      job.workers = placement.workers;
      job.seed = experiment.seed;
      links[placement.job].clear();
      for (std::uint32_t worker = 0; worker < job.workers.size(); ++worker)
        for (const FlowPath& path : fabric.route(job, worker))
          links[placement.job].insert(path.data.begin(), path.data.end());
    }
  }
  const auto meet = [&](std::size_t a, std::size_t b) {
    return std::ranges::any_of(links[a], [&](std::uint32_t link) { return links[b].contains(link); });
  };
  constexpr std::size_t max = 4;  // maximum number of names in a warning
  std::vector<std::string> warnings;
  std::vector<bool> named(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (named[i]) continue;
    std::vector<std::string> names{in_quotes(jobs[i].name)};
    std::size_t count = 1;
    for (std::size_t j = i + 1; j < jobs.size(); ++j) {
      if (named[j] || !together(jobs[i], jobs[j]) || !meet(i, j)) continue;
      named[j] = true;
      if (++count <= max) names.push_back(in_quotes(jobs[j].name));
    }
    if (count == 1) continue;
    warnings.push_back(
        fmt::format("jobs {}{} are alike and start together: the flow model has no noise to separate them, so they "
                    "collide for ever under policy mltcp; give them different starts, or a jitter or start_jitter",
                    fmt::join(names, ", "), count > max ? fmt::format(" and {} more", count - max) : ""));
  }
  return warnings;
}

}  // namespace mltcp::experiment
