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
  constexpr std::size_t max_rows = 32;
  Table table({"job", "iterations", "bytes", "per iteration", "at the end", "mean progress", "verdict"}, 1);
  for (const JobClaim& claim : std::span(claims).first(std::min(claims.size(), max_rows)))
    table.add({name_of(claim), fmt::format("{}", claim.iterations), rounded(static_cast<double>(claim.bytes)),
               rounded(claim.bytes_per_iteration()), fmt::format("{:.1f}%", 100 * claim.share_at_end()),
               fmt::format("{:.3f}", claim.mean_progress()), std::string(to_text(claim.verdict()))});
  std::string text = table.text();
  if (claims.size() > max_rows) text += fmt::format("and {}\n", plural(claims.size() - max_rows, "more job"));
  return text;
}

std::vector<std::string> doubts_of(const std::vector<JobClaim>& claims) {
  constexpr std::size_t max_lines = 8;
  std::vector<std::string> doubts;
  std::size_t left_out = 0;
  for (const JobClaim& claim : claims) {
    if (!claim.is_doubtful()) continue;
    if (doubts.size() == max_lines) {
      ++left_out;
      continue;
    }
    if (claim.verdict() == ClaimVerdict::understated)
      doubts.push_back(fmt::format(
          "job {} sends more than its iterations state: {:.1f}% of its bytes pass when it claims to be done, "
          "and so it has the gain of an iteration's end too early; let its program state all that it sends",
          name_of(claim), 100 * claim.share_at_end()));
    else
      doubts.push_back(fmt::format(
          "job {} claims to be further along than what passes here accounts for, {:.2f} on average; let its "
          "program state what it sends, unless it begins its iterations on another path",
          name_of(claim), claim.mean_progress()));
  }
  if (left_out > 0) doubts.push_back(fmt::format("{} more claim more than they send", plural(left_out, "job")));
  return doubts;
}

}  // namespace mltcp::tools
