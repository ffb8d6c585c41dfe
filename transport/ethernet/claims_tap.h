// Sums the claims about iterations in the frames of jobs (transport/job_claims.h), at a port that forwards them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/transport/ethernet/frame_tap.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::encap {

/// Counts the frames that the port receives, each once, whether it is forwarded to one port or several, or dropped.
class ClaimsTap final : public FrameTap {
 public:
  /// `claims` and `next` must outlive the tap. `next` also gets every frame; may be null.
  explicit ClaimsTap(JobClaims& claims, FrameTap* next = nullptr) : claims_(claims), next_(next) {}

  void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept override {
    if (way == Way::in) count_claims(first, frame_bytes, claims_);
    if (next_ != nullptr) next_->frame(way, first, frame_bytes);
  }

  enum class Found : std::uint8_t {
    none,
    claim,
    cut,  ///< `first` is too short to decide
  };
  /// Adds a frame that begins with `first`, if it is a packet with data of a job, after at most one VLAN tag. A sealed
  /// packet is recognized by its header alone, any other by its checksum, unless some of the covered bytes are missing.
  static Found count_claims(std::span<const std::byte> first, std::size_t frame_bytes, JobClaims& claims) noexcept;

 private:
  JobClaims& claims_;
  FrameTap* const next_;
};

}  // namespace mltcp::encap
