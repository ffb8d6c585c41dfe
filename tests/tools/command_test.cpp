// Tests the command `mltcp` as users see it: its exit status, its output, and one line of error message for each
// mistake.
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "command_fixture.h"

namespace mltcp::tools {
namespace {

namespace fs = std::filesystem;

TEST_F(Command, none_or_unknown__named_with_the_list) {
  const std::string list =
      "the commands are run, sweep, schedule, advise, cluster, inspect, profile, replay, report, switch, gen, testbed, "
      "scheduler, perf, soak, key, top, kernel, algorithms, "
      "doctor, help; see mltcp --help\n";
  EXPECT_EQ(refusal(""), "mltcp: no command is given; " + list);
  EXPECT_EQ(refusal("bogus e.toml"), "mltcp: \"bogus\" is not a command; " + list);
  EXPECT_THAT(refusal("run"), HasSubstr("EXPERIMENT.toml is required; see mltcp run --help"));
  EXPECT_EQ(refusal("bogus --help"), "mltcp: \"bogus\" is not a command; " + list);
  EXPECT_EQ(refusal("bogus inspect --help"), "mltcp: \"bogus\" is not a command; " + list);
  EXPECT_EQ(refusal("inspec --version"),
            "mltcp: \"inspec\" is not a command; did you mean \"inspect\"? see mltcp --help\n");
}

TEST_F(Command, kernel__options_of_another_action_are_told) {
  // the answer if this build has no support for kernel TCP
  const std::string without = "MLTCP for kernel TCP is not available: ";
  EXPECT_THAT(refusal("kernel lod"), HasSubstr("did you mean \"load\"?"));
  EXPECT_THAT(
      refusal("kernel status --cc reno"),
      AnyOf(HasSubstr("--cc is an option of mltcp kernel load and unload, not of status;"), HasSubstr(without)));
  EXPECT_THAT(refusal("kernel set"), AnyOf(HasSubstr("give --function, --gap or --bytes"), HasSubstr(without)));
  EXPECT_THAT(refusal("kernel load --function F9"), AnyOf(HasSubstr("there are F1, F2, F3"), HasSubstr(without)));
  EXPECT_THAT(refusal("kernel load --function 0:1,1:2"),
              AnyOf(HasAll("\"0:1,1:2\" is no aggressiveness function", "\"reciprocal A B\"", "\"table 0 0.25 1 2\""),
                    HasSubstr(without)));
  EXPECT_THAT(refusal("kernel load --cc vegas"),
              AnyOf(HasSubstr("give one of reno, cubic, dctcp"), HasSubstr(without)));
}

TEST_F(Command, words_that_are_near__are_asked_for) {
  EXPECT_EQ(refusal("rnu e.toml"), "mltcp: \"rnu\" is not a command; did you mean \"run\"? see mltcp --help\n");
  EXPECT_EQ(refusal("help shcedule"),
            "mltcp: \"shcedule\" is not a command; did you mean \"schedule\"? see mltcp --help\n");
  EXPECT_EQ(refusal("run e.toml --polcy fair"),
            "mltcp: \"--polcy\" is not an option of mltcp run; did you mean \"--policy\"? see mltcp run --help\n");
  EXPECT_EQ(
      refusal("run e.toml --iteration=3"),
      "mltcp: \"--iteration\" is not an option of mltcp run; did you mean \"--iterations\"? see mltcp run --help\n");
  EXPECT_EQ(refusal("--versoin"),
            "mltcp: \"--versoin\" is not an option of mltcp; did you mean \"--version\"? see mltcp --help\n");
  EXPECT_THAT(run("gen --help").out, HasAll("\nOptions of the coordinator:\n", "\nOptions of a host:\n"));
  EXPECT_THAT(run("testbed --help").out, HasSubstr("--idle WORD:{spin,pause,sleep}"));
  EXPECT_THAT(run("kernel --help").out, HasSubstr("--cc NAME,... "));
  EXPECT_THAT(refusal("sweep e.toml --series s.json"),
              HasAll("\"--series\" is not an option of mltcp sweep, but of mltcp ", "run", "; see mltcp sweep --help"));
  for (const std::string command : {"inspect", "replay", "advise", "run", "schedule", "report"})
    EXPECT_EQ(refusal(command + " -x.json"), "mltcp: \"-x.json\" is not an option of mltcp " + command +
                                                 "; if it is a file, write \"./-x.json\"; see mltcp " + command +
                                                 " --help\n");
  EXPECT_EQ(refusal("inspect --rat 1"),
            "mltcp: \"--rat\" is not an option of mltcp inspect; did you mean \"--rate\"? see mltcp inspect --help\n");
  EXPECT_EQ(refusal("run e.toml -q"), "mltcp: \"-q\" is not an option of mltcp run; see mltcp run --help\n");
  EXPECT_EQ(refusal("run e.toml f.toml"), "mltcp: \"f.toml\": unexpected argument; see mltcp run --help\n");
  EXPECT_THAT(refusal("testbed e.toml --idle sleeep"),
              HasSubstr("\"sleeep\" is not known; did you mean \"sleep\"? see mltcp testbed --help"));
  EXPECT_THAT(refusal("testbed e.toml --idle 7"),
              HasSubstr("\"7\" is not known; write one of spin, pause, sleep; see mltcp testbed --help"));
  EXPECT_THAT(refusal("testbed e.toml --iterations 8"),
              HasSubstr("--iterations is an option of mltcp gen; write options of mltcp gen after \"--\", e.g. mltcp "
                        "testbed EXPERIMENT.toml -- --iterations ...;"));
}

TEST_F(Command, values_that_are_missing__are_told_in_words) {
  EXPECT_EQ(refusal("run e.toml --json"),
            "mltcp: --json needs a file to write to, or - for standard output, e.g. --json results.json; see mltcp run "
            "--help\n");
  EXPECT_EQ(refusal("run e.toml --json --policy fair"),
            "mltcp: --json needs a file to write to, or - for standard output, e.g. --json results.json, but is "
            "followed by --policy; see mltcp run --help\n");
  EXPECT_EQ(refusal("run e.toml --iterations="),
            "mltcp: --iterations needs a whole number, e.g. --iterations 60; see mltcp run --help\n");
  EXPECT_THAT(refusal("report r.json -o"),
              StartsWith("mltcp: --output needs a file or folder to write to, e.g. --output out;"));
  EXPECT_THAT(refusal("testbed e.toml --json -- --policy fair"), HasSubstr("but is followed by --;"));
  EXPECT_THAT(run("run e.toml --json -").out, StartsWith("{")) << "- is a value";
  // In the help text, each option that needs a value has a descriptive placeholder instead of a type such as TEXT.
  std::size_t options = 0;
  for (const std::string command : {"run", "sweep", "schedule", "advise", "cluster", "inspect", "replay", "report",
                                    "switch", "gen", "testbed", "top", "doctor"}) {
    std::istringstream help(run(command + " --help").out);
    for (std::string line; std::getline(help, line);) {
      const std::size_t begin = line.starts_with("  -") ? line.find("--") : std::string::npos;
      if (begin == std::string::npos || line.find("--help") != std::string::npos) continue;
      const std::string name = line.substr(begin, line.find(' ', begin) - begin);
      const std::string word = line.substr(begin + name.size(), 2);
      if (word.size() < 2 || word[1] == ' ') continue;  // the option has no value
      ++options;
      EXPECT_THAT(line, Not(AnyOf(HasSubstr(" TEXT"), HasSubstr(" UINT"), HasSubstr(" FLOAT")))) << command;
      EXPECT_THAT(refusal(command + " " + name),
                  AllOf(StartsWith("mltcp: " + name + " needs "), HasSubstr(", e.g. " + name + " ")));
    }
  }
  EXPECT_GT(options, 80U);
}

TEST_F(Command, numbers__of_something_else_are_told_what_is_wanted) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"run e.toml --iterations ten", "--iterations: \"ten\" is not a whole number from 1 to 1000000"},
      {"run e.toml --iterations 0", "--iterations: \"0\" is not a whole number from 1 to 1000000"},
      {"run e.toml --iterations 1.5", "--iterations: \"1.5\" is not a whole number from 1 to 1000000"},
      {"run e.toml --seed ten", "--seed: \"ten\" is not a whole number from 0 to"},
      {"run e.toml --datapath ring --cores ten", "--cores: \"ten\" is not a list of CPUs; write their numbers"},
      {"gen --join x --host ten", "--host: \"ten\" is not a whole number from 0 to"},
      {"testbed --hosts ten", "--hosts: \"ten\" is not a whole number from 2 to"},
      {"inspect t.txt --compute-scale ten", "--compute-scale: \"ten\" is not a number above 0 and at most"},
      {"inspect t.txt --bytes-scale nan", "--bytes-scale: \"nan\" is not a number above 0 and at most"},
      {"inspect t.txt --rate ten", "--rate: \"ten\" is not a rate: "},
      {"schedule e.toml --drift ten", "--drift: \"ten\" is not a number from 0 to 0.5"},
      {"switch --port ring:a --port ring:b --classes ten", "--classes: \"ten\" is not a whole number from 1 to 8"},
      {"switch --port ring:a --port ring:b --seed ten", "--seed: \"ten\" is not a whole number from 0 to"},
  };
  for (const auto& [arguments, message] : cases) EXPECT_THAT(refusal(arguments), StartsWith("mltcp: " + message));
}

TEST_F(Command, files_of_another_command__are_told_what_they_are_and_what_takes_them) {
  done("run e.toml --json r.json");
  done("schedule e.toml --json schedule.json --plan plan.json");
  done("sweep e.toml --vary iterations=2 --json table.json");
  put("sweep.toml", "experiment = \"e.toml\"\n[vary]\nseed = [1, 2]\n");
  put("cluster.toml", "[topology]\nkind = \"leaf-spine\"\n[arrivals]\njobs = 1\n");
  put("switch.toml", "[[port]]\ndevice = \"ring:a\"\n[[port]]\ndevice = \"ring:b\"\n");
  put("profile.csv", "# measured\ntime_ms,rate_bps\n0,0\n10,1e6\n20,0\n");
  put("of-cluster.toml", "experiment = \"cluster.toml\"\n");
  const std::string experiment = "this is an experiment file, but ";
  const std::string results = "this is a file of results, but ";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"inspect r.json",
       "r.json: " + results + "a trace or a demand profile is expected; to read it, run mltcp report r.json\n"},
      {"inspect e.toml", "e.toml: " + experiment +
                             "a trace or a demand profile is expected; to run it, use mltcp run e.toml --json "
                             "results.json, or give it to mltcp schedule, sweep, gen or testbed\n"},
      {"inspect plan.json",
       "plan.json: this is a plan, but a trace or a demand profile is expected; give it to mltcp run"},
      {"cluster sweep.toml",
       "sweep.toml: this is a sweep file, but a cluster file is expected; to run it, use mltcp sweep "},
      {"cluster e.toml", "e.toml: " + experiment + "a cluster file is expected; to run it, use mltcp run "},
      {"cluster r.json", "r.json: " + results + "a cluster file is expected; "},
      {"run cluster.toml",
       "cluster.toml: this is a cluster file, but an experiment file is expected; to run it, use mltcp "},
      {"run sweep.toml",
       "sweep.toml: this is a sweep file, but an experiment file is expected; to run it, use mltcp sweep"},
      {"run switch.toml",
       "switch.toml: this is a switch file, but an experiment file is expected; to use it, run mltcp sw"},
      {"run t.txt",
       "t.txt: this is a trace (ASTRA-sim text), but an experiment file is expected; to read it, use mltcp inspect"},
      {"run profile.csv",
       "profile.csv: this is a demand profile, but an experiment file is expected; to read it, use mltcp"},
      {"run schedule.json",
       "schedule.json: this is a schedule, but an experiment file is expected; to read it, run mltcp re"},
      {"schedule table.json",
       "table.json: this is the results of a sweep, but an experiment file is expected; to read it"},
      {"sweep cluster.toml", "cluster.toml: this is a cluster file, but a sweep or an experiment file is expected; "},
      {"sweep of-cluster.toml", "./cluster.toml: this is a cluster file, but an experiment file is expected; "},
      {"run r.json", "r.json: " + results + "an experiment file is expected; "},
      {"report e.toml",
       "e.toml: " + experiment +
           "a file that --json of mltcp run, gen, testbed, sweep, cluster or schedule wrote is expected; to run it, "
           "use mltcp run e.toml --json results.json, or give it to mltcp schedule, sweep, gen or testbed\n"},
      {"report plan.json", "plan.json: this is a plan, but a file that --json of mltcp run, gen, "},
      {"report cluster.toml", "cluster.toml: this is a cluster file, but a file that --json of mltcp run, gen, "},
      {"gen cluster.toml --serve unix:s", "cluster.toml: this is a cluster file, but an experiment file is expected; "},
  };
  for (const auto& [arguments, message] : cases) {
    std::string said = refusal(arguments);
    if (said.starts_with("mltcp: cluster.toml") && message.starts_with("./")) said.insert(7, "./");
    EXPECT_THAT(said, StartsWith("mltcp: " + message)) << arguments;
  }
#if MLTCP_HAS_DPDK
  EXPECT_THAT(refusal("switch --file e.toml"), HasSubstr(experiment + "a switch file is expected; "));
#endif
  // A file that mixes keys of two kinds gets the usual message about a wrong key.
  put("mixed.toml", content(folder_ / "e.toml") + "[arrivals]\njobs = 1\n");
  EXPECT_THAT(refusal("run mixed.toml"),
              HasSubstr("mixed.toml:9: arrivals: unknown key; the key belongs to a cluster file"));
  EXPECT_THAT(run("run r.json <r.json; " MLTCP_PROGRAM " inspect <(cat r.json) 2>&1 | head -1").out,
              HasSubstr("mltcp: /dev/fd/"))
      << "a pipe is read once";
}

TEST_F(Command, files_that_do_not_exist__have_no_line_and_the_nearest_is_named) {
  put("two-jobs.toml", content(folder_ / "e.toml"));
  for (const std::string command : {"run", "sweep", "schedule", "cluster", "inspect", "report"})
    EXPECT_EQ(refusal(command + " two-job.toml"),
              "mltcp: two-job.toml: there is no such file; did you mean \"two-jobs.toml\"?\n");
}

TEST_F(Command, version__is_that_of_this_program_and_of_no_other_that_was_there) {
  std::string info = content(fs::path(MLTCP_PROGRAM).parent_path().parent_path() / "lib/mltcp/build.json");
  ASSERT_THAT(info, HasSubstr("\"build_id\": \""));
  const std::size_t commit = info.find("\"commit\": \"") + 11;
  info.replace(commit, info.find('"', commit) - commit, "1234567890abcdef");
  fs::create_directories(folder_ / "bin");
  fs::create_directories(folder_ / "lib/mltcp");
  fs::copy_file(MLTCP_PROGRAM, folder_ / "bin/mltcp");
  put("lib/mltcp/build.json", info);
  EXPECT_THAT(run("--version >/dev/null; bin/mltcp --version").out, HasSubstr(" (1234567890ab"));
  char& digit = info[info.find("\"build_id\": \"") + 13];
  digit = digit == '0' ? '1' : '0';
  put("lib/mltcp/build.json", info);
  EXPECT_THAT(run("--version >/dev/null; bin/mltcp --version").out, Not(HasSubstr("(")));
}

TEST_F(Command, help_and_version__in_each_way_that_is_usual) {
  const Outcome help = done("--help");
  EXPECT_THAT(help.out, HasAll("Usage: ", "testbed"));
  EXPECT_EQ(run("help").out, help.out);
  const Outcome of_run = run("run --help");
  EXPECT_THAT(of_run.out, HasSubstr("EXPERIMENT.toml"));
  EXPECT_EQ(run("help run").out, of_run.out);
  const Outcome version = done("--version");
  EXPECT_THAT(version.out, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*\n"));
  EXPECT_EQ(run("-V").out, version.out);
}

// script(1) runs the command on a pseudo-terminal.
TEST_F(Command, colours__on_a_terminal_that_takes_them_alone) {
  if (run("--version >/dev/null; command -v script >/dev/null").status != 0) GTEST_SKIP() << "there is no script(1)";
  const auto typed = [&](const std::string& setting, const std::string& words) {
    put("typed.sh", setting + " exec " MLTCP_PROGRAM " " + words + "\n");
    return run("--version >/dev/null; script -qec \"bash typed.sh\" /dev/null </dev/null").out;
  };
  const std::string red = "\033[1;31mmltcp:\033[0m ";
  EXPECT_THAT(typed("TERM=xterm NO_COLOR=", "bogus"), StartsWith(red + "\"bogus\" is not a command"));
  EXPECT_THAT(typed("TERM=dumb NO_COLOR=", "bogus"), StartsWith("mltcp: \"bogus\""));
  EXPECT_THAT(typed("TERM=xterm NO_COLOR=1", "bogus"), StartsWith("mltcp: \"bogus\""));
  EXPECT_THAT(run("bogus").err, StartsWith("mltcp: \"bogus\""));
  // Colours take no space: without the colour codes, the table equals the one without colours.
  std::string plain = run("run e.toml").out;
  plain = plain.substr(plain.find("policy"), plain.find("\n\n", plain.find("policy")) - plain.find("policy"));
  std::string painted = typed("TERM=xterm NO_COLOR=", "run e.toml");
  EXPECT_THAT(painted, HasSubstr("\033[32m1.000\033[0m"));
  for (const std::string code : {"\033[32m", "\033[0m", "\r"})
    for (std::size_t at = painted.find(code); at != std::string::npos; at = painted.find(code))
      painted.erase(at, code.size());
  EXPECT_THAT(painted, HasSubstr(plain));
}

TEST_F(Command, run__writes_results_that_report_reads) {
  const Outcome ran = done("run e.toml --json o.results.json");
  EXPECT_THAT(ran.out, HasSubstr("e: 1 job, 2 iterations"));
  EXPECT_EQ(ran.err, "");
  const Outcome reported = done("report o.results.json");
  EXPECT_EQ(reported.out, "o.results.html\n");
  EXPECT_THAT(content(folder_ / "o.results.html"), HasSubstr("</html>"));
}

TEST_F(Command, results__say_where_they_come_from) {
  put("c.toml",
      "level = \"flow\"\nschemes = [\"ideal\"]\n[topology]\nkind = \"leaf-spine\"\nleaves = 3\n"
      "spines = 1\nhosts_per_leaf = 2\nhost_rate = \"10 Gbps\"\necn = { kmin = \"30 kB\" }\n[arrivals]\njobs = 1\n"
      "at_start = 1\nworkers = 3\niterations = 5\n[[type]]\nname = \"a\"\ncompute = \"6 ms\"\ncommunicate = \"5 "
      "MB\"\n");
  const std::string sum = run("--version >/dev/null; sha256sum e.toml").out.substr(0, 64);
  const std::string experiment = content(folder_ / "e.toml");
  for (const std::string command : {"run e.toml", "sweep e.toml --vary iterations=2", "schedule e.toml"}) {
    const Outcome first = run(command + " --json r.json >/dev/null && cat r.json");
    ASSERT_EQ(first.status, 0) << command << first.err;
    for (const std::string_view field :
         {R"("version": ")", R"("build": ")", R"("date": "20)", R"("sha256": ")", R"("path": "e.toml")", R"("cpus": )",
          R"("kernel": "Linux )", R"("memory_bytes": )"})
      EXPECT_THAT(first.out, HasSubstr(field)) << command;
    EXPECT_THAT(first.out, HasSubstr(sum)) << command;
    EXPECT_THAT(first.out, HasSubstr("communicate = \\\"100 kB\\\"")) << "the experiment itself, " << command;
    // With a fixed date, two runs have identical results.
    const std::string fixed = "--version >/dev/null; export SOURCE_DATE_EPOCH=86400; " MLTCP_PROGRAM " " + command;
    const std::string once = run(fixed + " --json r.json >/dev/null && cat r.json").out;
    EXPECT_THAT(once, HasSubstr("1970-01-02T00:00:00Z")) << command;
    EXPECT_EQ(run(fixed + " --json r.json >/dev/null && cat r.json").out, once) << command;
  }
  EXPECT_THAT(run("cluster c.toml --json -").out, HasAll("\"provenance\"", "\"c.toml\""));
}

TEST_F(Command, run__keeps_what_is_complete_when_it_is_interrupted) {
  // The command writes the file after the first policy. The second policy takes as long as the first, so the signal
  // arrives before the second policy ends.
  put("long.toml",
      "iterations = 700\npolicies = [\"fair\", \"mltcp\"]\n[bottleneck]\nrate = \"1 Gbps\"\n"
      "[[job]]\nname = \"a\"\ncompute = \"1 ms\"\ncommunicate = \"1 MB\"\n"
      "[[job]]\nname = \"b\"\ncompute = \"1 ms\"\ncommunicate = \"1 MB\"\n");
  for (const char* signal : {"INT", "TERM"}) {
    fs::remove(folder_ / "r.json");
    const Outcome ended =
        run(std::string(
                "run long.toml --threads 1 --json r.json & while kill -0 $! && [ ! -e r.json ]; do sleep 0.01; done; "
                "kill -") +
            signal + " $!; wait $!");
    EXPECT_EQ(ended.status, 1) << signal;
    EXPECT_THAT(ended.err, AllOf(StartsWith("mltcp: "), HasSubstr(": 1 of 2 policies is complete and kept in r.json"),
                                 EndsWith("; mltcp is missing\n")))
        << signal;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("\nfair    a "), Not(HasSubstr("\nmltcp ")))) << signal;
    EXPECT_THAT(content(folder_ / "r.json"), HasAll("\"unfinished_policies\": [\"mltcp\"]", "\"provenance\": {"))
        << signal;
    done("report r.json");
  }
}

TEST_F(Command, run__ignored_signals_stay_ignored) {
  put("long.toml",
      "iterations = 200\npolicies = [\"fair\", \"mltcp\"]\n[bottleneck]\nrate = \"1 Gbps\"\n"
      "[[job]]\nname = \"a\"\ncompute = \"1 ms\"\ncommunicate = \"1 MB\"\n");
  const Outcome ended =
      done("--version >/dev/null; trap \"\" HUP INT; " MLTCP_PROGRAM
           " run long.toml --json r.json & "
           "while kill -0 $! && [ ! -e r.json ]; do sleep 0.01; done; kill -HUP $!; kill -INT $!; wait $!");
  EXPECT_THAT(content(folder_ / "r.json"), Not(HasSubstr("unfinished_policies")));
}

TEST_F(Command, date_of_results__that_is_none_is_refused) {
  const std::string given = "--version >/dev/null; SOURCE_DATE_EPOCH=today " MLTCP_PROGRAM " run e.toml";
  const Outcome outcome = run(given);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("SOURCE_DATE_EPOCH: \"today\" is not a whole number of seconds since 1970; set it"));
}

TEST_F(Command, run__results_on_standard_output_are_alone_there) {
  const Outcome ran = done("run e.toml --json -");
  EXPECT_THAT(ran.out, StartsWith("{\n  \"schema\""));
  EXPECT_THAT(ran.err, HasSubstr("e: 1 job"));
  done("run e.toml --json >(cat >piped) && wait $!");
  EXPECT_EQ(without_provenance(content(folder_ / "piped")), without_provenance(ran.out));
  EXPECT_THAT(without_provenance(run("run e.toml --json /dev/stdout").out), EndsWith(without_provenance(ran.out)));
}

TEST_F(Command, run__says_the_mean_of_many_jobs) {
  std::string text = content(folder_ / "e.toml");
  const std::string job = text.substr(text.find("[[job]]"));
  for (char name = 'b'; name <= 'i'; ++name) {
    std::string another = job;
    another.replace(another.find("\"a\"") + 1, 1, 1, name);
    text += another;
  }
  put("nine.toml", text);
  EXPECT_THAT(run("run nine.toml").out, ContainsRegex("\nfair: mean slow-down [1-9][.0-9]* \\([1-9][.0-9]* to"));
  EXPECT_THAT(run("run e.toml").out, Not(HasSubstr("mean slow-down")));
}

TEST_F(Command, run__reads_an_experiment_from_a_pipe) {
  EXPECT_THAT(run("run <(cat e.toml)").out, HasSubstr("1 job, 2 iterations"));
}

TEST_F(Command, report__page_has_the_name_of_the_results) {
  fs::create_directory(folder_ / "all.json.d");
  const Outcome ran = done("run e.toml --json all.json.d/results");
  EXPECT_EQ(run("report all.json.d/results").out, "all.json.d/results.html\n");
  EXPECT_THAT(refusal("report all.json.d/results -o all.json.d/results"), HasSubstr("is also the input file"));
  EXPECT_THAT(refusal("report all.json.d/results -o ''"), HasSubstr("the name is empty"));
  EXPECT_THAT(run("report all.json.d/results -o -").out, HasSubstr("</html>"));
}

TEST_F(Command, output_that_is_lost__is_a_failure) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  for (const char* arguments :
       {"run e.toml > /dev/full", "run e.toml --json - > /dev/full", "inspect t.txt > /dev/full",
        "schedule e.toml > /dev/full", "doctor > /dev/full", "--help > /dev/full"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_THAT(outcome.err, EndsWith("mltcp: standard output cannot be written: No space left on device\n"))
        << arguments;
  }
}

#if MLTCP_HAS_DPDK
TEST_F(Command, doctor__says_what_experiments_across_hosts_need) {
  const Outcome here = run("doctor");
  for (const char* name : {"  mltcp testbed  ", "  mltcp gen  ", "  mltcp gen --mpi  "})
    EXPECT_THAT(here.out, HasSubstr(name));
  const bool lacking = here.out.find("\nmissing  mltcp testbed ") != std::string::npos;
  EXPECT_EQ(here.out.find(", mltcp testbed", here.out.find("\nReady here: ")) != std::string::npos, !lacking)
      << here.out;

  EXPECT_THAT(here.out,
              HasAll("\nReady here: datapath sim, datapath flow", ", endpoints and mltcp perf over udp:, mltcp "));

  // The copied program has no modules in its folder.
  fs::permissions(folder_, fs::perms::all);
  fs::copy_file(MLTCP_PROGRAM, folder_ / "alone");
  const Outcome alone = run("--version; ./alone doctor");
  EXPECT_THAT(alone.out, HasAll("missing  mltcp gen --mpi   the MPI module cannot be loaded (",
                                "  mltcp gen --mpi: install MPI (Debian: libopenmpi-dev, openmpi-bin)"));
  EXPECT_THAT(here.out, HasSubstr("udp: kernel sockets, no privileges needed: "));
  EXPECT_THAT(here.out, ContainsRegex("(ok     |missing)  +kernel TCP  +[^ ]"));
  if (geteuid() != 0) return;
  const Outcome nobody = run("--version; setpriv --reuid 65534 --regid 65534 --clear-groups ./alone doctor");
  EXPECT_THAT(nobody.out, ContainsRegex("(ok     |missing)  +mltcp testbed     not root, "));
  EXPECT_THAT(nobody.out, HasSubstr("a host's port can be udp:, with an address of this machine"));
  if (!lacking) {
    // Simulates a container that may create namespaces but may not create interfaces in them.
    const Outcome bounded = run("--version; setpriv --bounding-set=-net_admin --inh-caps=-net_admin ./alone doctor");
    EXPECT_THAT(bounded.out,
                HasAll("missing  mltcp testbed     namespaces work, but a pair of interfaces cannot be created: ",
                       "  mltcp testbed: run mltcp outside of this container, or give the container CAP_SYS_ADMIN"));
  }
  const Outcome none =
      run("--version; unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_net_namespaces && echo set && ./alone doctor'");
  if (none.out.find("set\n") == std::string::npos) return;  // user namespaces are not available
  EXPECT_THAT(none.out, HasAll("root, but the kernel cannot create a network namespace (No space left on device)",
                               "  mltcp testbed: raise the limit: sysctl user.max_net_namespaces=1000\n"));
}
#else
TEST_F(Command, doctor__without_dpdk_says_what_is_ready) {
  EXPECT_THAT(run("doctor").out, HasSubstr("\nReady here: datapath sim, datapath flow, endpoints and mltcp perf over "
                                           "udp:, mltcp gen. They need no other setup.\n"));
}
#endif

TEST_F(Command, schedule__prints_and_writes) {
  put("two.toml",
      "[bottleneck]\nrate = \"1 Gbps\"\n"
      "[[job]]\nname = \"fast\"\ncompute = \"32 ms\"\ncommunicate = \"1 MB\"\n"
      "[[job]]\nname = \"slow\"\ncompute = \"52 ms\"\ncommunicate = \"1 MB\"\n");
  const Outcome shown = done("schedule two.toml --json two.json --report two.html");
  EXPECT_EQ(shown.err, "");
  EXPECT_THAT(shown.out, HasAll("two: 2 jobs on a link of 1 Gbps, ideal demand", "bottleneck: fully compatible",
                                "90.0         30.000"));
  EXPECT_THAT(content(folder_ / "two.json"), StartsWith("{\n  \"schema\": \"mltcp.schedule/1\""));
  EXPECT_THAT(content(folder_ / "two.html"), EndsWith("</html>\n"));
  const Outcome alone = run("schedule two.toml --json -");
  EXPECT_EQ(without_provenance(alone.out), without_provenance(content(folder_ / "two.json")));
  EXPECT_THAT(alone.err, HasSubstr("fully compatible"));
  EXPECT_THAT(run("schedule e.toml").out, HasSubstr("e: 1 job on a link of 1 Gbps"));
  EXPECT_THAT(run("schedule two.toml --angles 4").out, HasSubstr("30.000"));
  EXPECT_THAT(run("schedule two.toml --plan two.plan.json").out, HasSubstr("measured demand"));
  const Outcome kept = done("run two.toml --policy schedule --iterations 10 --plan two.plan.json");
  EXPECT_THAT(kept.out, Not(HasSubstr("dropped: misfit")));
}

TEST_F(Command, schedule__says_what_a_plan_is_not_worth) {
  EXPECT_THAT(run("schedule e.toml --plan p.json").err, HasSubstr("the jobs share no link; no job needs"));
  put("full.toml",
      "iterations = 4\n[bottleneck]\nrate = \"1 Gbps\"\n"
      "[[job]]\nname = \"a\"\ncompute = \"32 ms\"\ncommunicate = \"3 MB\"\n"
      "[[job]]\nname = \"b\"\ncompute = \"32 ms\"\ncommunicate = \"3 MB\"\n"
      "[[job]]\nname = \"c\"\ncompute = \"32 ms\"\ncommunicate = \"3 MB\"\n");
  const Outcome crowded = done("schedule full.toml --plan p.json --slack 0");
  EXPECT_THAT(crowded.err, HasAll("the plan has slots for jobs that do not fit: link \"bottleneck\" scores 0.",
                                  "; write it with --slack 0."));
  EXPECT_THAT(run("schedule full.toml --plan p.json").err, Not(HasSubstr("the plan"))) << "with room they fit";
  put("none.toml", content(folder_ / "full.toml") + "[schedule]\nslack = 0\n");
  EXPECT_THAT(run("run none.toml --policy mltcp+schedule").out,
              AllOf(HasSubstr("\"a\", \"b\", \"c\" have no slots: slots do not help enough: iterations would take 1."),
                    HasSubstr("to see what would make them fit: mltcp schedule none.toml --measure"),
                    Not(HasSubstr("longer than the jobs' periods"))));
}

TEST_F(Command, words__that_are_wrong_say_what_is_meant) {
  EXPECT_THAT(
      refusal("inspect --rank x t.txt"),
      HasSubstr("--rank: \"x\" is not the number of a rank; write one, e.g. --rank 3; see mltcp inspect --help"));
  EXPECT_THAT(refusal("inspect -rank 3 t.txt"), HasSubstr("did you mean \"--rank\"?"));
  const std::string help = run("help advise").out;
  EXPECT_THAT(help, AllOf(HasSubstr(" FILE...\n"), HasSubstr("--network FILE"), Not(HasSubstr("(1x)"))));
  EXPECT_THAT(run("help inspect").out, HasSubstr("--network WORD"));
}

TEST_F(Command, schedule__refuses_options) {
  EXPECT_THAT(refusal("schedule"), HasSubstr("EXPERIMENT.toml is required; see mltcp schedule --help"));
  EXPECT_THAT(refusal("schedule none.toml"), HasSubstr("there is no such file"));
  EXPECT_THAT(refusal("schedule e.toml --json ''"), HasSubstr("the name is empty"));
  EXPECT_THAT(refusal("schedule e.toml --json - --plan -"),
              HasSubstr("only one of these options can write to standard output"));
  EXPECT_THAT(refusal("schedule e.toml --json e.toml"), HasSubstr("is also the input file"));
  for (const char* files : {"--json x --report ./x", "--json x --plan x", "--report x --plan x"})
    EXPECT_THAT(refusal(std::string("schedule e.toml ") + files), HasSubstr("; name different files")) << files;
  EXPECT_THAT(refusal("schedule e.toml --report no/such/page.html"), HasSubstr("the folder"));
  for (const char* option : {"--drift nan", "--drift 0.6", "--drift -1", "--max-stretch nan", "--max-stretch x",
                             "--slack nan", "--slack -0.1", "--angles -1", "--angles 1.5", "--max-repetitions 0"})
    EXPECT_THAT(refusal(std::string("schedule e.toml ") + option), HasSubstr("see mltcp schedule --help")) << option;
}

TEST_F(Command, run__refuses_options) {
  EXPECT_THAT(refusal("run e.toml --json ''"), StartsWith("mltcp: --json: the name is empty; "));
  EXPECT_THAT(refusal("run e.toml --json e.toml"), HasSubstr("is also the input file"));
  EXPECT_THAT(refusal("run e.toml --policy schedule --json x --plan x"), HasSubstr("; name different files"));
  EXPECT_THAT(refusal("run e.toml --policy fair,fair"), HasSubstr("\"fair\" appears twice; write it once"));
  EXPECT_THAT(refusal("run e.toml --cores 99"), StartsWith("mltcp: --cores is for datapath ring"));
  for (const char* seed : {"99999999999999999999", "9223372036854775808", "-1", "1.5", "0x10", "''"})
    EXPECT_THAT(refusal(std::string("run e.toml --seed ") + seed),
                HasSubstr("is not a whole number from 0 to 2^63 - 1; see mltcp run --help"))
        << seed;
  done("run e.toml --seed 9223372036854775807");
  EXPECT_THAT(refusal("run e.toml --iterations 0"), HasSubstr("--iterations"));
  put("long.toml",
      "[bottleneck]\nrate = \"1 Gbps\"\n[[job]]\nname = \"a\"\ncompute = \"20 min\"\ncommunicate = \"1 B\"\n");
  EXPECT_THAT(refusal("run long.toml --iterations 10000"),
              StartsWith("mltcp: --iterations: 10000 iterations of job[1] take 138.889 days or more; "));
}

TEST_F(Command, run__looks_at_a_plan_before_it_prints) {
  put("bad.json", "{ \"schema\": \"mltcp.plan/1\", x }");
  for (const char* plan : {"bad.json", "none.json"}) {
    const Outcome outcome = run(std::string("run e.toml --policy schedule --plan ") + plan);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(StartsWith(std::string("mltcp: ") + plan + ": "), Not(HasSubstr("exception"))));
  }
}

#if MLTCP_HAS_DPDK
TEST_F(Command, run__too_many_jobs_for_the_ring_are_named) {
  std::string text = "[bottleneck]\nrate = \"1 Gbps\"\n";
  for (int i = 0; i < 9; ++i) text += "[[job]]\nname = \"" + std::to_string(i) + "\"\ncommunicate = \"1 MB\"\n";
  put("many.toml", text);
  EXPECT_THAT(refusal("run many.toml --datapath ring"),
              StartsWith("mltcp: many.toml:27: job: there are 9 jobs, but datapath ring has ports for 8; "));
}
#endif

TEST_F(Command, inspect__name_is_one_that_reads_back) {
  EXPECT_THAT(run("inspect t.txt --toml").out, StartsWith("[[job]]\nname = \"t\"\n"));
  EXPECT_THAT(refusal("inspect t.txt --toml --name $'a\\xff'"), HasSubstr("--name: the name has control characters"));
  EXPECT_THAT(refusal("inspect t.txt --toml --name $'a\\nb'"), HasSubstr("--name: the name has control characters"));
  EXPECT_THAT(refusal("inspect t.txt --toml --name ''"), HasSubstr("--name: the name is empty"));
}

TEST_F(Command, inspect__profile_says_what_it_asks_for) {
  put("p.csv", "time_ms,rate_bps\n0,0\n70,300e6\n90,0\n130,500e6\n140,950e6\n200,0\n210,0\n");
  const Outcome shown = done("inspect p.csv --rate '1 Gbps'");
  EXPECT_EQ(shown.out,
            "p.csv: measured profile of one iteration, 6 steps\n"
            "an iteration takes 210.000 ms and sends 8.500 MB for 42.9% of them, in 2 bursts at up to 950 Mbps\n"
            "alone on 1 Gbps it takes 210.000 ms and sends for 42.9% of them\n"
            "  at    70.000 ms for    20.000 ms  750.000 kB, at 300.000 Mbps on average and up to 300.000 Mbps\n"
            "  at   130.000 ms for    70.000 ms    7.750 MB, at 885.714 Mbps on average and up to 950.000 Mbps\n");
  // The job that --toml prints gives the same schedule as the profile itself.
  put("of_toml.toml", "[bottleneck]\nrate = \"1 Gbps\"\n" + run("inspect p.csv --toml").out);
  put("of_csv.toml", "[bottleneck]\nrate = \"1 Gbps\"\n[[job]]\nname = \"p\"\nprofile = \"p.csv\"\n");
  const std::string as_toml = run("schedule of_toml.toml").out;
  EXPECT_THAT(as_toml, HasSubstr("210.000"));
  EXPECT_EQ(as_toml.substr(as_toml.find(':')), run("schedule of_csv.toml").out.substr(std::string("of_csv").size()));
  EXPECT_THAT(refusal("inspect p.csv --workers 4"),
              HasSubstr("a measured profile already states what was sent, and when; "));
  put("p.csv", "time,rate_bps\n0,1e9\n5,0\n");
  EXPECT_THAT(refusal("inspect p.csv"), StartsWith("mltcp: p.csv:1: header: \"time\" is not a time with its unit; "));
}

TEST_F(Command, soak__runs_a_round_and_says_what_it_came_to) {
  const Outcome outcome = done("soak --seed 22 --round 5 --json soak.json");
  EXPECT_THAT(outcome.out, HasAll("\nfailures      0, and no stall\n", "each compared with what was sent"));
  EXPECT_THAT(outcome.out, StartsWith("datapath      sim, seed 22\n"));
  EXPECT_THAT(content(folder_ / "soak.json"), HasSubstr("\"failures\": []"));
}

TEST_F(Command, soak__runs_over_ports_that_are_named) {
  const Outcome outcome =
      done("soak --port udp:lo --ip 127.0.0.1/8 --port udp:lo --ip 127.0.0.1/8 --seed 5 --round 2 --json soak.json");
  EXPECT_THAT(outcome.out, AllOf(StartsWith("datapath      ports, seed 5\nport          udp:lo, 127.0.0.1/8\n"),
                                 HasSubstr("\nfailures      0, and no stall\n")));
  EXPECT_THAT(content(folder_ / "soak.json"), HasAll("\"datapath\": \"ports\"", "\"device\": \"udp:lo\""));
}

#if MLTCP_HAS_DPDK
TEST_F(Command, soak__runs_over_ports_of_dpdk) {
  if (run("--version > /dev/null; unshare -rn sh -c 'ip link add v0 type veth peer name v1'").status != 0)
    GTEST_SKIP() << "no network namespaces with veth here: unshare -rn ip link add fails";
  put("pair.sh",
      "set -e\nip link add v0 type veth peer name v1\nip link set v0 up\nip link set v1 up\n" MLTCP_PROGRAM
      " soak --port af_packet:v0 --ip 10.0.0.1/24 --port af_packet:v1 --ip 10.0.0.2/24 --seed 5 --round 2\n");
  const Outcome outcome = done("--version > /dev/null; unshare -rn sh pair.sh");
  EXPECT_THAT(outcome.out, HasAll("\nport          af_packet:v1, 10.0.0.2/24\n", "\nfailures      0, and no stall\n"));
}
#endif

TEST_F(Command, soak__refuses_with_the_cause) {
  EXPECT_THAT(refusal("soak --datapath flow"), HasSubstr("sim, ring, udp, ports"));
  EXPECT_THAT(refusal("soak --datapath ports"), HasSubstr("give --port and --ip twice or more"));
  EXPECT_THAT(refusal("soak --port udp:lo"), HasSubstr("--port is given once and --ip not at all"));
  EXPECT_THAT(refusal("soak --datapath sim --port udp:lo --ip 127.0.0.1/8"), HasSubstr("--port with --datapath sim"));
  EXPECT_THAT(refusal("soak --port udp:lo --ip 127.0.0.1 --port udp:lo --ip 127.0.0.1"), HasSubstr("no prefix length"));
  EXPECT_THAT(refusal("soak --cores 0"), HasSubstr("--cores is for datapath ring"));
  EXPECT_THAT(refusal("soak --round 3 --duration 5s"), HasSubstr("leave out --duration, or --round"));
  EXPECT_THAT(refusal("soak --duration 0s"), HasSubstr("the duration is 0; give more, such as 20s"));
  EXPECT_THAT(refusal("soak --duration 5"), HasSubstr("--duration"));
  EXPECT_THAT(refusal("soak --round 0"), HasSubstr("--round"));
}

TEST_F(Command, help__names_defaults) {
  const std::string cluster = run("cluster --help").out;
  for (const char* text : {"default: the file's, or packet", "or locality,compatible,compatible+schedule,"})
    EXPECT_THAT(cluster, HasSubstr(text));
  const std::string schedule = run("schedule --help").out;
  for (const char* text : {"0: any nanosecond; default 0", "the file's, or 0.02", "default 32", "tolerance, or 0.05",
                           "default: the file's, or 0; with --plan"})
    EXPECT_THAT(schedule, HasSubstr(text));
}

TEST_F(Command, messages__are_one_line_whatever_the_names_hold) {
  EXPECT_THAT(refusal("run $'no\\nsuch\\x1b[31m.toml'"),
              StartsWith("mltcp: no?such?[31m.toml: there is no such file; "));
  EXPECT_THAT(refusal("inspect $'no\\nsuch'"), StartsWith("mltcp: no?such: there is no such file"));
  EXPECT_THAT(refusal("report $'no\\nsuch'"), StartsWith("mltcp: no?such: there is no such file"));
  EXPECT_THAT(refusal("run e.toml $'--bo\\ngus'"), HasSubstr("--bo?gus"));
  EXPECT_THAT(refusal("run e.toml --cc $'re\\nno'"),
              StartsWith("mltcp: --cc: there is no congestion control \"re?no\"; "));
}

TEST_F(Command, input__is_a_file_of_bounded_size) {
  for (const char* arguments : {"run /dev/zero", "inspect /dev/zero", "report /dev/zero"})
    EXPECT_THAT(refusal(arguments), HasSubstr("this is a device or socket, not a file"));
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(refusal("run fifo"), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal("inspect fifo"), HasSubstr("it holds nothing"));
}

}  // namespace
}  // namespace mltcp::tools
