// The HTML page of a sweep, from a file of `mltcp sweep --json FILE`, "mltcp.sweep/1". The page compares each policy
// with fair sharing at each point, with confidence intervals over several seeds.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/lab/experiment/sweep/sweep_table.h"

namespace mltcp::experiment {

inline constexpr std::string_view kSweepSchema = "mltcp.sweep/1";

/// The file's contents that the page shows.
struct SweepFile {
  struct Point {
    std::vector<std::string> values;  ///< value of each factor
    std::vector<SweepRow> rows;       ///< rows without SweepRow::same, which the file does not contain
    std::size_t missing = 0;          ///< number of seeds without a record
    std::vector<std::pair<std::uint64_t, std::string>> failures;
  };
  std::string name;
  std::size_t seeds = 0;  ///< number of requested seeds
  std::vector<std::string> factors;
  std::set<std::string> set;  ///< keys of the experiment that any point overrides
  std::vector<Point> points;
  std::optional<Provenance> provenance;
};

/// Parses the text of a file. Error messages use `file` as the file's name. Throws InputError with one line that names
/// file, position, cause and remedy.
SweepFile parse_sweep(std::string_view text, const std::string& file);

/// Renders the page. All names are escaped. Equal input gives identical bytes.
std::string render_sweep(const SweepFile& sweep);

}  // namespace mltcp::experiment
