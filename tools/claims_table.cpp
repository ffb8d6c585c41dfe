// Claims as a table (see claims_table.h).
#include "claims_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "terminal.h"

namespace mltcp::tools {

namespace {

/// To four digits.
std::string rounded(double bytes) {
  double unit = 1;
  while (bytes / unit >= 10'000) unit *= 10;
  return bytes_to_text(static_cast<Bytes>(std::round(bytes / unit) * unit));
}

}  // namespace

std::string claims_table(const std::vector<JobClaim>& claims) {
  constexpr std::size_t most_rows = 32;
  Table table({"job", "iterations", "bytes", "per iteration", "at the end", "mean progress", "verdict"}, 1);
  for (const JobClaim& claim : std::span(claims).first(std::min(claims.size(), most_rows)))
    table.add({name_of(claim), fmt::format("{}", claim.iterations), rounded(static_cast<double>(claim.bytes)),
               rounded(claim.bytes_per_iteration()), fmt::format("{:.1f}%", 100 * claim.share_at_end()),
               fmt::format("{:.3f}", claim.mean_progress()), std::string(to_text(claim.verdict()))});
  std::string text = table.text();
  if (claims.size() > most_rows) text += fmt::format("and {}\n", plural(claims.size() - most_rows, "more job"));
  return text;
}

}  // namespace mltcp::tools
