// Tests `mltcp sweep`, `mltcp cluster` and `mltcp switch` as users see them.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "command_fixture.h"

namespace mltcp::tools {
namespace {

namespace fs = std::filesystem;

// ---- Sweep ----

class SweepCommand : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    put("pair.toml",
        "iterations = 8\n[bottleneck]\nrate = \"1 Gbps\"\nbuffer = \"75 kB\"\n[[job]]\nname = \"a\"\ncount = 2\n"
        "compute = \"2 ms\"\ncommunicate = \"100 kB\"\nstart_jitter = \"1 ms\"\n");
    put("s.toml",
        "experiment = \"pair.toml\"\nseeds = 5\n[vary]\n\"bottleneck.buffer\" = [\"75 kB\", \"250 kB\"]\n"
        "[[case]]\nname = \"two\"\n[[case]]\nname = \"three\"\nset = { \"job[1].count\" = 3 }\n");
  }
  [[nodiscard]] std::size_t records(const std::string& folder) const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / folder / "runs"))
      count += entry.path().extension() == ".json" ? 1U : 0U;
    return count;
  }
};

TEST_F(SweepCommand, sweep__table_of_points_and_policies) {
  const Outcome ran = done("sweep s.toml --markdown m.md --csv c.csv --json j.json");
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, StartsWith("s: 4 points with 5 seeds, 20 runs, in s.sweep\n20 runs done\n\ncase   bottleneck"));
  EXPECT_EQ(records("s.sweep"), 20U);
  const std::string markdown = content(folder_ / "m.md");
  EXPECT_THAT(markdown, StartsWith("| case | bottleneck.buffer | policy | slow-down |"));
  EXPECT_EQ(std::count(markdown.begin(), markdown.end(), '\n'), 2 + 8);
  EXPECT_THAT(content(folder_ / "c.csv"), StartsWith("case,bottleneck.buffer,policy,jobs,seeds,slowdown,"));
  // The second call finds all records and prints the same results as the first call.
  const Outcome again = done("sweep s.toml --json - --threads 1");
  EXPECT_EQ(without_provenance(again.out), without_provenance(content(folder_ / "j.json")));
  EXPECT_THAT(again.err, HasSubstr("20 runs done, 20 of them before"));
}

TEST_F(SweepCommand, sweep__shards_merge_to_the_same_table) {
  done("sweep s.toml -o whole --json whole.json");
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    // Runs each shard twice: in a folder that all shards share, and in a separate folder.
    done(std::string("sweep s.toml -o together --shard ") + shard);
    const Outcome alone = run(std::string("sweep s.toml -o alone") + shard[0] + " --shard " + shard);
    EXPECT_THAT(alone.out, HasSubstr("runs done\nfor the table, run without --shard when all shards are done\n"));
  }
  EXPECT_EQ(records("alone1") + records("alone2") + records("alone3"), 20U);
  done("sweep s.toml -o together --no-run --json together.json");
  EXPECT_EQ(
      run("sweep s.toml -o merged --no-run --merge alone1 --merge alone2 --merge alone3 --json merged.json").status, 0);
  EXPECT_EQ(without_provenance(content(folder_ / "together.json")),
            without_provenance(content(folder_ / "whole.json")));
  EXPECT_EQ(without_provenance(content(folder_ / "merged.json")), without_provenance(content(folder_ / "whole.json")));
  const Outcome part = run("sweep s.toml -o alone1 --no-run");
  EXPECT_EQ(part.status, 1);
  EXPECT_THAT(part.err, EndsWith("mltcp: 13 runs are missing; to run them, run the same command without --no-run\n"));
  EXPECT_THAT(part.out, HasSubstr("seeds"));
}

TEST_F(SweepCommand, sweep__interrupted_goes_on_where_it_was) {
  // These runs take so long that the command is interrupted after it has written some records.
  done("sweep s.toml -o whole --vary iterations=150 --json whole.json");
  for (const char* signal : {"INT", "TERM"}) {
    const std::string command = "sweep s.toml -o half --vary iterations=150 --threads 1 --json half.json";
    fs::remove_all(folder_ / "half");
    const Outcome stopped = run(command + " & while [ $(ls half/runs 2>/dev/null | wc -l) -lt 3 ]; do :; done; kill -" +
                                signal + " $!; wait $!");
    EXPECT_EQ(stopped.status, 1);
    EXPECT_THAT(stopped.err,
                AllOf(StartsWith("mltcp: stopped with "), EndsWith("to continue, run the same command again\n")));
    const std::size_t kept = records("half");
    EXPECT_GE(kept, 3U);
    EXPECT_LT(kept, 20U);
    const Outcome rest = done(command);
    EXPECT_THAT(rest.out, HasSubstr("20 runs done, " + std::to_string(kept) + " of them before"));
    EXPECT_EQ(without_provenance(content(folder_ / "half.json")), without_provenance(content(folder_ / "whole.json")));
  }
}

TEST_F(SweepCommand, sweep__shard_of_launchers) {
  const auto shard = [&](const std::string& environment) {
    return run(" >/dev/null; " + environment + " " MLTCP_PROGRAM " sweep e.toml -o o --no-run --shard auto");
  };
  EXPECT_THAT(shard("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2").out,
              HasSubstr(", shard 3 of 4, "));
  EXPECT_THAT(shard("PMI_RANK=0 PMI_SIZE=2").out, HasSubstr(", shard 1 of 2, "));
  EXPECT_THAT(shard("SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2").out, HasSubstr(", shard 2 of 2, "));
  EXPECT_THAT(
      shard("SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=4").out,
      HasSubstr(", shard 3 of 4, "));
  EXPECT_THAT(shard("SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=3 SLURM_PROCID=1 "
                    "SLURM_STEP_NUM_TASKS=4")
                  .out,
              HasSubstr(", shard 6 of 12, "));
  EXPECT_THAT(shard("SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=3").err,
              HasSubstr("the Slurm job array has gaps; "));
  EXPECT_THAT(refusal("sweep e.toml --shard auto"), HasSubstr("no launcher has set the number of this process"));
}

TEST_F(SweepCommand, sweep__full_runs_are_drawn_by_report) {
  done("sweep e.toml --full -o o");
  ASSERT_EQ(records("o"), 1U);
  done("report o/runs/*.json -o page.html");
}

TEST_F(SweepCommand, sweep__warns_where_seeds_change_nothing) {
  const Outcome ran = done("sweep e.toml --seeds 3");
  EXPECT_THAT(ran.err,
              HasSubstr("warning: 1 of 1 point have the same result with every seed, as nothing in them is random"));
}

TEST_F(SweepCommand, sweep__failed_runs_are_listed_and_the_rest_is_done) {
  put("lossy.toml",
      "iterations = 2\npolicies = [\"fair\"]\n[bottleneck]\nrate = \"1 Gbps\"\n"
      "[[job]]\nname = \"a\"\ncompute = \"1 ms\"\ncommunicate = \"100 kB\"\n");
  const Outcome ran = run("sweep lossy.toml --vary bottleneck.faults.loss=0,1");
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("\nbottleneck.faults.loss  slow-down  2nd half    p99\n0 "));
  EXPECT_THAT(ran.err, AllOf(HasSubstr("mltcp: failed: bottleneck.faults.loss = 1, seed 1: "),
                             EndsWith("\nmltcp: 1 run failed\n")));
}

TEST_F(SweepCommand, sweep__refuses_options) {
  for (const char* shard : {"0/3", "4/3", "1", "a/b", "1/3/4", "-1/3", "''"})
    EXPECT_THAT(refusal(std::string("sweep e.toml --shard ") + shard), HasSubstr("is not i/n with i from 1 to n; "))
        << shard;
  EXPECT_THAT(refusal("sweep e.toml --shard 1/2 --json x.json"), HasSubstr("a shard has no table; "));
  EXPECT_THAT(refusal("sweep e.toml --json - --csv -"),
              HasSubstr("only one of these options can write to standard output; "));
  EXPECT_THAT(refusal("sweep e.toml --json e.toml"), HasSubstr("is also the input file; "));
  EXPECT_THAT(refusal("sweep e.toml -o e.toml"), StartsWith("mltcp: --output e.toml: the folder can"));
  EXPECT_THAT(refusal("sweep e.toml --merge none"),
              StartsWith("mltcp: --merge \"none\": there is no folder runs in it; "));
  EXPECT_THAT(refusal("sweep e.toml --vary bottleneck.bufer=1"), HasSubstr("bottleneck.bufer: unknown key; "));
  EXPECT_THAT(refusal("sweep e.toml --policy shedule"), StartsWith("mltcp: --policy: \"shedule\" is not known; did"));
  EXPECT_FALSE(fs::exists(folder_ / "e.sweep")) << "nothing is made before everything is checked";
}

// ---- Cluster ----

TEST_F(Command, cluster__prints_a_table_and_writes_results) {
  put("c.toml",
      "level = \"flow\"\nschemes = [\"locality\", \"ideal\"]\n"
      "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 1\nhosts_per_leaf = 2\nhost_rate = \"10 Gbps\"\n"
      "ecn = { kmin = \"30 kB\" }\n"
      "[arrivals]\njobs = 2\nat_start = 2\nworkers = 3\niterations = 5\n"
      "[[type]]\nname = \"a\"\ncompute = \"6 ms\"\ncommunicate = \"5 MB\"\n");
  const Outcome outcome = done("cluster c.toml --json r.json --markdown t.md --seeds 2");
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasAll("c: 6 hosts", "2 seeds", "locality", "ideal"));
  EXPECT_THAT(content(folder_ / "r.json"), HasSubstr("\"mltcp.cluster/1\""));
  EXPECT_THAT(content(folder_ / "t.md"), StartsWith("| scheme |"));
  const Outcome json = run("cluster c.toml --scheme ideal --json -");
  EXPECT_THAT(json.out, StartsWith("{"));
  EXPECT_THAT(json.err, HasSubstr("ideal"));
}

TEST_F(Command, cluster__keeps_what_is_complete_when_it_is_interrupted) {
  put("c.toml",
      "schemes = [\"ideal\", \"locality\"]\n"
      "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 1\nhosts_per_leaf = 2\nhost_rate = \"10 Gbps\"\n"
      "ecn = { kmin = \"30 kB\" }\n"
      "[arrivals]\njobs = 2\nat_start = 2\nworkers = 3\niterations = 100\n"
      "[[type]]\nname = \"a\"\ncompute = \"6 ms\"\ncommunicate = \"5 MB\"\n");
  const Outcome ended =
      run("cluster c.toml --threads 1 --json r.json & while kill -0 $! && [ ! -e r.json ]; do sleep 0.01; done; kill "
          "-INT $!; wait $!");
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.err,
            "mltcp: interrupted by the user: 1 run is complete, and the table shows only it; missing: locality with "
            "seed 1\n");
  EXPECT_THAT(ended.out, AllOf(HasSubstr("\nideal "), Not(HasSubstr("\nlocality "))));
  EXPECT_THAT(content(folder_ / "r.json"), HasAll("\"unfinished\": [", "\"provenance\": {"));
}

TEST_F(Command, cluster__refuses_in_one_line) {
  put("c.toml", "schemes = [\"best\"]\n");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"cluster", "FILE.toml is required"},
      {"cluster none.toml", "none.toml"},
      {"cluster c.toml", "c.toml:1: schemes: \"best\" is not a scheme"},
      {"cluster c.toml --level fluid", "fluid"},
      {"cluster c.toml --seeds 0", "--seeds"},
      {"cluster c.toml --models", "leave the file out"},
  };
  for (const auto& [arguments, cause] : cases) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("mltcp: "), HasSubstr(cause), EndsWith("\n")));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST_F(Command, cluster__lists_models) {
  const Outcome outcome = done("cluster --models");
  EXPECT_THAT(outcome.out, HasAll("VGG16", "DLRM", "Brown et al."));
}

#if !MLTCP_HAS_DPDK
TEST_F(Command, switch_without_dpdk__says_what_it_needs) {
  const Outcome outcome = run("switch --port ring:a --port ring:b");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "mltcp: built without DPDK, which mltcp switch needs; build with -DMLTCP_DPDK=ON\n");
}
#endif

#if MLTCP_HAS_DPDK
TEST_F(Command, switch__refuses_what_it_can_not_use_in_one_line) {
  put("s.toml", "[[port]]\ndevice = \"ring:a\"\nrate = \"1 parsec\"\n");
  EXPECT_THAT(refusal("switch"), HasSubstr("the switch has no ports; write [[port]] or --port for each"));
  EXPECT_THAT(refusal("switch --file s.toml"), StartsWith("mltcp: s.toml:3: port[1].rate: "));
  EXPECT_THAT(refusal("switch --file nowhere.toml"), HasSubstr("nowhere.toml"));
  EXPECT_THAT(refusal("switch --port ring:a"), HasSubstr("the switch has 1 port; write 2 to 64"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b,rat=1Gbps"), HasSubstr("did you mean \"rate=...\"?"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b --loss 2"),
              HasSubstr("--loss: \"2\" is not a number from 0 to 1;"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b --for soon"), StartsWith("mltcp: --for: "));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b --memory 1"), HasSubstr("--memory"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b --json /nowhere/c.json"), HasSubstr("/nowhere/c.json"));
}

TEST_F(Command, switch__refuses_ports_that_can_not_be) {
  EXPECT_THAT(refusal("switch --port ring:a --port warp:b"), HasSubstr("\"warp\" is no kind of port"));
  EXPECT_THAT(refusal("switch --port ring:a --port verbs:rxe0"), HasSubstr("but Ethernet frames are needed here"));
  EXPECT_THAT(refusal("switch --port ring:a --port af_packet:mltcpnone0"), HasSubstr("mltcpnone0"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b,buffer=1kB"),
              HasSubstr("\"ring:b\": its buffer, 1 kB, is smaller than a frame of its MTU; give at least 1514 B"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b --cores 99999"), HasSubstr("core"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b --every 1s"), HasSubstr("--every: only for --json"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b --json x --every 1us"), HasSubstr("give at least 1 ms"));
  EXPECT_THAT(refusal("switch --port ring:a --port ring:b --json x --every now"), StartsWith("mltcp: --every: "));
}

TEST_F(Command, switch__runs_as_long_as_it_should_and_counts) {
  const Outcome ran =
      done("switch --port ring:a,rate=1Gbps,ecn=30kB --port ring:b --idle sleep --for 100ms --json c.json");
  // A warning about other load on the machine is not an error of the switch.
  EXPECT_THAT(ran.err, AnyOf("", StartsWith("mltcp: warning: the machine delayed the switch")));
  EXPECT_THAT(ran.out, HasAll("\nready ring:a ring:b\n", "longest queue"));
  EXPECT_THAT(content(folder_ / "c.json"),
              HasAll("\"schema\": \"mltcp.switch/1\"", "\"device\": \"ring:b\"", "\"sent_frames\": 0"));
  EXPECT_THAT(content(folder_ / "c.json"), Not(HasSubstr("series")));
  const Outcome often = run("switch --port ring:a --port ring:b --idle sleep --for 100ms --json - --every 10ms");
  EXPECT_THAT(often.out, HasAll("\"every_ns\": 10000000", "\"max_queue_bytes\": ["));
  const Outcome claims = done("switch --port ring:a --port ring:b --idle sleep --for 50ms --claims --json c.json");
  EXPECT_THAT(claims.out, HasSubstr("\nno packet claimed the progress of a job\n"));
  EXPECT_THAT(content(folder_ / "c.json"), HasSubstr("\"claims\": []"));
  const Outcome alone = run("switch --port ring:a --port ring:b --for 50ms --json -");
  EXPECT_THAT(alone.out, Not(HasSubstr("claims")));
  EXPECT_THAT(alone.out, StartsWith("{\n  \"schema\": \"mltcp.switch/1\""));
  EXPECT_THAT(alone.err, HasSubstr("ready ring:a ring:b\n"));
}

TEST_F(Command, switch__ends_in_order_on_signals) {
  for (const std::string signal : {"INT", "TERM"}) {
    const Outcome ran = done(
        "switch --port ring:a --port ring:b --json c.json >live & p=$!; until grep -q ^ready live; do "
        "sleep 0.02; done; kill -" +
        signal + " $p; wait $p");
    EXPECT_THAT(content(folder_ / "live"), HasSubstr("longest queue"));
    EXPECT_THAT(content(folder_ / "c.json"), EndsWith("}\n"));
    fs::remove(folder_ / "c.json");
    fs::remove(folder_ / "live");
  }
}
#endif

}  // namespace
}  // namespace mltcp::tools
