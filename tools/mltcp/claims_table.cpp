// Tables of the claims of jobs (see claims_table.h).
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

/// Returns the number of bytes as text, rounded to four digits.
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

std::vector<std::string> warnings_of(const std::vector<JobClaim>& claims) {
  constexpr std::size_t max_lines = 8;
  std::vector<std::string> warnings;
  std::size_t left_out = 0;
  for (const JobClaim& claim : claims) {
    if (!claim.is_overstated()) continue;
    if (warnings.size() == max_lines) {
      ++left_out;
      continue;
    }
    if (claim.verdict() == ClaimVerdict::understated)
      warnings.push_back(
          fmt::format("job {} sends more than its iterations state: {:.1f}% of its bytes pass after it claims to be "
                      "done, so it has the gain of an iteration's end too early; correct its program, so that it "
                      "states all bytes that it sends",
                      name_of(claim), 100 * claim.share_at_end()));
    else
      warnings.push_back(
          fmt::format("job {} claims more progress than its bytes that pass here, {:.2f} more on average; correct its "
                      "program, so that it states the bytes that it sends, unless its iterations begin on another path",
                      name_of(claim), claim.mean_progress()));
  }
  if (left_out > 0)
    warnings.push_back(fmt::format("{} more jobs claim more progress than they send", plural(left_out, "job")));
  return warnings;
}

}  // namespace mltcp::tools
