// Describes and checks the values of options (see option_values.h).
#include "option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"

namespace mltcp::tools {
namespace {

/// Options whose values are described in the same way, with an example for each option.
struct Kind {
  std::string_view word;
  std::string_view needs;
  std::vector<std::pair<std::string_view, std::string_view>> examples;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"N",
       "a whole number",
       {{"--angles", "72"},
        {"--candidates", "10"},
        {"--classes", "8"},
        {"--connections", "4"},
        {"--depth", "64"},
        {"--factor", "4"},
        {"--flows", "4"},
        {"--hosts", "2"},
        {"--islands", "8"},
        {"--iterations", "60"},
        {"--mac-entries", "4096"},
        {"--max-jobs", "10000"},
        {"--max-repetitions", "32"},
        {"--paths", "64"},
        {"--queues", "2"},
        {"--round", "12"},
        {"--seed", "1"},
        {"--seeds", "10"},
        {"--slots-per-host", "8"},
        {"--starts", "8"},
        {"--threads", "2"},
        {"--trace-ranks", "8"},
        {"--udp-port", "62400"},
        {"--workers", "8"}}},
      {"TIME",
       "a time with its unit",
       {{"--ageing", "300s"},
        {"--delay", "10us"},
        {"--duration", "1h"},
        {"--every", "100ms"},
        {"--for", "10s"},
        {"--gap", "20ms"},
        {"--limit", "60s"},
        {"--pod-patience", "600s"},
        {"--reorder-delay", "100us"},
        {"--series-interval", "100us"},
        {"--wait", "60s"}}},
      {"FILE",
       "a file to write to, or - for standard output",
       {{"--csv", "table.csv"},
        {"--json", "results.json"},
        {"--markdown", "table.md"},
        {"--report", "page.html"},
        {"--svg", "picture.svg"},
        {"--timeline", "timeline.json"}}},
      {"SHARE",
       "a number",
       {{"--drift", "0.05"},
        {"--jitter", "0.01"},
        {"--max-stretch", "0.02"},
        {"--min-score", "0.98"},
        {"--slack", "0.02"}}},
      {"BYTES",
       "a size with its unit",
       {{"--buffer", "250kB"}, {"--bytes", "13.5MB"}, {"--max", "1GB"}, {"--min", "1kB"}}},
      {"SHARE",
       "a probability",
       {{"--corrupt", "0.01"}, {"--duplicate", "0.01"}, {"--loss", "0.01"}, {"--reorder", "0.01"}}},
      {"FACTOR", "a number", {{"--bytes-scale", "0.5"}, {"--compute-scale", "0.5"}}},
      {"RATE", "a rate with its unit", {{"--island-rate", "2.4Tbps"}, {"--rate", "1Gbps"}}},
      {"NAME", "an algorithm of collectives", {{"--algorithm", "tree"}}},
      {"NAME", "the name of an algorithm", {{"--cc", "cubic"}}},
      {"NAME", "the name of a balancer", {{"--balance", "reps"}}},
      {"FOLDER", "the folder of a cgroup", {{"--cgroup", "/sys/fs/cgroup/system.slice/train.service"}}},
      {"NAME", "the name of a chart", {{"--chart", "iterations"}}},
      {"COMMAND", "a command for a shell", {{"--command", "'on 0 hostname'"}}},
      {"CPUS", "the number of a CPU, or a list of them", {{"--cores", "0,1"}}},
      {"NAME", "the name of a datapath", {{"--datapath", "ring"}}},
      {"NAME", "a kind of port", {{"--device", "af_packet"}}},
      {"BYTES", "a queue length, or off", {{"--ecn", "30kB"}}},
      {"FILE", "a switch file to read", {{"--file", "switch.toml"}}},
      {"F", "a function of aggressiveness, a constant, or fair", {{"--function", "F1"}}},
      {"ADDRESS", "an IP address", {{"--gateway", "10.0.0.254"}}},
      {"N", "the number of a host", {{"--host", "0"}}},
      {"WORD", "spin, pause or sleep", {{"--idle", "sleep"}}},
      {"ADDRESS", "an IP address and its prefix length", {{"--ip", "10.0.0.1/24"}}},
      {"N", "the number of a job", {{"--job", "7"}}},
      {"ADDRESS", "the address of a coordinator", {{"--join", "10.0.0.1:7000"}}},
      {"FILE", "a key file, or fd:N", {{"--key", "job.key"}}},
      {"WORD", "a level", {{"--level", "flow"}}},
      {"ADDRESS", "a loopback address to listen at", {{"--listen", "127.0.0.1:8470"}}},
      {"FILE.so:NAME", "a congestion control of a shared object", {{"--load", "./mine.so:mine"}}},
      {"FOLDER", "a folder to write to", {{"--log-dir", "logs"}}},
      {"BITS", "a number in C's hexadecimal digits", {{"--marks", "0xffff"}}},
      {"MB", "a whole number of MB", {{"--memory", "256"}}},
      {"FOLDER", "a folder of runs", {{"--merge", "other.sweep"}}},
      {"PORT", "a port, or an address and a port", {{"--metrics", "9470"}}},
      {"BYTES", "a whole number of bytes", {{"--mtu", "1500"}}},
      {"NAME", "a name", {{"--name", "vgg"}}},
      {"WORD", "weight-gradient, inter-server or all", {{"--network", "all"}}},
      {"FILE", "an experiment to read", {{"--network-of", "experiment.toml"}}},
      {"FILE", "a file or folder to write to", {{"--output", "out"}}},
      {"FILE[,WORD=N...]", "a file to capture to", {{"--pcap", "run.pcapng,snap=96"}}},
      {"FILE", "a plan file", {{"--plan", "plan.json"}}},
      {"POLICY", "one policy or several", {{"--policy", "fair,mltcp"}}},
      {"PORT", "a port", {{"--port", "af_packet:eth1"}}},
      {"N", "the number of a rank", {{"--rank", "3"}}},
      {"RANKS", "ranks", {{"--ranks", "0-3,6"}}},
      {"SCHEME", "one scheme or several", {{"--scheme", "locality,ideal"}}},
      {"FILE", "a file to write to, whose name ends with .json, .csv or .trace.json", {{"--series", "series.json"}}},
      {"ADDRESS", "an address to listen at", {{"--serve", "10.0.0.1:7000"}}},
      {"I/N", "the number of a part and the number of parts, or auto", {{"--shard", "2/8"}}},
      {"PATH", "the path of a Unix socket", {{"--socket", "/run/mltcp/scheduler.sock"}}},
      {"ORDER", "an order of rows", {{"--sort", "rate"}}},
      {"FOLDER", "a folder to keep jobs in", {{"--state", "/var/lib/mltcp"}}},
      {"STEPS", "all, typical, or steps", {{"--steps", "1-3"}}},
      {"TESTS", "one test or several", {{"--tests", "latency,out"}}},
      {"FILE", "a file that holds a token", {{"--token-file", "/etc/mltcp/token"}}},
      {"KEY=VALUES", "a key of the experiment and its values", {{"--vary", "cc=reno,cubic"}}},
      {"FOLDER", "a folder to write below", {{"--write", "/usr/local/share"}}},
  };
  return all;
}

}  // namespace

std::optional<OptionValue> option_value(std::string_view option, std::string_view command) {
  if (option == "--network" && command == "advise")
    return OptionValue{"FILE", "an experiment to read", "experiment.toml"};
  for (const Kind& kind : kinds())
    for (const auto& [name, example] : kind.examples)
      if (name == option) return OptionValue{kind.word, kind.needs, example};
  return std::nullopt;
}

ValueCheck whole(std::uint64_t min, std::uint64_t max) {
  return {fmt::format("[{} - {}]", min, max), [=](const std::string& text) {
            const auto value = number_from<std::uint64_t>(text);
            if (value && *value >= min && *value <= max) return std::string();
            return fmt::format("{} is not a whole number from {} to {}", in_quotes(text), min, max);
          }};
}

ValueCheck share(double max) {
  return {fmt::format("[0 - {}]", max), [max](const std::string& text) {
            const auto value = number_from<double>(text);
            if (value && *value >= 0 && *value <= max) return std::string();
            return fmt::format("{} is not a number from 0 to {}", in_quotes(text), max);
          }};
}

ValueCheck factor(double max) {
  return {"", [max](const std::string& text) {
            const auto value = number_from<double>(text);
            if (value && *value > 0 && *value <= max) return std::string();
            return fmt::format("{} is not a number above 0 and at most {}", in_quotes(text), max);
          }};
}

ValueCheck cpu_list() {
  return {"", [](const std::string& text) {
            if (!text.empty() && text.find_first_not_of("0123456789,- ") == std::string::npos) return std::string();
            return fmt::format("{} is not a list of CPUs; write their numbers, e.g. 0 or 0,1 or 0-3", in_quotes(text));
          }};
}

ValueCheck one_of(std::vector<std::string> words) {
  const std::string all = fmt::format("{}", fmt::join(words, ", "));
  const std::string choices = fmt::format("{}", fmt::join(words, ","));
  const auto objection = [words, all](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    const auto meant = nearest(text, words);
    return fmt::format("{} is not known; {}", in_quotes(text),
                       meant ? fmt::format("did you mean \"{}\"?", *meant) : "write one of " + all);
  };
  return {fmt::format("{{{}}}", choices), objection, std::move(words)};
}

}  // namespace mltcp::tools
