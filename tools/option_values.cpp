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

#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"

namespace mltcp::tools {
namespace {

// An option has the same kind of value in whatever command it is one.
struct Value {
  std::string_view option;
  std::string_view word;  // in --help
  std::string_view needs;
  std::string_view example;
};
constexpr std::string_view kOutput = "a file to write to, or - for standard output";
constexpr std::array kValues{
    Value{"--ageing", "TIME", "a time with its unit", "300s"},
    Value{"--angles", "N", "a whole number", "72"},
    Value{"--buffer", "BYTES", "a size with its unit", "250kB"},
    Value{"--bytes-scale", "FACTOR", "a number", "0.5"},
    Value{"--cc", "NAME", "the name of an algorithm", "cubic"},
    Value{"--chart", "NAME", "the name of a chart", "iterations"},
    Value{"--classes", "N", "a whole number", "8"},
    Value{"--command", "COMMAND", "what a shell shall do", "'on 0 hostname'"},
    Value{"--compute-scale", "FACTOR", "a number", "0.5"},
    Value{"--cores", "CPUS", "the number of a CPU, or a list of them", "0,1"},
    Value{"--corrupt", "SHARE", "a probability", "0.01"},
    Value{"--csv", "FILE", kOutput, "table.csv"},
    Value{"--datapath", "NAME", "the name of a datapath", "ring"},
    Value{"--delay", "TIME", "a time with its unit", "10us"},
    Value{"--device", "NAME", "a kind of port", "af_packet"},
    Value{"--drift", "SHARE", "a number", "0.05"},
    Value{"--duplicate", "SHARE", "a probability", "0.01"},
    Value{"--ecn", "BYTES", "where marking begins, or off", "30kB"},
    Value{"--every", "TIME", "a time with its unit", "100ms"},
    Value{"--file", "FILE", "a switch file to read", "switch.toml"},
    Value{"--for", "TIME", "a time with its unit", "10s"},
    Value{"--gateway", "ADDRESS", "an IP address", "10.0.0.254"},
    Value{"--host", "N", "the number of a host", "0"},
    Value{"--hosts", "N", "a whole number", "2"},
    Value{"--idle", "WORD", "what to do without work", "sleep"},
    Value{"--ip", "ADDRESS", "an IP address and its prefix length", "10.0.0.1/24"},
    Value{"--iterations", "N", "a whole number", "60"},
    Value{"--join", "ADDRESS", "the address of a coordinator", "10.0.0.1:7000"},
    Value{"--json", "FILE", kOutput, "results.json"},
    Value{"--level", "WORD", "a level", "flow"},
    Value{"--load", "FILE.so:NAME", "an algorithm of a shared object", "./mine.so:mine"},
    Value{"--log-dir", "FOLDER", "a folder to write to", "logs"},
    Value{"--loss", "SHARE", "a probability", "0.01"},
    Value{"--mac-entries", "N", "a whole number", "4096"},
    Value{"--markdown", "FILE", kOutput, "table.md"},
    Value{"--max-repetitions", "N", "a whole number", "32"},
    Value{"--max-stretch", "SHARE", "a number", "0.02"},
    Value{"--memory", "MB", "a whole number of MB", "256"},
    Value{"--merge", "FOLDER", "a folder of runs", "other.sweep"},
    Value{"--mtu", "BYTES", "a whole number of bytes", "1500"},
    Value{"--name", "NAME", "a name", "vgg"},
    Value{"--network", "WORD", "which collectives cross the link", "all"},
    Value{"--output", "FILE", "where to write to", "out"},
    Value{"--plan", "FILE", "a plan file", "plan.json"},
    Value{"--policy", "POLICY", "one policy or several", "fair,mltcp"},
    Value{"--port", "PORT", "a port", "af_packet:eth1"},
    Value{"--queues", "N", "a whole number", "2"},
    Value{"--rate", "RATE", "a rate with its unit", "1Gbps"},
    Value{"--reorder", "SHARE", "a probability", "0.01"},
    Value{"--reorder-delay", "TIME", "a time with its unit", "100us"},
    Value{"--report", "FILE", kOutput, "page.html"},
    Value{"--scheme", "SCHEME", "one scheme or several", "locality,ideal"},
    Value{"--seed", "N", "a whole number", "1"},
    Value{"--seeds", "N", "a whole number", "10"},
    Value{"--serve", "ADDRESS", "an address to listen at", "10.0.0.1:7000"},
    Value{"--shard", "I/N", "a part and their number, or auto", "2/8"},
    Value{"--slack", "SHARE", "a number", "0.02"},
    Value{"--svg", "FILE", kOutput, "picture.svg"},
    Value{"--threads", "N", "a whole number", "2"},
    Value{"--udp-port", "N", "a whole number", "62400"},
    Value{"--vary", "KEY=VALUES", "a key of the experiment and its values", "cc=reno,cubic"},
    Value{"--wait", "TIME", "a time with its unit", "60s"},
    Value{"--workers", "N", "a whole number", "8"},
};

const Value* value_of(const CLI::Option& option) {
  for (const std::string& name : option.get_lnames()) {
    const auto found = std::find_if(kValues.begin(), kValues.end(),
                                    [&](const Value& value) { return value.option.substr(2) == name; });
    if (found != kValues.end()) return &*found;
  }
  return nullptr;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

/// The name of an option that a word of the command line begins with: "--json" of "--json=x".
std::string_view option_name(std::string_view word) {
  return word.size() > 1 && word.front() == '-' ? word.substr(0, word.find('=')) : "";
}

const CLI::Option* option_of(const CLI::App& command, std::string_view word) {
  const std::string_view name = option_name(word);
  return name.empty() ? nullptr : command.get_option_no_throw(std::string(name));
}

template <typename Number>
std::optional<Number> number_from(const std::string& text) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || at != end) return std::nullopt;
  return value;
}

}  // namespace

void name_values(CLI::App& app) {
  for (CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* const option : command->get_options())
      if (const Value* const value = value_of(*option); value != nullptr && takes_value(*option))
        option->type_name(std::string(value->word));
}

std::string missing_value(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* command = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (command == nullptr) {
      const auto named = app.get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
      if (!named.empty()) command = named.front();
      continue;
    }
    if (word == "--") break;
    const CLI::Option* const option = option_of(*command, word);
    if (option == nullptr || !takes_value(*option)) continue;
    std::string followed_by;
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      if (equals + 1 < word.size()) continue;
    } else if (++i < argc) {
      const std::string_view next = argv[i];
      if (next != "--" && option_of(*command, next) == nullptr) continue;
      followed_by = fmt::format(", and is followed by {}", option_name(next));
    }
    const std::string name = option->get_name();
    const Value* const value = value_of(*option);
    const std::string needs =
        value == nullptr ? "a value" : fmt::format("{}, as in {} {}", value->needs, name, value->example);
    return fmt::format("{} needs {}{}; see mltcp {} --help", name, needs, followed_by, command->get_name());
  }
  return {};
}

CLI::Validator whole(std::uint64_t least, std::uint64_t most) {
  return {[=](const std::string& text) {
            const auto value = number_from<std::uint64_t>(text);
            if (value && *value >= least && *value <= most) return std::string();
            return fmt::format("{} is not a whole number from {} to {}", in_quotes(text), least, most);
          },
          fmt::format("[{} - {}]", least, most), "whole"};
}

CLI::Validator share(double most) {
  return {[most](const std::string& text) {
            const auto value = number_from<double>(text);
            if (value && *value >= 0 && *value <= most) return std::string();
            return fmt::format("{} is not a number from 0 to {}", in_quotes(text), most);
          },
          fmt::format("[0 - {}]", most), "share"};
}

CLI::Validator factor(double most) {
  return {[most](const std::string& text) {
            const auto value = number_from<double>(text);
            if (value && *value > 0 && *value <= most) return std::string();
            return fmt::format("{} is not a number above 0 and at most {}", in_quotes(text), most);
          },
          "", "factor"};
}

CLI::Validator cpu_list() {
  return {[](const std::string& text) {
            if (!text.empty() && text.find_first_not_of("0123456789,- ") == std::string::npos) return std::string();
            return fmt::format("{} is not a list of CPUs; write their numbers, as in 0 or 0,1 or 0-3", in_quotes(text));
          },
          "", "CPUs"};
}

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string all = fmt::format("{}", fmt::join(words, ", "));
  const std::string choices = fmt::format("{}", fmt::join(words, ","));
  return {[words = std::move(words), all](const std::string& text) {
            if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
            const auto meant = nearest(text, words);
            return fmt::format("{} is not known; {}", in_quotes(text),
                               meant ? fmt::format("did you mean \"{}\"?", *meant) : "write one of " + all);
          },
          fmt::format("{{{}}}", choices), "word"};
}

}  // namespace mltcp::tools
