// Sums what the jobs of passing frames claim of their iterations (transport/job_claims.h), at a port that forwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/transport/ethernet/frame_tap.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::encap {

/// Counts the frames that the port receives, each once however many ports it leaves by, and dropped there or not.
class ClaimsTap final : public FrameTap {
 public:
  /// `claims` outlives it, and so does `next`, which sees every frame, too; null: nobody.
  explicit ClaimsTap(JobClaims& claims, FrameTap* next = nullptr) : claims_(claims), next_(next) {}

  void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept override {
    if (way == Way::in) count_claims(first, frame_bytes, claims_);
    if (next_ != nullptr) next_->frame(way, first, frame_bytes);
  }

  enum class Found : std::uint8_t {
    none,
    claim,
    cut,  ///< `first` ends before it is known whether there is one
  };
  /// Adds a frame of which `first` are the first bytes, if it is a packet with data of a job, behind one VLAN tag at
  /// most. Sealed packets are believed by their header alone, others by its checksum, as far as what that covers is
  /// there.
  static Found count_claims(std::span<const std::byte> first, std::size_t frame_bytes, JobClaims& claims) noexcept;

 private:
  JobClaims& claims_;
  FrameTap* const next_;
};

}  // namespace mltcp::encap
