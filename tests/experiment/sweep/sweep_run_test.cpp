// Tests running sweeps: no run is repeated, damaged records are not used, shards combine, and failures are recorded.
#include "mltcp/lab/experiment/sweep/sweep_run.h"
#include "../../temporary_folder.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "../../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::experiment {
namespace {

namespace fs = std::filesystem;

class SweepRun : public ::testing::Test {
 protected:
  void SetUp() override {
    put(folder_ / "e.toml",
        "iterations = 2\npolicies = [\"fair\"]\n[bottleneck]\nrate = \"1 Gbps\"\n"
        "[[job]]\nname = \"a\"\ncompute = \"1 ms\"\ncommunicate = \"100 kB\"\n");
    fs::create_directories(folder_ / "o/runs");
    settings_.folder = folder_ / "o";
    settings_.build = "one";
    settings_.threads = 3;
    settings_.write = [&](const std::string& file, const std::string& text) {
      ++written_[fs::path(file).stem()];
      put(file, text);
    };
    settings_.runner = [&](const Experiment& experiment, const std::function<void(double)>& tick) {
      ++runs_;
      tick(0.5);
      Results results;
      results.experiment = experiment.name;
      experiment::Run run;
      run.policy = "fair";
      run.seed = experiment.seed;
      JobResult job;
      job.name = "job";
      job.isolated = Nanos(100);
      job.starts = {Nanos(0), Nanos(200)};
      job.iterations = {Nanos(200), Nanos(100 + static_cast<std::int64_t>(experiment.seed))};
      job.mean = job.iterations[1];
      job.interleaved_from = 1;
      run.bottleneck.usage.jobs["job"] = {1, 2, 3};
      run.jobs.push_back(job);
      results.runs.push_back(run);
      return results;
    };
  }

  static void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  // Returns a sweep with two points and four seeds.
  [[nodiscard]] Sweep sweep(const std::vector<std::string>& vary = {"iterations=2,3"}, std::uint32_t seeds = 4) const {
    SweepOptions options;
    options.vary = vary;
    options.seeds = seeds;
    return load_sweep(folder_ / "e.toml", options);
  }
  [[nodiscard]] std::vector<fs::path> records(const std::string& folder = "o") const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_ / folder / "runs")) all.push_back(entry.path());
    return all;
  }
  [[nodiscard]] int max_written() const {
    int max = 0;
    for (const auto& [name, times] : written_) max = std::max(max, times);
    return max;
  }

  TemporaryFolder folder_;
  SweepSettings settings_;
  std::atomic<int> runs_ = 0;
  std::map<std::string, int> written_;
};

TEST_F(SweepRun, run__again_runs_nothing) {
  SweepOutcome outcome = run_sweep(sweep(), settings_);
  EXPECT_EQ(outcome.all, 8U);
  EXPECT_EQ(outcome.before, 0U);
  EXPECT_EQ(outcome.ran, 8U);
  EXPECT_EQ(runs_, 8);
  EXPECT_EQ(records().size(), 8U);
  outcome = run_sweep(sweep(), settings_);
  EXPECT_EQ(outcome.before, 8U);
  EXPECT_EQ(runs_, 8);
  // The sweep has a fifth seed and a third value now. Only the 7 new combinations of 15 run.
  run_sweep(sweep({"iterations=2,3,4"}, 5), settings_);
  EXPECT_EQ(runs_, 15);
  EXPECT_EQ(max_written(), 1);
}

TEST_F(SweepRun, stop__at_any_moment_loses_and_repeats_nothing) {
  for (int after = 1; after < 8; ++after) {
    fs::remove_all(folder_ / "o/runs");
    fs::create_directories(folder_ / "o/runs");
    written_.clear();
    std::atomic<bool> stop = false;
    SweepSettings settings = settings_;
    settings.stop = [&stop] { return stop.load(); };
    settings.write = [&](const std::string& file, const std::string& text) {
      settings_.write(file, text);
      stop = stop || written_.size() >= static_cast<std::size_t>(after);
    };
    const SweepOutcome first = run_sweep(sweep(), settings);
    EXPECT_EQ(first.stopped, records().size() < 8) << after;
    EXPECT_GE(records().size(), static_cast<std::size_t>(after));
    EXPECT_EQ(first.ran, records().size());
    const SweepOutcome second = run_sweep(sweep(), settings_);
    EXPECT_EQ(second.before, first.ran);
    EXPECT_EQ(second.before + second.ran, 8U);
    EXPECT_EQ(written_.size(), 8U);
    EXPECT_EQ(max_written(), 1);
  }
}

TEST_F(SweepRun, stop__in_the_middle_of_a_run_keeps_nothing_of_it) {
  std::atomic<bool> stop = false;
  settings_.stop = [&stop] { return stop.load(); };
  const Runner whole = settings_.runner;
  settings_.runner = [&](const Experiment& experiment, const std::function<void(double)>& tick) {
    stop = true;
    return whole(experiment, tick);
  };
  const SweepOutcome outcome = run_sweep(sweep(), settings_);
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.ran, 0U);
  EXPECT_THAT(records(), IsEmpty());
}

TEST_F(SweepRun, record__damaged_in_any_way_is_made_anew) {
  run_sweep(sweep({}, 1), settings_);
  ASSERT_EQ(records().size(), 1U);
  const fs::path path = records()[0];
  const std::string good = content(path);
  const std::string identity = path.stem();
  ASSERT_TRUE(read_record(path, identity).has_value());
  // For every fifth byte, stores the record up to this byte, then the whole record with its next digit changed.
  for (std::size_t at = 0; at + 1 < good.size(); at += 5) {
    put(path, good.substr(0, at));
    ASSERT_FALSE(read_record(path, identity).has_value()) << "cut at " << at;
    const std::size_t digit = good.find_first_of("012345678", at);
    if (digit == std::string::npos) continue;
    std::string bad = good;
    ++bad[digit];
    put(path, bad);
    ASSERT_FALSE(read_record(path, identity).has_value()) << "changed: " << bad.substr(0, digit + 1);
  }
  put(path, good.substr(0, good.size() / 2));
  EXPECT_EQ(run_sweep(sweep({}, 1), settings_).ran, 1U);
  EXPECT_EQ(content(path), good);
  // The file contains the record of another run, and must not be used.
  run_sweep(sweep({}, 2), settings_);
  for (const fs::path& other : records())
    if (other != path) fs::copy_file(other, path, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(read_record(path, identity).has_value());
}

TEST_F(SweepRun, record__drops_the_series_unless_asked) {
  run_sweep(sweep({}, 1), settings_);
  const std::string identity = records()[0].stem();
  auto record = read_record(records()[0], identity);
  ASSERT_TRUE(record.has_value());
  EXPECT_THAT(record->results.runs[0].jobs[0].iterations, IsEmpty());
  EXPECT_THAT(record->results.runs[0].bottleneck.usage.jobs, IsEmpty());
  EXPECT_EQ(record->results.runs[0].jobs[0].isolated, Nanos(100));
  EXPECT_EQ(record->results.runs[0].jobs[0].interleaved_from, 1U);
  settings_.full = true;
  run_sweep(sweep({}, 1), settings_);
  EXPECT_EQ(runs_, 2) << "the record had no series";
  record = read_record(records()[0], identity);
  EXPECT_EQ(record->results.runs[0].jobs[0].iterations.size(), 2U);
  settings_.full = false;
  run_sweep(sweep({}, 1), settings_);
  EXPECT_EQ(runs_, 2) << "a full record has all that is needed";
}

TEST_F(SweepRun, shards__do_each_run_once) {
  std::set<std::string> all;
  std::size_t sum = 0;
  for (std::uint32_t shard = 1; shard <= 3; ++shard) {
    settings_.shard = shard;
    settings_.shards = 3;
    sum += run_sweep(sweep(), settings_).ran;
  }
  EXPECT_EQ(sum, 8U);
  EXPECT_EQ(runs_, 8);
  EXPECT_EQ(max_written(), 1);
  EXPECT_EQ(records().size(), 8U);
}

TEST_F(SweepRun, merge__takes_good_records_of_other_folders) {
  for (std::uint32_t shard = 1; shard <= 2; ++shard) {
    SweepSettings settings = settings_;
    settings.folder = folder_ / std::to_string(shard);
    fs::create_directories(settings.folder / "runs");
    settings.shard = shard;
    settings.shards = 2;
    run_sweep(sweep(), settings);
    settings_.merge.push_back(settings.folder);
  }
  put(records("1")[0], "{}");
  settings_.run = false;
  SweepOutcome outcome = run_sweep(sweep(), settings_);
  EXPECT_EQ(outcome.before, 7U);
  EXPECT_EQ(runs_, 8);
  settings_.run = true;
  outcome = run_sweep(sweep(), settings_);
  EXPECT_EQ(outcome.ran, 1U);
  EXPECT_EQ(records().size(), 8U);
}

TEST_F(SweepRun, record__nested_beyond_measure_does_not_count) {
  run_sweep(sweep({}, 1), settings_);
  const fs::path path = records().front();
  std::string text = content(path);
  const std::string deep(1'000'000, '[');
  put(path, text.insert(text.find("\"build\""), "\"x\":" + deep + std::string(deep.size(), ']') + ","));
  const SweepOutcome outcome = run_sweep(sweep({}, 1), settings_);
  EXPECT_EQ(outcome.ran, 1U);
  EXPECT_TRUE(outcome.failures.empty());
}

TEST_F(SweepRun, points__that_are_the_same_experiment_share_their_runs) {
  run_sweep(sweep({"name=x,y"}), settings_);
  EXPECT_EQ(runs_, 4);
}

TEST_F(SweepRun, failure__is_kept_and_the_rest_goes_on) {
  const Runner good = settings_.runner;
  settings_.runner = [&](const Experiment& experiment, const std::function<void(double)>& tick) {
    if (experiment.seed == 2) throw RunError("no job\nhas finished");
    return good(experiment, tick);
  };
  EXPECT_EQ(run_sweep(sweep(), settings_).ran, 8U);
  EXPECT_EQ(runs_, 6);
  const Sweep both = sweep();
  const std::string identity = identity_of(both.points[1], 2);
  const auto record = read_record(record_path(settings_.folder, identity), identity);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->failure, "no job?has finished");
  const SweepOutcome again = run_sweep(sweep(), settings_);
  ASSERT_EQ(again.failures.size(), 2U);
  EXPECT_EQ(again.failures[1].first.point, 1U);
  EXPECT_EQ(again.failures[1].first.seed, 2U);
  EXPECT_EQ(again.failures[1].second, record->failure);
  // The same program would fail again, so a failed run is repeated only after the program has changed.
  settings_.runner = good;
  EXPECT_EQ(run_sweep(sweep(), settings_).ran, 0U);
  settings_.build = "two";
  EXPECT_EQ(run_sweep(sweep(), settings_).ran, 2U);
  EXPECT_EQ(runs_, 8);
}

TEST_F(SweepRun, write__that_fails_ends_the_sweep) {
  settings_.write = [](const std::string&, const std::string&) { throw RunError("the disk is full"); };
  EXPECT_EQ(message_of<RunError>([&] { run_sweep(sweep(), settings_); }), "the disk is full");
}

TEST_F(SweepRun, experiment__whose_trace_changes_meanwhile_is_refused) {
  put(folder_ / "t.txt", "DATA\n1\na -1 100 NONE 0 0 NONE 0 500 ALLREDUCE 13500 0\n");
  put(folder_ / "e.toml", "[bottleneck]\nrate = \"1 Gbps\"\n[[job]]\nname = \"a\"\ntrace = \"t.txt\"\n");
  const Sweep read = sweep({}, 1);
  put(folder_ / "t.txt", "DATA\n1\na -1 100 NONE 0 0 NONE 0 500 ALLREDUCE 13501 0\n");
  EXPECT_THAT(message_of<RunError>([&] { run_sweep(read, settings_); }), HasSubstr("changed during the sweep"));
  EXPECT_EQ(runs_, 0);
}

TEST_F(SweepRun, progress__ends_with_all_done) {
  std::size_t last = 0;
  double fraction = 0;
  settings_.progress = [&](std::size_t done, std::size_t all, double part) {
    EXPECT_EQ(all, 8U);
    EXPECT_GE(done, last);
    EXPECT_LE(part, 1.0 + 1e-9);
    last = done;
    fraction = part;
  };
  run_sweep(sweep(), settings_);
  EXPECT_EQ(last, 8U);
  EXPECT_DOUBLE_EQ(fraction, 1.0);
}

// Real runs give the same results with any number of threads.
TEST_F(SweepRun, results__do_not_depend_on_threads) {
  put(folder_ / "e.toml",
      "iterations = 3\n[bottleneck]\nrate = \"1 Gbps\"\nbuffer = \"75 kB\"\n[[job]]\nname = \"a\"\ncount = 2\n"
      "compute = \"1 ms\"\ncommunicate = \"100 kB\"\nstart_jitter = \"1 ms\"\njitter = \"100 us\"\n");
  settings_.runner = run_in_virtual_time;
  std::map<fs::path, std::string> texts;
  for (const std::uint32_t threads : {1U, 4U}) {
    settings_.folder = folder_ / std::to_string(threads);
    settings_.threads = threads;
    fs::create_directories(settings_.folder / "runs");
    run_sweep(sweep({"job[1].weight=1,2"}, 6), settings_);
    for (const fs::path& path : records(std::to_string(threads))) {
      const auto [first, is_new] = texts.try_emplace(path.filename(), content(path));
      EXPECT_EQ(first->second, content(path));
    }
  }
  EXPECT_EQ(texts.size(), 12U);
}

}  // namespace
}  // namespace mltcp::experiment
