// The subcommands of `mltcp`. Each writes to standard output what it found, throws InputError or RunError for what
// went wrong, and returns the exit status of success or of work that failed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/experiment/backends/datapath.h"
#include "mltcp/experiment/files/experiment_file.h"
#include "mltcp/experiment/files/switch_file.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/transport/udp_port.h"

namespace mltcp::tools {

/// What this build can run.
experiment::FileOptions file_options();

/// What was measured, as tables and lines on `out`, and with warnings on standard error; then as JSON to `json`, if it
/// is given. Throws RunError where messages arrived damaged.
void print_results(const experiment::Results& results, const experiment::Datapath& datapath, const std::string& file,
                   const std::optional<std::string>& json, std::FILE* out);
/// Keeps what there is so far in the file `json`, if one is given that can be replaced: standard output gets it once,
/// in the end. Warns where that fails: in the end it may not.
void keep_results(const experiment::Results& so_far, const std::optional<std::string>& json);
/// "two-vgg19: 2 jobs, 60 iterations, reno at 1 Gbps, on sim (virtual time)".
std::string headline(const experiment::Experiment& experiment, const experiment::Datapath& datapath);
/// On standard error, and whether that can be written is no matter.
void warn(const std::vector<std::string>& warnings);

struct RunArguments {
  std::string file;
  std::optional<std::string> datapath;
  std::optional<std::string> cc;
  std::vector<std::string> policies;
  std::optional<std::uint32_t> iterations;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> cores;  ///< of datapath ring only
  std::optional<std::string> json;   ///< file, or "-" for standard output
  std::string plan;                  ///< file; empty: plans are computed
  bool verify = false;               ///< carry and verify payloads in virtual time too
  std::uint32_t threads = 0;         ///< runs at a time in virtual time; 0: one a core
};
int run(const RunArguments& arguments);

struct SweepArguments {
  std::string file;
  std::vector<std::string> vary;       ///< "KEY=VALUE,VALUE"
  std::optional<std::uint32_t> seeds;  ///< how many
  std::vector<std::string> policies;   ///< empty: the file's
  std::optional<std::string> output;   ///< folder of the records
  std::optional<std::string> shard;    ///< "i/n" or "auto"
  std::vector<std::string> merge;      ///< folders
  std::uint32_t threads = 0;           ///< 0: one a core
  bool full = false;                   ///< keep series of iterations
  bool no_run = false;                 ///< show what is there
  std::optional<std::string> json;     ///< files, or "-" for standard output
  std::optional<std::string> markdown;
  std::optional<std::string> csv;
};
int sweep(const SweepArguments& arguments);

struct ScheduleArguments {
  std::string file;
  bool measure = false;               ///< demands from the simulator
  std::uint32_t angles = 0;           ///< this and the next four: see scheduler::SolveOptions
  std::optional<double> max_stretch;  ///< share of a period; default: the file's, like the next two
  std::optional<double> drift;
  std::optional<double> slack;  ///< if the file has none: what a plan needs, or 0 without one
  std::uint32_t max_repetitions = 32;
  std::optional<std::string> json;  ///< files, or "-" for standard output
  std::optional<std::string> report;
  std::optional<std::string> plan;
};
int schedule(const ScheduleArguments& arguments);

struct ClusterArguments {
  std::string file;
  std::optional<std::string> level;    ///< "packet" or "flow"
  std::vector<std::string> schemes;    ///< empty: the file's
  std::optional<std::uint64_t> seed;   ///< the first
  std::optional<std::uint32_t> seeds;  ///< how many
  std::uint32_t threads = 0;           ///< 0: one a core
  std::optional<std::string> json;     ///< files, or "-" for standard output
  std::optional<std::string> markdown;
  bool models = false;  ///< list the models that jobs may train instead; there is no file then
};
int cluster(const ClusterArguments& arguments);

struct InspectArguments {
  std::string file;
  bool toml = false;
  std::optional<std::string> name;  ///< default: the file's
  std::uint32_t workers = 0;        ///< 0: the mapping's default
  std::string network;              ///< empty: the mapping's default
  double compute_scale = 1.0;
  double bytes_scale = 1.0;
  std::string rate = "100 Gbps";
};
int inspect(const InspectArguments& arguments);

struct ReportArguments {
  std::vector<std::string> results;   ///< one file, or two to compare
  std::optional<std::string> output;  ///< the page; default: the name of the results, or of both, with .html
  std::optional<std::string> svg;     ///< a picture instead, or "-" for standard output
  std::optional<std::string> chart;   ///< of the picture; default: usage
  std::vector<std::string> policies;  ///< of the picture; empty: its default
};
int report(const ReportArguments& arguments);

struct SwitchArguments {
  std::string file;  ///< empty: none
  experiment::SwitchWords words;
  std::optional<std::string> duration;
  std::string cores;                       ///< empty: the first that may be used
  std::optional<std::uint32_t> memory_mb;  ///< default: what the ports need
  std::optional<std::string> json;         ///< file, or "-" for standard output
  std::optional<std::string> every;        ///< counters there as a series, too
};
int run_switch(const SwitchArguments& arguments);

struct GenArguments {
  RunArguments run;  ///< file empty: this is a host
  std::optional<std::string> serve;
  std::optional<std::string> join;
  bool mpi = false;
  bool ranks = false;        ///< show each rank
  std::string wait = "60s";  ///< for hosts to join; on hosts, for the coordinator
  std::string port;
  std::string ip;
  std::string gateway;
  std::optional<std::uint32_t> host;
  std::uint16_t udp_port = default_udp_port;
  std::string idle = "pause";
  std::string cores;
  std::optional<std::uint32_t> memory_mb;
  std::uint32_t mtu = 0;
  std::uint16_t queues = 1;
  std::vector<std::string> load;  ///< FILE.so:NAME: congestion controls that jobs may have
  /// Options that were given and are the coordinator's, and a host's: "--policy". With MPI each process takes its part.
  std::vector<std::string> for_coordinator;
  std::vector<std::string> for_host;
};
int gen(const GenArguments& arguments);

struct TestbedArguments {
  std::string file;                    ///< empty with `hosts`
  std::vector<std::string> gen;        ///< options of `mltcp gen`
  std::optional<std::uint32_t> hosts;  ///< a testbed without an experiment
  std::optional<std::string> command;  ///< run in it
  experiment::SwitchWords words;       ///< of its switch
  std::string device = "af_xdp";       ///< or af_packet
  std::optional<std::uint32_t> mtu;    ///< default: the experiment's, or 1500
  std::string idle;                    ///< spin, pause, sleep; empty: as CPUs allow
  std::string cores;                   ///< empty: all that may be used
  bool realtime = false;               ///< processes take precedence over all else on the machine
  bool keep = false;
  bool shell = false;
  bool dry_run = false;
  std::optional<std::string> log_dir;
  std::optional<std::string> json;  ///< file, or "-" for standard output
};
int testbed(const TestbedArguments& arguments);

struct AlgorithmsArguments {
  std::vector<std::string> names;   ///< NAME or FILE.so:NAME; empty: all that there are
  bool markdown = false;            ///< their parameters as a table
  std::optional<std::string> json;  ///< file, or "-" for standard output
};
int algorithms(const AlgorithmsArguments& arguments);

struct DoctorArguments {
  std::vector<std::string> ports;   ///< to be opened
  std::optional<std::string> json;  ///< file, or "-" for standard output
};
/// 1 if one of the ports can't be had.
int doctor(const DoctorArguments& arguments);

}  // namespace mltcp::tools
