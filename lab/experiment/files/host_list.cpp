// Expands lists of hosts (see host_list.h).
#include "mltcp/lab/experiment/files/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"

namespace mltcp::experiment {
namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kMaxDigits = 10;

struct Range {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // inclusive
  std::size_t digits = 0;
};

/// A part of a name: fixed text, followed by one number from `ranges` unless `ranges` is empty.
struct Piece {
  std::string_view text;
  std::vector<Range> ranges;
};

class HostList {
 public:
  HostList(std::string_view list, std::size_t max) : list_(list), max_(max) {}

  std::vector<std::string> expanded() {
    for (std::size_t from = 0; from <= list_.size();) {
      std::size_t to = from;
      for (bool inside = false; to < list_.size() && (inside || list_[to] != ','); ++to)
        inside = list_[to] == '[' || (inside && list_[to] != ']');
      add(trimmed(list_.substr(from, to - from)));
      from = to + 1;
    }
    return std::move(names_);
  }

 private:
  [[nodiscard]] InputError wrong(std::string_view cause) const {
    return InputError(fmt::format(
        "{} in {}; write names, and ranges of numbers in brackets, such as \"node[01-16]\" or \"node[1-4,7]\"", cause,
        in_quotes(list_)));
  }

  void add(std::string_view name) {
    if (name.empty()) throw wrong("there is an empty name");
    std::vector<Piece> pieces;
    std::size_t count = 1;
    std::size_t longest = 0;
    while (!name.empty()) {
      const std::size_t open = std::min(name.find_first_of("[]"), name.size());
      Piece& piece = pieces.emplace_back();
      piece.text = name.substr(0, open);
      longest += piece.text.size();
      name.remove_prefix(open);
      if (!name.empty()) {
        const std::size_t close = std::min(name.find_first_of("[]", 1), name.size());
        if (name.front() == ']' || close == name.size() || name[close] == '[')
          throw wrong("a bracket is not opened or not closed");
        longest += read_ranges(name.substr(1, close - 1), piece, count);
        name.remove_prefix(close + 1);
      }
      if (longest > kLongestName) throw wrong(fmt::format("a name has more than {} bytes", kLongestName));
    }
    check(count);
    std::vector<std::string> made{""};
    for (const Piece& piece : pieces) made = with(made, piece);
    names_.insert(names_.end(), made.begin(), made.end());
  }

  /// Parses ranges such as "01-03,7" into `piece`. Returns the number of digits of the longest number, and multiplies
  /// `count` by the count of numbers in the ranges.
  std::size_t read_ranges(std::string_view list, Piece& piece, std::size_t& count) const {
    std::size_t longest = 0;
    std::size_t numbers = 0;
    for (;;) {
      const std::size_t comma = std::min(list.find(','), list.size());
      const Range range = range_of(list.substr(0, comma));
      piece.ranges.push_back(range);
      longest = std::max({longest, range.digits, fmt::formatted_size("{}", range.to)});
      numbers += range.to - range.from + 1;
      check(numbers);
      if (comma == list.size()) break;
      list.remove_prefix(comma + 1);
    }
    count *= numbers;
    check(count);
    return longest;
  }

  void check(std::size_t more) const {
    if (more > max_ - std::min(max_, names_.size()))
      throw InputError(fmt::format("{} means more than {} names; write fewer", in_quotes(list_), max_));
  }

  [[nodiscard]] static std::vector<std::string> with(const std::vector<std::string>& begun, const Piece& piece) {
    std::vector<std::string> made;
    for (const std::string& one : begun) {
      if (piece.ranges.empty()) made.push_back(fmt::format("{}{}", one, piece.text));
      for (const Range& range : piece.ranges)
        for (std::uint64_t i = range.from; i <= range.to; ++i)
          made.push_back(fmt::format("{}{}{:0{}}", one, piece.text, i, range.digits));
    }
    return made;
  }

  [[nodiscard]] Range range_of(std::string_view text) const {
    const std::size_t dash = std::min(text.find('-'), text.size());
    Range range;
    range.digits = dash;
    range.from = number(text.substr(0, dash));
    range.to = dash == text.size() ? range.from : number(text.substr(dash + 1));
    if (range.to < range.from) throw wrong("a range in brackets ends below its start");
    return range;
  }

  [[nodiscard]] std::uint64_t number(std::string_view digits) const {
    const auto value = number_from<std::uint64_t>(digits);
    if (digits.size() > kMaxDigits || !value) throw wrong("there is no number in brackets");
    return *value;
  }

  std::string_view list_;
  std::size_t max_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list, std::size_t max) { return HostList(list, max).expanded(); }

}  // namespace mltcp::experiment
