// The fields of a rank's results (see base/fields.h).
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/transport/phase_gate_fields.h"

namespace mltcp::experiment {

constexpr auto fields_of(const RankResult* /*type*/) {
  using T = RankResult;
  return list_of<T>(field("starts", &T::starts), field("times", &T::times), field("computes", &T::computes),
                    field("communications", &T::communications), field("alone", &T::alone),
                    field("bytes_per_iteration", &T::bytes_per_iteration),
                    field("retransmitted_packets", &T::retransmitted_packets),
                    field("verified_messages", &T::verified_messages), field("checksum_errors", &T::checksum_errors),
                    field("first_error", &T::first_error), field("gate", &T::gate),
                    left_out(&T::timeline));  // too long for messages
}

}  // namespace mltcp::experiment
