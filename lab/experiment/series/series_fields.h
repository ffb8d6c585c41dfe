// The columns of series (see base/fields.h): names in files, units, and which of them describe packets.
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/lab/experiment/series/series.h"

namespace mltcp::experiment {

/// Properties of a column.
struct Column {
  bool of_packets = false;     ///< true if the column is unknown at flow level
  std::string_view counter{};  ///< unit of the counter track in traces; empty if there is no track
  bool counts = false;         ///< true if the column is a total that only grows
};
inline constexpr Column kOfPackets{.of_packets = true};
inline constexpr Column kCount{.of_packets = true, .counts = true};

constexpr auto fields_of(const SeriesConnection* /*type*/) {
  using T = SeriesConnection;
  return list_of<T>(field("job", &T::job), field("worker", &T::worker), field("peer", &T::peer),
                    field("flow", &T::flow));
}

constexpr auto fields_of(const SeriesLink* /*type*/) {
  return list_of<SeriesLink>(field("link", &SeriesLink::name), field("capacity_bps", &SeriesLink::rate));
}

constexpr auto fields_of(const ConnectionState* /*type*/) {
  using T = ConnectionState;
  return list_of<T>(
      field("cwnd_bytes", &T::cwnd_bytes, Column{.of_packets = true, .counter = "bytes"}),
      field("cwnd_least_bytes", &T::cwnd_least_bytes, kOfPackets),
      field("cwnd_most_bytes", &T::cwnd_most_bytes, kOfPackets),
      field("in_flight_bytes", &T::in_flight_bytes, kOfPackets), field("pacing_bps", &T::pacing, kOfPackets),
      field("rtt_ns", &T::rtt, Column{.of_packets = true, .counter = "ns"}),
      field("rtt_most_ns", &T::rtt_max, kOfPackets), field("gain", &T::gain, Column{.counter = "gain"}),
      field("bytes_ratio", &T::bytes_ratio, Column{.counter = "share"}), field("iteration", &T::iteration, Column{}),
      field("sent_bytes", &T::sent_bytes, Column{.counts = true}),
      field("retransmitted_packets", &T::retransmitted_packets, kCount),
      field("lost_packets", &T::lost_packets, kCount), field("marked_packets", &T::marked_packets, kCount));
}

constexpr auto fields_of(const LinkState* /*type*/) {
  using T = LinkState;
  return list_of<T>(
      field("queue_bytes", &T::queue_bytes, Column{.of_packets = true, .counter = "bytes"}),
      field("queue_most_bytes", &T::queue_most_bytes, kOfPackets),
      field("sent_bytes", &T::sent_bytes, Column{.counts = true}), field("sent_packets", &T::sent_packets, kCount),
      field("marked_packets", &T::marked_packets, Column{.of_packets = true, .counter = "packets", .counts = true}),
      field("dropped_packets", &T::dropped_packets, Column{.of_packets = true, .counter = "packets", .counts = true}),
      field("pauses", &T::pauses, kCount));
}

}  // namespace mltcp::experiment
