// The page of a sweep, from the table that `mltcp sweep --json FILE` wrote, "mltcp.sweep/1": whether each policy did
// better or worse than fair sharing at each point, with the confidence of several seeds.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/experiment/results/provenance.h"
#include "mltcp/experiment/sweep/sweep_table.h"

namespace mltcp::experiment {

inline constexpr std::string_view kSweepSchema = "mltcp.sweep/1";

/// What the page shows of the file.
struct SweepFile {
  struct Point {
    std::vector<std::string> values;  ///< of the factors
    std::vector<SweepRow> rows;       ///< `same` is not in the file
    std::size_t missing = 0;          ///< seeds without a record
    std::vector<std::pair<std::uint64_t, std::string>> failures;
  };
  std::string name;
  std::size_t seeds = 0;  ///< that were asked for
  std::vector<std::string> factors;
  std::set<std::string> set;  ///< keys of the experiment that any point sets
  std::vector<Point> points;
  std::optional<Provenance> provenance;
};

/// `file` stands for the file in messages. Throws InputError, in one line that names file, place, what is wrong and the
/// cure.
SweepFile parse_sweep(std::string_view text, const std::string& file);

/// The page. All names are escaped, whatever they hold. The same file gives the same bytes.
std::string render_sweep(const SweepFile& sweep);

}  // namespace mltcp::experiment
