// What options take (see option_values.h).
#include "option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"

namespace mltcp::tools {
namespace {

constexpr std::string_view kOutput = "a file to write to, or - for standard output";
constexpr std::array kValues{
    OptionValue{"--ageing", "TIME", "a time with its unit", "300s"},
    OptionValue{"--algorithm", "NAME", "an algorithm of collectives", "tree"},
    OptionValue{"--angles", "N", "a whole number", "72"},
    OptionValue{"--buffer", "BYTES", "a size with its unit", "250kB"},
    OptionValue{"--bytes", "BYTES", "a size with its unit", "13.5MB"},
    OptionValue{"--bytes-scale", "FACTOR", "a number", "0.5"},
    OptionValue{"--candidates", "N", "a whole number", "10"},
    OptionValue{"--cc", "NAME", "the name of an algorithm", "cubic"},
    OptionValue{"--cgroup", "FOLDER", "the folder of a cgroup", "/sys/fs/cgroup/system.slice/train.service"},
    OptionValue{"--chart", "NAME", "the name of a chart", "iterations"},
    OptionValue{"--classes", "N", "a whole number", "8"},
    OptionValue{"--command", "COMMAND", "what a shell shall do", "'on 0 hostname'"},
    OptionValue{"--compute-scale", "FACTOR", "a number", "0.5"},
    OptionValue{"--connections", "N", "a whole number", "4"},
    OptionValue{"--cores", "CPUS", "the number of a CPU, or a list of them", "0,1"},
    OptionValue{"--corrupt", "SHARE", "a probability", "0.01"},
    OptionValue{"--csv", "FILE", kOutput, "table.csv"},
    OptionValue{"--datapath", "NAME", "the name of a datapath", "ring"},
    OptionValue{"--delay", "TIME", "a time with its unit", "10us"},
    OptionValue{"--depth", "N", "a whole number", "64"},
    OptionValue{"--device", "NAME", "a kind of port", "af_packet"},
    OptionValue{"--drift", "SHARE", "a number", "0.05"},
    OptionValue{"--duplicate", "SHARE", "a probability", "0.01"},
    OptionValue{"--duration", "TIME", "a time with its unit", "1h"},
    OptionValue{"--ecn", "BYTES", "where marking begins, or off", "30kB"},
    OptionValue{"--every", "TIME", "a time with its unit", "100ms"},
    OptionValue{"--factor", "N", "a whole number", "4"},
    OptionValue{"--file", "FILE", "a switch file to read", "switch.toml"},
    OptionValue{"--flows", "N", "a whole number", "4"},
    OptionValue{"--for", "TIME", "a time with its unit", "10s"},
    OptionValue{"--function", "F", "a function of aggressiveness, a constant, or fair", "F1"},
    OptionValue{"--gap", "TIME", "a time with its unit", "20ms"},
    OptionValue{"--gateway", "ADDRESS", "an IP address", "10.0.0.254"},
    OptionValue{"--host", "N", "the number of a host", "0"},
    OptionValue{"--hosts", "N", "a whole number", "2"},
    OptionValue{"--idle", "WORD", "what to do without work", "sleep"},
    OptionValue{"--ip", "ADDRESS", "an IP address and its prefix length", "10.0.0.1/24"},
    OptionValue{"--island-rate", "RATE", "a rate with its unit", "2.4Tbps"},
    OptionValue{"--islands", "N", "a whole number", "8"},
    OptionValue{"--iterations", "N", "a whole number", "60"},
    OptionValue{"--jitter", "SHARE", "a number", "0.01"},
    OptionValue{"--job", "N", "the number of a job", "7"},
    OptionValue{"--join", "ADDRESS", "the address of a coordinator", "10.0.0.1:7000"},
    OptionValue{"--json", "FILE", kOutput, "results.json"},
    OptionValue{"--key", "FILE", "a key file, or fd:N", "job.key"},
    OptionValue{"--min", "BYTES", "a size with its unit", "1kB"},
    OptionValue{"--min-score", "SHARE", "a number", "0.98"},
    OptionValue{"--level", "WORD", "a level", "flow"},
    OptionValue{"--limit", "TIME", "a time with its unit", "60s"},
    OptionValue{"--listen", "ADDRESS", "a loopback address to listen at", "127.0.0.1:8470"},
    OptionValue{"--load", "FILE.so:NAME", "an algorithm of a shared object", "./mine.so:mine"},
    OptionValue{"--log-dir", "FOLDER", "a folder to write to", "logs"},
    OptionValue{"--loss", "SHARE", "a probability", "0.01"},
    OptionValue{"--mac-entries", "N", "a whole number", "4096"},
    OptionValue{"--markdown", "FILE", kOutput, "table.md"},
    OptionValue{"--marks", "BITS", "a number in C's hexadecimal digits", "0xffff"},
    OptionValue{"--max-jobs", "N", "a whole number", "10000"},
    OptionValue{"--max-repetitions", "N", "a whole number", "32"},
    OptionValue{"--max-stretch", "SHARE", "a number", "0.02"},
    OptionValue{"--memory", "MB", "a whole number of MB", "256"},
    OptionValue{"--merge", "FOLDER", "a folder of runs", "other.sweep"},
    OptionValue{"--metrics", "PORT", "a port, or an address and a port", "9470"},
    OptionValue{"--max", "BYTES", "a size with its unit", "1GB"},
    OptionValue{"--mtu", "BYTES", "a whole number of bytes", "1500"},
    OptionValue{"--name", "NAME", "a name", "vgg"},
    OptionValue{"--network", "WORD", "which collectives cross the link", "all"},
    OptionValue{"--network-of", "FILE", "an experiment to read", "experiment.toml"},
    OptionValue{"--output", "FILE", "where to write to", "out"},
    OptionValue{"--pcap", "FILE[,WORD=N...]", "a file to capture to", "run.pcapng,snap=96"},
    OptionValue{"--plan", "FILE", "a plan file", "plan.json"},
    OptionValue{"--pod-patience", "TIME", "a time with its unit", "600s"},
    OptionValue{"--policy", "POLICY", "one policy or several", "fair,mltcp"},
    OptionValue{"--port", "PORT", "a port", "af_packet:eth1"},
    OptionValue{"--queues", "N", "a whole number", "2"},
    OptionValue{"--rank", "N", "the number of a rank", "3"},
    OptionValue{"--ranks", "RANKS", "ranks", "0-3,6"},
    OptionValue{"--rate", "RATE", "a rate with its unit", "1Gbps"},
    OptionValue{"--reorder", "SHARE", "a probability", "0.01"},
    OptionValue{"--reorder-delay", "TIME", "a time with its unit", "100us"},
    OptionValue{"--report", "FILE", kOutput, "page.html"},
    OptionValue{"--round", "N", "a whole number", "12"},
    OptionValue{"--scheme", "SCHEME", "one scheme or several", "locality,ideal"},
    OptionValue{"--seed", "N", "a whole number", "1"},
    OptionValue{"--seeds", "N", "a whole number", "10"},
    OptionValue{"--series", "FILE", "a file to write to, whose name says the format", "series.json"},
    OptionValue{"--series-interval", "TIME", "a time with its unit", "100us"},
    OptionValue{"--serve", "ADDRESS", "an address to listen at", "10.0.0.1:7000"},
    OptionValue{"--shard", "I/N", "a part and their number, or auto", "2/8"},
    OptionValue{"--slack", "SHARE", "a number", "0.02"},
    OptionValue{"--slots-per-host", "N", "a whole number", "8"},
    OptionValue{"--socket", "PATH", "the path of a Unix socket", "/run/mltcp/scheduler.sock"},
    OptionValue{"--sort", "ORDER", "an order of rows", "rate"},
    OptionValue{"--starts", "N", "a whole number", "8"},
    OptionValue{"--state", "FOLDER", "a folder to keep jobs in", "/var/lib/mltcp"},
    OptionValue{"--steps", "STEPS", "all, typical, or steps", "1-3"},
    OptionValue{"--svg", "FILE", kOutput, "picture.svg"},
    OptionValue{"--tests", "TESTS", "one test or several", "latency,out"},
    OptionValue{"--threads", "N", "a whole number", "2"},
    OptionValue{"--timeline", "FILE", kOutput, "timeline.json"},
    OptionValue{"--token-file", "FILE", "a file that holds a token", "/etc/mltcp/token"},
    OptionValue{"--trace-ranks", "N", "a whole number", "8"},
    OptionValue{"--udp-port", "N", "a whole number", "62400"},
    OptionValue{"--vary", "KEY=VALUES", "a key of the experiment and its values", "cc=reno,cubic"},
    OptionValue{"--wait", "TIME", "a time with its unit", "60s"},
    OptionValue{"--workers", "N", "a whole number", "8"},
    OptionValue{"--write", "FOLDER", "a folder to write below", "/usr/local/share"},
};

template <typename Number>
std::optional<Number> number_from(const std::string& text) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || at != end) return std::nullopt;
  return value;
}

}  // namespace

const OptionValue* option_value(std::string_view option, std::string_view command) {
  constexpr static OptionValue kFile{"--network", "FILE", "an experiment to read", "experiment.toml"};
  if (option == kFile.option && command == "advise") return &kFile;
  const auto* const found =
      std::find_if(kValues.begin(), kValues.end(), [&](const OptionValue& value) { return value.option == option; });
  return found == kValues.end() ? nullptr : &*found;
}

ValueCheck whole(std::uint64_t least, std::uint64_t most) {
  return {fmt::format("[{} - {}]", least, most), [=](const std::string& text) {
            const auto value = number_from<std::uint64_t>(text);
            if (value && *value >= least && *value <= most) return std::string();
            return fmt::format("{} is not a whole number from {} to {}", in_quotes(text), least, most);
          }};
}

ValueCheck share(double most) {
  return {fmt::format("[0 - {}]", most), [most](const std::string& text) {
            const auto value = number_from<double>(text);
            if (value && *value >= 0 && *value <= most) return std::string();
            return fmt::format("{} is not a number from 0 to {}", in_quotes(text), most);
          }};
}

ValueCheck factor(double most) {
  return {"", [most](const std::string& text) {
            const auto value = number_from<double>(text);
            if (value && *value > 0 && *value <= most) return std::string();
            return fmt::format("{} is not a number above 0 and at most {}", in_quotes(text), most);
          }};
}

ValueCheck cpu_list() {
  return {"", [](const std::string& text) {
            if (!text.empty() && text.find_first_not_of("0123456789,- ") == std::string::npos) return std::string();
            return fmt::format("{} is not a list of CPUs; write their numbers, as in 0 or 0,1 or 0-3", in_quotes(text));
          }};
}

ValueCheck one_of(std::vector<std::string> words) {
  const std::string all = fmt::format("{}", fmt::join(words, ", "));
  const std::string choices = fmt::format("{}", fmt::join(words, ","));
  const auto objection = [words, all](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    const auto meant = nearest(text, words);
    return fmt::format("{} is not known; {}", in_quotes(text),
                       meant ? fmt::format("did you mean \"{}\"?", *meant) : "write one of " + all);
  };
  return {fmt::format("{{{}}}", choices), objection, std::move(words)};
}

Nanos duration_of(const std::string& option, const std::string& text) {
  try {
    return parse_duration(text);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", option, error.what()));
  }
}

}  // namespace mltcp::tools
