// Results for tests of reports, from a fluid model of two jobs on one link, under fair sharing and MLTCP.
#pragma once

#include "mltcp/lab/experiment/report/report.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "../../message_of.h"
#include "mltcp/lab/experiment/report/report_comparison.h"
#include "mltcp/lab/experiment/report/report_file.h"
#include "mltcp/lab/experiment/report/report_picture.h"
#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment::testing_results {

using PolicyRun = Run;  // inside a test, `Run` names a member of testing::Test

inline constexpr std::int64_t kBin = 2'000'000;
inline constexpr std::int64_t kCompute = 150'000'000;
inline constexpr Bytes kBurst = 13'750'000;  // 110 ms at 1 Gbps
inline constexpr std::uint64_t kRate = 1'000'000'000;

// Simulates in steps of one bin. Each sending job gets a share of the link in proportion to its gain.
inline Run fluid_run(const std::string& policy, std::size_t iterations) {
  struct Sender {
    std::int64_t started = 0;
    std::int64_t sends_at = 0;
    double sent = 0;
  };
  Run run;
  run.policy = policy;
  run.cc = "reno";
  run.datapath = "sim";
  run.seed = 1;
  run.bottleneck.rate = Rate(kRate);
  run.bottleneck.usage.bin = Nanos(kBin);
  run.bottleneck.utilization = 0.81;
  run.bottleneck.ecn_marked_packets = 1'234'567;
  std::array<Sender, 2> senders{Sender{0, kCompute, 0}, Sender{6'000'000, 6'000'000 + kCompute, 0}};
  for (const char* name : {"vgg19-a", "vgg19-b"}) {
    JobResult job;
    job.name = name;
    job.isolated = Nanos(kCompute + 110'000'000);
    job.compute = Nanos(kCompute);
    job.bytes_per_iteration = kBurst;
    run.jobs.push_back(job);
  }
  const double capacity = static_cast<double>(kRate) / 8e9 * kBin;
  for (std::int64_t now = 0; run.jobs[0].iterations.size() < iterations || run.jobs[1].iterations.size() < iterations;
       now += kBin) {
    std::array<double, 2> gain{};
    for (std::size_t j = 0; j < 2; ++j) {
      const bool sends = now >= senders[j].sends_at && run.jobs[j].iterations.size() < iterations;
      if (sends) gain[j] = policy == "mltcp" ? 0.25 + 1.75 * senders[j].sent / static_cast<double>(kBurst) : 1.0;
    }
    for (std::size_t j = 0; j < 2; ++j) {
      const double bytes = gain[j] > 0 ? capacity * gain[j] / (gain[0] + gain[1]) : 0;
      run.bottleneck.usage.jobs[run.jobs[j].name].push_back(static_cast<Bytes>(bytes));
      senders[j].sent += bytes;
      if (senders[j].sent >= static_cast<double>(kBurst) - 1) {
        run.jobs[j].starts.emplace_back(senders[j].started);
        run.jobs[j].iterations.emplace_back(now + kBin - senders[j].started);
        senders[j] = {now + kBin, now + kBin + kCompute, 0};
      }
    }
    run.duration = Nanos(now + kBin);
  }
  summarize(run);
  return run;
}

inline Results two_jobs() {
  Results results;
  results.experiment = "two-vgg19";
  results.runs = {fluid_run("fair", 40), fluid_run("mltcp", 40)};
  return results;
}

inline const std::string& two_jobs_page() {
  static const std::string page = render_report(two_jobs());
  return page;
}

// Returns the text of a page without markup, as a reader sees it.
inline std::string visible(const std::string& page) {
  // This function avoids std::regex, whose recursion overflows the stack on a style sheet, at least with a sanitizer.
  std::string text;
  bool in_tag = false;
  bool in_style = false;
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (page.compare(i, 7, "<script") == 0) break;
    if (page.compare(i, 6, "<style") == 0) in_style = true;
    if (page.compare(i, 8, "</style>") == 0) in_style = false;
    if (page[i] == '<') in_tag = true;
    if (!in_tag && !in_style) text += page[i];
    if (page[i] == '>') in_tag = false;
  }
  return text;
}

// This is a function and not a matcher, because a failing matcher would print a page of 100 kB.
inline bool has(const std::string& page, const std::string& text) { return page.find(text) != std::string::npos; }

inline std::string data_of(const std::string& page) {
  const std::string open = "id=\"report-data\">";
  const auto from = page.find(open) + open.size();
  return page.substr(from, page.find("</script>", from) - from);
}

inline Results two_policies(double mltcp_by_fair) {
  Results results = two_jobs();
  results.runs[1] = results.runs[0];
  results.runs[1].policy = "mltcp";
  for (JobResult& job : results.runs[1].jobs)
    job.mean = Nanos(static_cast<std::int64_t>(static_cast<double>(job.mean.count) * mltcp_by_fair));
  return results;
}

inline Results many_jobs(std::size_t jobs) {
  Results results = two_jobs();
  for (PolicyRun& run : results.runs) {
    const JobResult model = run.jobs[0];
    const std::vector<Bytes> bins = run.bottleneck.usage.jobs.at("vgg19-a");
    run.jobs.clear();
    run.bottleneck.usage.jobs.clear();
    for (std::size_t j = 0; j < jobs; ++j) {
      run.jobs.push_back(model);
      run.jobs.back().name = "job-" + std::to_string(j);
      run.jobs.back().mean = Nanos(model.mean.count / 1000 * static_cast<std::int64_t>(1000 + j));
      run.bottleneck.usage.jobs[run.jobs.back().name] = bins;
    }
  }
  return results;
}

inline Results on_hosts() {
  Results results = two_jobs();
  for (PolicyRun& run : results.runs) {
    run.datapath = "hosts";
    run.links_unknown = true;
    run.bottleneck = {};
  }
  return results;
}

inline std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Returns the results of `experiment` as `mltcp run` would write them.
inline Results made_of(const std::string& experiment, const std::string& date = "2026-01-31T17:05:09Z") {
  Results results = two_jobs();
  results.provenance =
      Provenance{"0.1.0", std::string(40, 'a'), false, "GNU 12", date, {"mltcp", "run", "e.toml"}, {}, {}};
  results.provenance->files = {{"e.toml", std::string(64, 'f'), experiment.size(), experiment}};
  return results;
}

inline constexpr const char* kExperiment = R"(name = "two"
cc = "reno"
seed = 1
[bottleneck]
rate = "1 Gbps"
buffer = "75 kB"
[[job]]
name = "a<b>"
compute = "150 ms"
[[job]]
name = "b"
flows = 2
)";

}  // namespace mltcp::experiment::testing_results
