// Merges the acknowledgements of one receive burst, so that the congestion controller is called once per burst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mltcp/cc/algorithm.h"
#include "mltcp/transport/internal/range_set.h"

namespace mltcp::transport {

/// The merged acknowledgements of one burst for one connection.
struct AckBatch {
  cc::AckSample sample;
  std::uint64_t largest_acked = 0;
  bool has_acks = false;
  std::uint32_t rtt_bytes = 0;  ///< size of the latest ACK's largest packet, if it gave sample.latest_rtt; otherwise 0
  Nanos forward_queue;          ///< time that this packet spent in queues on its way to the peer; 0 if not known
};

/// Lends an AckBatch to each connection of a burst, from a pool that stays in the CPU cache.
struct AckBatches {
  std::vector<AckBatch> batches;      ///< enough for a burst in which each packet belongs to another connection
  std::size_t used = 0;               ///< number of batches lent; the shard sets it to 0 after the burst
  std::vector<RangeSet::Range> news;  ///< scratch space of SentPackets::on_ack()

  AckBatch* take() {
    AckBatch& batch = batches[used++];
    batch = {};
    return &batch;
  }
};

}  // namespace mltcp::transport
