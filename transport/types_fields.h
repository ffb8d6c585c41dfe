// Field list of ConnectionConfig (see base/fields.h).
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/transport/types.h"

namespace mltcp {

constexpr auto fields_of(const ConnectionConfig* /*type*/) {
  using T = ConnectionConfig;
  return list_of<T>(field("cc", &T::congestion_control), left_out(&T::parameters),  // see cc/registry.h
                    field("ecn", &T::ecn), field("check_peer", &T::check_peer),
                    field("full_integrity", &T::full_integrity), field("pack_messages", &T::pack_messages),
                    field("max_sends", &T::max_sends), field("max_receives", &T::max_receives),
                    field("max_packets_in_flight", &T::max_packets_in_flight), field("max_rate", &T::max_rate),
                    field("pacing_quantum", &T::pacing_quantum), field("initial_rtt", &T::initial_rtt),
                    field("max_ack_delay", &T::max_ack_delay), field("timer_granularity", &T::timer_granularity),
                    field("give_up_after", &T::give_up_after), field("keep_alive", &T::keep_alive),
                    field("idle_limit", &T::idle_limit), field("ack_every", &T::ack_every),
                    field("adapt_ack_ratio", &T::adapt_ack_ratio), field("priority", &T::priority),
                    field("credit_in_acks", &T::credit_in_acks), field("await_answer", &T::await_answer),
                    field("balance", &T::balance), field("paths", &T::paths),
                    left_out(&T::keys));  // never sent: each host reads its own keys
}

}  // namespace mltcp
