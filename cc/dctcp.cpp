// Implements DCTCP (see dctcp.h).
#include "mltcp/cc/dctcp.h"

namespace mltcp::cc {

void Dctcp::start(const PathInfo& path, Output& out) {
  reno_.start(path, out);
  const DctcpParameters given = path.parameters->of<Dctcp>();
  g_ = given.g;
  alpha_ = given.initial_alpha;
}

// Section 3.3, steps 1 to 8. A window of data ends when data is acknowledged that was sent after the end of the
// previous window. The transport defines a round trip in the same way. With floating point, alpha reaches 0 without the
// special care of section 4.2.
void Dctcp::observe(const AckSample& ack) {
  acked_bytes_ += ack.acked_bytes;
  marked_bytes_ += ack.ce_bytes;
  if (ack.round_count == round_ || acked_bytes_ == 0) return;
  const double marked_share = static_cast<double>(marked_bytes_) / static_cast<double>(acked_bytes_);
  alpha_ += g_ * (marked_share - alpha_);
  round_ = ack.round_count;
  acked_bytes_ = marked_bytes_ = 0;
}

void Dctcp::on_ack(const AckSample& ack, Output& out) {
  observe(ack);
  judge_.on_acked(ack.acked_packets, ack.ce_packets > 0, ack.round_count, ack.smoothed_rtt,
                  judge_.shows_queue(ack.smoothed_rtt, ack.min_rtt));
  if (answer_marks_) {
    // Section 3.3, step 9. The transport reports marks and losses at most once per window of data.
    reno_.decrease(reduction(alpha_ / 2, decrease_gain_), out);
    answer_marks_ = false;
  }
  reno_.on_ack(ack, out);  // window growth (section 3.4)
}

bool Dctcp::is_congestion(const LossReport& losses) {
  const bool full = judge_.shows_queue(losses.smoothed_rtt, losses.min_rtt);
  return judge_.is_congestion(losses.packets, losses.ce_packets > 0, full) || !losses.ecn_works;
}

void Dctcp::on_congestion(const CongestionEvent& event, Output& out) {
  if (event.cause == CongestionEvent::Cause::ecn) {
    answer_marks_ = true;
    decrease_gain_ = event.decrease_gain;
  } else {
    reno_.on_congestion(event, out);  // packet loss (section 3.5)
  }
}

}  // namespace mltcp::cc
