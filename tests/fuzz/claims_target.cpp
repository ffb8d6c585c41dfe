// Fuzzes the code that counts what packets claim about their jobs, in captures and in frames that pass a switch.
// Whatever numbers of bytes, packets and jobs an input states, the sums must stay within what was received.
//
// Input: a byte that chooses between a pcapng file and frames. A file is the rest of the input. Before each frame are
// two numbers of 1 byte: how many bytes are missing at the end of the frame, and the length of the frame.
#include <sstream>

#include "mltcp/transport/capture/capture_claims.h"
#include "mltcp/transport/ethernet/claims_tap.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

void check_sums(const JobClaims& claims, std::uint64_t packets) {
  std::uint64_t counted = 0;
  for (const JobClaim& claim : claims.report()) {
    counted += claim.packets;
    require(claim.packets > 0 && claim.iterations > 0 && claim.iterations <= claim.packets,
            "iterations without a packet that begins them");
    require(claim.bytes_at_end <= claim.bytes, "more bytes at the end than in all");
    require(claim.mean_progress() >= 0 && claim.mean_progress() <= 1.0 + 1e-9, "a progress beyond the end");
    require(!to_text(claim.verdict()).empty() && !name_of(claim).empty(), "a claim without a name");
  }
  require(counted <= packets, "more packets than have come");
}

}  // namespace

void fuzz_claims(Input input) {
  Program program(input);
  if ((program.byte() & 1) == 0) {
    is_read([&] {
      std::istringstream file(program.text());
      const capture::CaptureClaims claims = capture::read_claims(file, "capture.pcapng");
      check_sums(claims.received, claims.packets);
      check_sums(claims.sent, claims.packets);
    });
    return;
  }
  JobClaims claims;
  std::uint64_t frames = 0;
  for (; !program.has_ended(); ++frames) {
    const std::size_t missing = program.byte();
    const std::vector<std::byte> frame = program.bytes(program.byte());
    encap::ClaimsTap::count_claims(frame, frame.size() + missing, claims);
  }
  check_sums(claims, frames);
}

}  // namespace mltcp::fuzz
