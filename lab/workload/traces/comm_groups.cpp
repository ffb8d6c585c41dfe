// Reads files of communicator groups (see comm_groups.h).
#include "mltcp/lab/workload/traces/comm_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mltcp/base/error.h"
#include "mltcp/base/json.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxText = std::size_t{16} << 20;
constexpr JsonLimits kLimits{2, 2'000'000};
constexpr std::string_view kCure = "write names of groups and lists of their ranks, e.g. { \"1\": [0, 1] }";

}  // namespace

bool is_comm_groups(std::string_view beginning) {
  const auto take = [&](char sign) {
    beginning = beginning.substr(std::min(beginning.find_first_not_of(" \t\r\n"), beginning.size()));
    if (!beginning.starts_with(sign)) return false;
    beginning.remove_prefix(1);
    return true;
  };
  if (!take('{') || !take('"')) return false;
  const std::size_t digits = std::min(beginning.find_first_not_of("0123456789"), beginning.size());
  beginning.remove_prefix(digits);
  return digits > 0 && take('"') && take(':') && take('[');
}

void CommGroups::read(TraceInput& input) {
  const auto fail = [&](std::string_view cause, std::string_view cure = kCure) {
    throw InputError(one_line(fmt::format("{}: {}; {}", input.name(), cause, cure)));
  };
  std::string text;
  constexpr std::size_t part = std::size_t{1} << 16;
  for (std::size_t read = 1; read > 0;) {
    const std::size_t before = text.size();
    text.resize(before + part);
    read = input.read(text.data() + before, part);
    text.resize(before + read);
    if (text.size() > kMaxText) fail(fmt::format("it has more than {} MiB", kMaxText >> 20U));
  }
  if (const std::string beyond = beyond_limits(text, kLimits); !beyond.empty()) fail(fmt::format("it {}", beyond));
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) fail("it is not a JSON object, or it is cut off");
  for (const auto& [name, list] : root.items()) {
    if (!list.is_array() || list.empty()) fail(fmt::format("group {} is not a list of ranks", in_quotes(name)));
    std::vector<std::uint32_t> ranks;
    for (const Json& one : list) {
      const auto rank = whole_number<std::uint32_t>(one, 0, kMaxRank - 1);
      if (!rank) fail(fmt::format("group {} has an element that is not a rank", in_quotes(name)));
      ranks.push_back(*rank);
    }
    std::ranges::sort(ranks);
    if (std::ranges::adjacent_find(ranks) != ranks.end())
      fail(fmt::format("group {} has a rank twice", in_quotes(name)));
    const auto [known, is_new] = ranks_.try_emplace(name, ranks);
    if (!is_new && known->second != ranks)
      fail(fmt::format("group {} has other ranks in another file", in_quotes(name)), "give one of the files");
  }
}

void CommGroups::apply(PartialGraph& part) const {
  for (std::size_t i = 0; i < std::min(part.groups.size(), part.graph.groups.size()); ++i) {
    PartialGraph::Group& what = part.groups[i];
    if (!part.graph.groups[i].empty()) continue;
    if (what.id == "0") what = {};
    const auto found = ranks_.find(what.id);
    if (found == ranks_.end()) continue;
    part.graph.groups[i] = found->second;
    what = {};
  }
}

}  // namespace mltcp::workload
