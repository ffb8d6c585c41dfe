// What the acknowledgements of one burst have said, gathered for the congestion controller, which is called once a
// burst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mltcp/cc/algorithm.h"
#include "mltcp/transport/internal/range_set.h"

namespace mltcp {

/// What the acknowledgements of one burst have said to one connection.
struct AckBatch {
  cc::AckSample sample;
  std::uint64_t largest_acked = 0;
  bool has_acks = false;
};

/// Lends an AckBatch to each connection of a burst: memory that stays in the cache, which each connection's own would
/// not.
struct AckBatches {
  std::vector<AckBatch> batches;      ///< as many as a burst
  std::size_t used = 0;               ///< taken back by the shard after the burst
  std::vector<RangeSet::Range> news;  ///< scratch of SentPackets::on_ack()

  AckBatch* take() {
    AckBatch& batch = batches[used++];
    batch = {};
    return &batch;
  }
};

}  // namespace mltcp
