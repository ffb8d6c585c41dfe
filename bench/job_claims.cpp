// Shows what a switch and receivers measure about honest and false claims of jobs (transport/job_claims.h), as a
// Markdown table. Runs in virtual time, with the same results in every run.
//
//   job_claims        prints the table
//   job_claims cost   prints the cost of summing a packet's claims, measured in real time
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "../tests/protocol/claims_scene.h"

namespace {

using namespace mltcp;

void print(const std::vector<ClaimsScene>& scenes) {
  for (const ClaimsScene& scene : scenes) {
    const ClaimsSeen seen = look_at(scene);
    const auto cells = [](const JobClaim& claim) {
      return fmt::format("{:.1f}% | {:.3f}", 100 * claim.share_at_end(), claim.mean_progress());
    };
    const std::string_view verdict = to_text(seen.link.verdict());
    const std::string_view other = to_text(seen.receiver.verdict());
    fmt::print("| {} | {} | {} | {} | {}{}{} |\n", scene.name, seen.link.iterations, cells(seen.link),
               cells(seen.receiver), verdict, verdict == other ? "" : ", receivers: ", verdict == other ? "" : other);
    std::fflush(stdout);
  }
}

/// Adds packets of `jobs` jobs, one packet of each job in turn. Returns the shortest time of seven rounds, in ns per
/// packet.
double nanoseconds_per_packet(std::uint32_t jobs) {
  constexpr std::uint32_t packets = 2'000'000;
  JobClaims claims;
  double best = 1e9;
  for (int round = 0; round < 7; ++round) {
    const auto begun = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < packets; ++i)
      claims.add({i % jobs, static_cast<std::uint16_t>(i >> 12), static_cast<std::uint16_t>(i)}, 1436);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    best = std::min(best, took.count() / packets);
  }
  if (claims.report().empty()) throw RunError("nothing was counted");
  return best;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "cost") {
    for (const std::uint32_t jobs : {1U, 16U, 256U, 4096U})
      fmt::print("{} jobs: {:.1f} ns a packet\n", jobs, nanoseconds_per_packet(jobs));
    return 0;
  }
  fmt::print(
      "| the job | iterations | at the end: switch | mean progress: switch | at the end: receivers | mean progress: "
      "receivers | verdict |\n|---|---:|---:|---:|---:|---:|---|\n");
  print(honest_scenes());
  print(overstating_scenes());
  print(other_scenes());
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "job_claims: {}\n", error.what());
  return 1;
}
