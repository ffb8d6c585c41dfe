// Sums the claims of jobs about iterations (transport/job_claims.h) in the frames at a port that forwards them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/transport/ethernet/frame_tap.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::encap {

/// Counts each received frame exactly once, even if the port forwards the frame to several ports or drops it.
class ClaimsTap final : public FrameTap {
 public:
  /// `claims` and `next` must outlive the tap. The tap passes every frame to `next`, which may be null.
  explicit ClaimsTap(JobClaims& claims, FrameTap* next = nullptr) : claims_(claims), next_(next) {}

  void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept override {
    if (way == Way::in) count_claims(first, frame_bytes, claims_);
    if (next_ != nullptr) next_->frame(way, first, frame_bytes);
  }

  enum class Found : std::uint8_t {
    none,
    claim,
    cut,  ///< `first` is too short to show whether there is a claim
  };
  /// Adds the claim of a frame to `claims` if the frame is a packet with data of a job. `first` has the first bytes of
  /// the frame, which may have one VLAN tag. A sealed packet is recognised by its header. An unsealed packet is
  /// recognised by its checksum, but the checksum is not verified if `first` does not contain all bytes that it covers.
  static Found count_claims(std::span<const std::byte> first, std::size_t frame_bytes, JobClaims& claims) noexcept;

 private:
  JobClaims& claims_;
  FrameTap* const next_;
};

}  // namespace mltcp::encap
