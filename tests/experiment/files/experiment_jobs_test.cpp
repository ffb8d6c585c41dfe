// Tests jobs of experiment files: values are read, written as TOML and read back, and every error names its line and
// key.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "../../message_of.h"
#include "../../same_fields.h"
#include "../../temporary_folder.h"
#include "../../workload/phases.h"
#include "experiment_texts.h"
#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/experiment/files/trace_files.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/job_fields.h"

namespace mltcp::experiment {
namespace {

using namespace testing_texts;

TEST(ExperimentFile, iterations__of_a_job_that_take_too_long_are_named) {
  EXPECT_THAT(refusal(kLink + kJob + "iterations = 900000\ncompute = \"20 s\"\n"),
              error_at(6, "job[1].iterations", "900000 iterations of job[1] take "));
  // The check includes the delays of stragglers.
  EXPECT_THAT(refusal(kLink + kJob + "compute = \"3600 s\"\nstraggler = { probability = 1, factor = 1000 }\n"),
              HasSubstr("50 iterations of job[1] take 2083"));
}

TEST(ExperimentFile, parse__mtu_and_stragglers) {
  const Experiment experiment = parse_experiment(link("mtu = 9000"), "e.toml", {});
  EXPECT_EQ(experiment.mtu, 9000U);
  EXPECT_THAT(refusal(link("mtu = 9001")), error_at(6, "bottleneck.mtu", "out of range"));
  EXPECT_THAT(refusal(link("mtu = 9000\nbuffer = \"9 kB\"")), error_at(7, "bottleneck.buffer", "9014"));
  EXPECT_THAT(refusal(job("straggler = { probability = 0.1 }")), error_at(6, "job[1].straggler.factor", "missing"));
  EXPECT_THAT(refusal(job("straggler = { probability = 2, factor = 2 }")),
              error_at(6, "job[1].straggler.probability", "not a probability"));
  EXPECT_THAT(refusal(job("straggler = { probability = 0.1, factor = 0.5 }")),
              error_at(6, "job[1].straggler.factor", "write 1 to"));
}

TEST(ExperimentFile, parse__pause_and_change) {
  const Experiment experiment =
      parse_experiment(job("compute = \"1 ms\"\npause = { iteration = 20, time = \"130 ms\" }\n"
                           "change = { iteration = 30, compute_scale = 1.5 }"),
                       "e.toml", {});
  EXPECT_EQ(experiment.jobs[0].pause.iteration, 20U);
  EXPECT_EQ(experiment.jobs[0].pause.time, Nanos(130'000'000));
  EXPECT_EQ(experiment.jobs[0].change.iteration, 30U);
  EXPECT_EQ(experiment.jobs[0].change.compute_scale, 1.5);
  EXPECT_TRUE(experiment.jobs[0].compute_varies());
  const std::string compute = "compute = \"1 ms\"\n";
  EXPECT_THAT(refusal(job(compute + "pause = { iteration = 2 }")), error_at(7, "job[1].pause.time", "missing"));
  EXPECT_THAT(refusal(job(compute + "pause = { iteration = -1, time = \"1 ms\" }")),
              error_at(7, "job[1].pause.iteration", "out of range"));
  EXPECT_THAT(refusal(job(compute + "pause = { iteration = 1, tme = \"1 ms\" }")),
              error_at(7, "job[1].pause.tme", "did you mean"));
  EXPECT_THAT(refusal(job(compute + "change = { compute_scale = 2 }")),
              error_at(7, "job[1].change.iteration", "missing"));
  EXPECT_THAT(refusal(job(compute + "change = { iteration = 1, compute_scale = 0 }")),
              error_at(7, "job[1].change.compute_scale", "write"));
  EXPECT_THAT(refusal(job("pause = { iteration = 1, time = \"1 ms\" }")),
              error_at(6, "job[1].pause", "the job computes nothing"));
  // The text that describes the inspected job can be read back.
  EXPECT_EQ(parse_experiment(kLink + workload::to_toml(experiment.jobs[0]), "e.toml", {}).jobs[0].change.compute_scale,
            1.5);
}

TEST(ExperimentFile, parse__jobs_that_need_more_than_the_link_has_are_told_so) {
  const auto warnings = [](const std::string& compute) {
    std::string text = "[bottleneck]\nrate = \"1 Gbps\"\n";
    for (const char* name : {"a", "b"})
      text += std::string("[[job]]\nname = \"") + name + "\"\ncompute = \"" + compute + "\"\ncommunicate = \"10 MB\"\n";
    return parse_experiment(text, "e.toml", FileOptions{}).warnings;
  };
  EXPECT_THAT(warnings("100 ms"), IsEmpty());
  EXPECT_THAT(warnings("20 ms"), ElementsAre(HasSubstr("need 160% of the link")));
}

TEST(ExperimentFile, parse__job_errors) {
  EXPECT_THAT(refusal(kLink), error_at(1, "job", "there is no job"));
  EXPECT_THAT(refusal("job = []\n" + kLink), error_at(1, "job", "there is no job"));
  EXPECT_THAT(refusal("job = 5\n" + kLink), error_at(1, "job", "an array of tables is expected"));
  EXPECT_THAT(refusal("job = [5]\n" + kLink), error_at(1, "job[1]", "a table is expected"));
  EXPECT_THAT(refusal(kLink + "[job]\nname = \"a\"\n"), error_at(3, "job", "write [[job]] above each job"));
  EXPECT_THAT(refusal(kLink + "[[job]]\ncommunicate = \"1 MB\"\n"), error_at(3, "job[1].name", "the key is missing"));
  EXPECT_THAT(refusal(kLink + kJob + "\n" + kJob),
              error_at(8, "job[2].name", "\"a\" is the name of the job of line 4 too"));
  EXPECT_THAT(refusal(bare_job("compute = \"1 ms\"")), error_at(3, "job[1].communicate", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("communicate = \"0 B\"")), error_at(5, "job[1].communicate", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("communicate = 5")), error_at(5, "job[1].communicate", "such as \"13.5 MB\""));
  EXPECT_THAT(refusal(bare_job("communicate = \"5 Gbps\"")),
              error_at(5, "job[1].communicate", "unknown unit \"Gbps\""));
  EXPECT_THAT(refusal(bare_job("communicate = \"1001 TB\"")), error_at(5, "job[1].communicate", "too large"));
  EXPECT_THAT(refusal(job("compute = 150")), error_at(6, "job[1].compute", "such as \"150 ms\""));
  EXPECT_THAT(refusal(job("compute = \"-1 ms\"")), error_at(6, "job[1].compute", "it is negative"));
  EXPECT_THAT(refusal(job("compute = \"90000 s\"")), error_at(6, "job[1].compute", "too long"));
  EXPECT_THAT(refusal(job("flows = 0")), error_at(6, "job[1].flows", "0 is out of range"));
  EXPECT_THAT(refusal(job("flows = 1001")), error_at(6, "job[1].flows", "1001 is out of range"));
  EXPECT_THAT(refusal(job("flows = 1.5")), error_at(6, "job[1].flows", "a whole number is expected"));
  EXPECT_THAT(refusal(job("start = 3")), error_at(6, "job[1].start", "has no unit"));
  EXPECT_THAT(refusal(job("jitter = \"x\"")), error_at(6, "job[1].jitter", "does not begin with a number"));
  EXPECT_THAT(refusal(job("weight = 0")), error_at(6, "job[1].weight", "0 is out of range"));
  EXPECT_THAT(refusal(job("weight = -1.5")), error_at(6, "job[1].weight", "-1.5 is out of range"));
  EXPECT_THAT(refusal(job("weight = inf")), error_at(6, "job[1].weight", "not finite"));
  EXPECT_THAT(refusal(job("weight = nan")), error_at(6, "job[1].weight", "not finite"));
  EXPECT_THAT(refusal(job("weight = 1001.0")), error_at(6, "job[1].weight", "out of range"));
  EXPECT_THAT(refusal(job("weight = \"2\"")), error_at(6, "job[1].weight", "a number is expected"));
  EXPECT_THAT(refusal(job("rate = \"0 bps\"")), error_at(6, "job[1].rate", "out of range"));
  for (const std::string key :
       {"workers = 2", "network = \"all\"", "gather_size = \"total\"", "compute_scale = 1.0", "bytes_scale = 1.0"})
    EXPECT_THAT(refusal(job(key)), error_at(6, "job[1]." + key.substr(0, key.find(' ')), "belongs to a trace"));
}

TEST(ExperimentFile, parse__too_many_jobs) {
  std::string text = kLink;
  for (int i = 0; i < 4097; ++i)
    text.append("[[job]]\nname = \"").append(std::to_string(i)).append("\"\ncommunicate = \"1 MB\"\n");
  EXPECT_THAT(refusal(text), error_at(3, "job", "there are 4097 jobs"));
}

TEST(ExperimentFile, parse__too_many_jobs_for_the_ring) {
  std::string text = "datapath = \"ring\"\n" + kLink;
  for (int i = 0; i < 3; ++i)
    text.append("[[job]]\nname = \"").append(std::to_string(i)).append("\"\ncommunicate = \"1 MB\"\n");
  FileOptions options;
  options.datapaths = {"sim", "ring"};
  options.max_ring_jobs = 2;
  EXPECT_THAT(refusal(text, options), error_at(10, "job", "there are 3 jobs, but datapath ring has ports for 2"));
  options.datapath = "sim";
  EXPECT_EQ(refusal(text, options), "no error");
  text.erase(0, text.find('\n') + 1);
  EXPECT_EQ(refusal(text, options), "no error");
  options.datapath = "ring";
  EXPECT_THAT(refusal(text, options), error_at(9, "job", "there are 3 jobs"));
  options.max_ring_jobs = 3;
  EXPECT_EQ(refusal(text, options), "no error");
}

TEST(ExperimentFile, parse__iterations_that_take_too_long) {
  // 7500 iterations of 20 min take 104.17 days. The limit of 2^53 ns is 104.25 days.
  const std::string compute = job("compute = \"20 min\"");
  EXPECT_EQ(refusal("iterations = 7500\n" + compute), "no error");
  EXPECT_THAT(refusal("iterations = 7600\n" + compute),
              error_at(1, "iterations", "7600 iterations of job[1] take 105.556 days or more; lower them"));
  EXPECT_THAT(refusal("iterations = 7500\n" + compute + "start = \"3 min\"\nrate = \"1 Mbps\"\n"),
              error_at(1, "iterations", "7500 iterations of job[1]"));
  EXPECT_THAT(refusal("iterations = 7500\n" + compute + "start = \"1440 min\"\n"), error_at(1, "iterations", "105.16"));
  // These files do not give the number of iterations, so the default of 50 counts. Some of their times exceed 64 bits
  // of nanoseconds.
  EXPECT_THAT(refusal(bare_job("communicate = \"1000 TB\"")), error_at(1, "iterations", "50 iterations of job[1]"));
  EXPECT_THAT(refusal(bare_job("communicate = \"1000 TB\"\nrate = \"1 kbps\"")), error_at(1, "iterations", "days"));
  EXPECT_THAT(refusal(bare_job("phases = [{ communicate = \"1 GB\", rate = \"1 kbps\" }]")),
              error_at(1, "iterations", "days"));
  FileOptions options;
  options.iterations = 8000;
  EXPECT_EQ(refusal("iterations = 2\n" + compute, options),
            "--iterations: 8000 iterations of job[1] take 111.112 days or more; lower them, or what an iteration "
            "computes and sends, for at most 104 days");
  options.iterations = 3;
  options.seed = 12;
  const Experiment experiment = parse_experiment("iterations = 8000\nseed = 5\n" + compute, "e.toml", options);
  EXPECT_EQ(experiment.iterations, 3U);
  EXPECT_EQ(experiment.seed, 12U);
  EXPECT_EQ(experiment.bottleneck.seed, 12U);
}

TEST(ExperimentFile, parse__sums_of_an_iteration) {
  const auto phases = [](int count, const std::string& phase) {
    std::string list = "phases = [{ communicate = \"1 B\" },";
    for (int i = 0; i < count; ++i) list += phase + ",";
    return refusal("iterations = 1\n" + kLink + "[[job]]\nname = \"a\"\n" + list + "]\n");
  };
  EXPECT_EQ(phases(2, "{ compute = \"720 min\" }"), "no error");
  EXPECT_THAT(phases(3, "{ compute = \"720 min\" }"), error_at(6, "job[1].phases", "computes for 129600 s and sends"));
  EXPECT_THAT(phases(10, "{ communicate = \"100 TB\" }"), error_at(6, "job[1].phases", "sends 1e+15 B; write at most"));
  // These sums exceed 64 bits. A total of 2^64 B would look like 0.
  EXPECT_THAT(phases(16384, "{ communicate = \"1024 TiB\" }"), HasSubstr("too large"));
  EXPECT_THAT(phases(32768, "{ communicate = \"512 TiB\" }"), error_at(6, "job[1].phases", "sends 1.84467e+19 B"));
}

TEST(ExperimentFile, parse__phases_errors) {
  EXPECT_THAT(refusal(bare_job("phases = 5")), error_at(5, "job[1].phases", "an array of tables is expected"));
  EXPECT_THAT(refusal(bare_job("phases = []")), error_at(5, "job[1].phases", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("phases = [5]")), error_at(5, "job[1].phases[1]", "a table is expected"));
  EXPECT_THAT(refusal(bare_job("phases = [{}]")), error_at(5, "job[1].phases[1]", "neither computes nor communicates"));
  EXPECT_THAT(refusal(bare_job("phases = [{ compute = \"1 ms\" }]")), error_at(5, "job[1].phases", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("phases = [{ compute = \"1 ms\", communicate = \"1 MB\" }]")),
              error_at(5, "job[1].phases[1]", "computes and communicates"));
  EXPECT_THAT(refusal(bare_job("phases = [{ compute = \"1 ms\", overlap = true }]")),
              error_at(5, "job[1].phases[1].overlap", "cannot overlap"));
  EXPECT_THAT(refusal(bare_job("phases = [{ compute = \"1 ms\", rate = \"1 Gbps\" }]")),
              error_at(5, "job[1].phases[1].rate", "has no rate"));
  EXPECT_THAT(refusal(bare_job("phases = [{ communicate = \"1 MB\", overlap = \"yes\" }]")),
              error_at(5, "job[1].phases[1].overlap", "true or false is expected"));
  EXPECT_THAT(refusal(bare_job("phases = [{ communicate = \"0 MB\" }]")),
              error_at(5, "job[1].phases[1].communicate", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("phases = [\n{ compute = 20 },\n{ communicate = \"1 MB\" }]")),
              error_at(6, "job[1].phases[1].compute", "such as \"20 ms\""));
  EXPECT_THAT(refusal(job("phases = [{ communicate = \"1 MB\" }]")),
              error_at(5, "job[1].communicate", "has phases too"));
  EXPECT_THAT(refusal(bare_job("compute = \"1 ms\"\nphases = [{ communicate = \"1 MB\" }]")),
              error_at(5, "job[1].compute", "has phases too"));
}

TEST(ExperimentFile, parse__trace_of_the_profiler) {
  const auto traced = [](const std::string& line) {
    return parse_experiment(bare_job("trace = \"profile.json\"\n" + line), (kData / "e.toml").string());
  };
  const workload::Job job = traced("compute_scale = 2.0").jobs[0];
  EXPECT_THAT(phases_of(job.phases), ElementsAre("compute 20 ms", "send 1000000 B beside", "compute 20 ms"))
      << "nothing waited for it";
  EXPECT_EQ(traced("workers = 4").jobs[0].bytes_per_iteration(), 1'500'000U) << "2 (n-1)/n";
  for (const char* key : {"network = \"all\"", "gather_size = \"shard\""}) {
    EXPECT_THAT(refusal_of([&] { traced(key); }), HasSubstr("the trace records what was sent; leave the key out"));
  }
}

TEST(ExperimentFile, parse__trace_that_is_a_recording) {
  const TemporaryFolder folder;
  std::string entries;
  for (int i = 0; i < 12; ++i)
    entries += (i == 0 ? "" : ",") + std::string(R"({"profiling_name": "nccl:all_reduce", "input_sizes": [[)") +
               std::to_string(1000 + i % 2) + R"(]], "input_dtypes": ["Float"], "record_id": )" + std::to_string(i) +
               R"(, "time_created_ns": )" + std::to_string(1'724'781'437'000'000'000 + i * 5'000'000LL) + "}";
  folder.write("nccl_trace_rank_1.json",
               R"({"version": "2.4", "pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [)" + entries + "]}");
  const auto traced = [&](const std::string& line) {
    return parse_experiment(bare_job("trace = \"nccl_trace_rank_1.json\"\n" + line), (folder / "e.toml").string());
  };
  const workload::Job job = traced("bytes_scale = 2.0").jobs[0];
  EXPECT_EQ(job.bytes_per_iteration(), 2 * (4000U + 4004U));
  Nanos computed;
  for (const workload::Phase& phase : job.phases) computed += phase.compute;
  EXPECT_EQ(computed, Nanos(10'000'000));
  EXPECT_EQ(traced("workers = 4").jobs[0].bytes_per_iteration(), 6000U + 6006U);
  for (const char* key : {"network = \"all\"", "gather_size = \"shard\""}) {
    EXPECT_THAT(refusal_of([&] { traced(key); }), HasSubstr("the trace records what was sent; leave the key out"));
  }
}

TEST(ExperimentFile, parse__trace_errors) {
  const auto traced = [](const std::string& line) {
    try {
      parse_experiment(bare_job("trace = \"layers.txt\"\n" + line), (kData / "e.toml").string());
    } catch (const InputError& error) {
      const std::string message = error.what();
      return message.substr(message.find("e.toml"));
    }
    return std::string("no error");
  };
  EXPECT_EQ(traced(""), "no error");
  EXPECT_THAT(traced("workers = 1"), error_at(6, "job[1].workers", "1 is out of range"));
  EXPECT_THAT(traced("workers = 2.0"), error_at(6, "job[1].workers", "a whole number is expected"));
  EXPECT_THAT(traced("network = \"some\""), error_at(6, "job[1].network", "\"some\" is not known"));
  EXPECT_THAT(traced("network = 1"), error_at(6, "job[1].network", "a text is expected"));
  EXPECT_THAT(traced("gather_size = \"half\""), error_at(6, "job[1].gather_size", "\"half\" is not known"));
  EXPECT_THAT(traced("compute_scale = 0"), error_at(6, "job[1].compute_scale", "0 is out of range"));
  EXPECT_THAT(traced("bytes_scale = -1"), error_at(6, "job[1].bytes_scale", "-1 is out of range"));
  EXPECT_THAT(traced("bytes_scale = 1e7"), error_at(6, "job[1].bytes_scale", "out of range"));
  EXPECT_THAT(traced("compute = \"1 ms\""), error_at(6, "job[1].compute", "has a trace too"));
  EXPECT_THAT(traced("phases = []"), error_at(5, "job[1].trace", "has phases too"));
  EXPECT_THAT(refusal(bare_job("trace = 5")), error_at(5, "job[1].trace", "a text is expected"));
  EXPECT_THAT(refusal(bare_job("trace = \"\"")), error_at(5, "job[1].trace", "the path is empty"));
  EXPECT_THAT(refusal(bare_job("trace = \"no-such-file\"")),
              error_at(5, "job[1].trace", "no-such-file: there is no such file"));
}

TEST(ExperimentFile, parse__profile) {
  const TemporaryFolder folder;
  const std::string file = folder / "mltcp_profile.csv";
  std::ofstream(file) << "time_ms,rate_bps\n0,0\n20,500e6\n30,0\n50,0\n";
  const std::string key = "profile = \"" + file + "\"";
  const Experiment experiment = parse_experiment(bare_job(key), "e.toml");
  EXPECT_THAT(phases_of(experiment.jobs[0].phases),
              ElementsAre("compute 20 ms", "send 625000 B at 500 Mbps", "compute 20 ms"));
  EXPECT_THAT(refusal(bare_job(key + "\ncompute = \"1 ms\"")), error_at(6, "job[1].compute", "has a profile too"));
  EXPECT_THAT(refusal(bare_job(key + "\ntrace = \"x\"")), error_at(5, "job[1].profile", "has a trace too"));
  EXPECT_THAT(refusal(bare_job(key + "\nphases = []")), error_at(5, "job[1].profile", "has phases too"));
  EXPECT_THAT(refusal(bare_job(key + "\nworkers = 2")), error_at(6, "job[1].workers", "belongs to a trace"));
  EXPECT_THAT(refusal(bare_job("profile = \"\"")), error_at(5, "job[1].profile", "the path is empty"));
  EXPECT_THAT(refusal(bare_job("profile = \"none.csv\"")), error_at(5, "job[1].profile", "none.csv: there is no"));
  std::ofstream(file) << "time_ms,rate_bps\n0,0\n20,-1\n";
  EXPECT_THAT(refusal(bare_job(key)), error_at(5, "job[1].profile", "mltcp_profile.csv:3: rate: -1 is below 0"));
}

TEST(ExperimentFile, parse__errors_of_a_trace_name_both_places) {
  const TemporaryFolder folder;
  folder.write("mltcp_bad_trace.txt", "a -1 1 NONE 0 0 NONE 0 x NONE 0 0\n");
  folder.write("mltcp_silent_trace.txt", "a -1 1 NONE 0 0 NONE 0 0 NONE 0 0\n");
  EXPECT_THAT(
      refusal(bare_job("trace = \"" + folder.string() + "/mltcp_bad_trace.txt\"")),
      error_at(5, "job[1].trace", "mltcp_bad_trace.txt:1: weight-gradient compute: \"x\" is not a whole number"));
  EXPECT_THAT(refusal(bare_job("trace = \"" + folder.string() + "/mltcp_silent_trace.txt\"")),
              error_at(5, "job[1].trace", "rank 0 sends nothing in an iteration; "));
}

TEST(ExperimentFile, to_toml__reads_back_as_the_same_job) {
  Random random(17);
  std::string text = "iterations = 1\n" + kLink;
  std::vector<workload::Job> jobs;
  for (int i = 0; i < 100; ++i) {
    workload::Job each;
    each.name = "job \"" + std::to_string(i) + "\" \\ é";
    each.flows = static_cast<std::uint32_t>(1 + random.below(1000));
    each.start = Nanos(static_cast<std::int64_t>(random.below(1'000'000'000)));
    each.jitter = Nanos(static_cast<std::int64_t>(random.below(1'000'000'000)));
    each.weight = random.chance(0.2) ? 3 : 0.001 + random.uniform() * 10;
    if (random.chance(0.5)) each.rate = Rate(1'000 + random.below(1'000'000'000'000));
    if (random.chance(0.5)) each.start_jitter = Nanos(static_cast<std::int64_t>(random.below(1'000'000'000)));
    if (random.chance(0.5)) each.straggler = {random.uniform() * 1e-6, 1 + random.uniform()};
    if (random.chance(0.5)) each.pause = {static_cast<std::uint32_t>(random.below(9)), Nanos(1'500)};
    if (random.chance(0.5)) each.change = {static_cast<std::uint32_t>(random.below(9)), 0.5 + random.uniform()};
    if (random.chance(0.5)) each.iterations = 1;
    if (random.chance(0.5)) each.priority = static_cast<std::uint32_t>(random.below(8));
    if (random.chance(0.5)) each.cc = "cubic";
    each.unaware = random.chance(0.5);
    each.phases.emplace_back().compute = Nanos(1);
    for (std::uint64_t p = random.below(20); p > 0; --p) {
      workload::Phase phase;
      phase.label = "layer\t#" + std::to_string(p) + "\n\xff";
      if (random.chance(0.5)) {
        phase.compute = Nanos(static_cast<std::int64_t>(1 + random.below(1'000'000'000'000)));
      } else {
        phase.kind = workload::Phase::Kind::communicate;
        phase.bytes = 1 + (random.next() >> (24 + random.below(39)));
        phase.overlap = random.chance(0.5);
        if (random.chance(0.3)) phase.rate = Rate(1'000 + random.below(1'000'000'000));
      }
      each.phases.push_back(phase);
    }
    each.phases.push_back(workload::sends(1));
    text += workload::to_toml(each);
    jobs.push_back(each);
  }
  const Experiment experiment = parse_experiment(text, "e.toml");
  ASSERT_EQ(experiment.jobs.size(), jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) expect_same_fields(experiment.jobs[i], jobs[i]);
}

TEST(ExperimentFile, to_toml__published_traces_read_back) {
  const char* variable = std::getenv("MLTCP_TRACES");
  const std::filesystem::path folder = variable != nullptr && *variable != '\0' ? variable : MLTCP_DEFAULT_TRACES;
  if (!std::filesystem::exists(folder / "simai"))
    GTEST_SKIP() << "there is no " << (folder / "simai").string()
                 << "; set MLTCP_TRACES to a folder with libra, simai, aicb";
  for (const char* file : {"libra/DLRM.txt", "libra/GPT_3.txt", "simai/microAllReduce.txt",
                           "simai/workload_analytical.txt", "aicb/L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt"}) {
    workload::TraceView view;
    view.network = workload::Network::all;
    view.compute_scale = 0.37;
    view.bytes_scale = 0.011;
    const std::filesystem::path path = folder / file;
    const workload::Job original = workload::to_job(summarise_job_traces(std::span(&path, 1), view), file);
    expect_same_fields(parse_experiment(kLink + workload::to_toml(original), "e.toml").jobs.at(0), original);
  }
}

TEST(ExperimentFile, count__makes_jobs_that_differ_in_name_and_start) {
  const Experiment experiment =
      parse_experiment(job("count = 3\nstart = \"1 ms\"\nstart_step = \"2 ms\"\nstart_jitter = \"5 ms\"\nweight = 2") +
                           "[[job]]\nname = \"b\"\ncommunicate = \"1 B\"\n",
                       "e.toml");
  std::vector<std::string> names;
  std::vector<std::int64_t> starts;
  for (const workload::Job& one : experiment.jobs) {
    names.push_back(one.name);
    starts.push_back(one.start.count);
  }
  EXPECT_THAT(names, ElementsAre("a-1", "a-2", "a-3", "b"));
  EXPECT_THAT(starts, ElementsAre(1'000'000, 3'000'000, 5'000'000, 0));
  EXPECT_EQ(experiment.jobs[2].weight, 2);
  EXPECT_EQ(experiment.jobs[2].start_jitter, Nanos(5'000'000));
  EXPECT_EQ(experiment.jobs[3].start_jitter, Nanos(0));
  EXPECT_EQ(parse_experiment(job("count = 1"), "e.toml").jobs[0].name, "a");
}

TEST(ExperimentFile, count__refused) {
  EXPECT_THAT(refusal(job("count = 0")), error_at(6, "job[1].count", "0 is out of range"));
  EXPECT_THAT(refusal(job("count = 4097")), error_at(3, "job", "there are 4097 jobs"));
  EXPECT_THAT(refusal(job("count = 4000") + "[[job]]\nname = \"b\"\ncommunicate = \"1 B\"\ncount = 97\n"),
              error_at(7, "job", "there are 4097 jobs"));
  EXPECT_THAT(refusal(job("start_step = \"1 ms\"")), error_at(6, "job[1].start_step", "the job has no count"));
  EXPECT_THAT(refusal(job("count = 3\nstart_step = \"13 h\"")), HasSubstr("unit"));
  EXPECT_THAT(refusal(job("count = 3\nstart_step = \"800 min\"")),
              error_at(7, "job[1].start_step", "starts after more"));
  EXPECT_THAT(refusal(job("count = 2") + "[[job]]\nname = \"a-2\"\ncommunicate = \"1 B\"\n"),
              error_at(8, "job[2].name", "\"a-2\" is the name of the job of line 4 too"));
  EXPECT_THAT(refusal(bare_job("count = 2\ncommunicate = \"1 B\"\nstart_jitter = 5")),
              error_at(7, "job[1].start_jitter", "has no unit"));
  FileOptions ring;
  ring.datapaths = {"sim", "ring"};
  ring.max_ring_jobs = 2;
  EXPECT_THAT(refusal("datapath = \"ring\"\n" + job("count = 3"), ring),
              error_at(4, "job", "there are 3 jobs, but datapath ring has ports for 2"));
}

}  // namespace
}  // namespace mltcp::experiment
