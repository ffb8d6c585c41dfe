// The fields of results (see base/fields.h).
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

constexpr auto fields_of(const HostLosses* /*type*/) {
  using T = HostLosses;
  return list_of<T>(field("host", &T::host), field("missed_packets", &T::missed_packets),
                    field("port_errors", &T::port_errors), field("handover_full_packets", &T::handover_full_packets),
                    field("rejected_packets", &T::rejected_packets), field("unsent_packets", &T::unsent_packets));
}

}  // namespace mltcp::experiment
