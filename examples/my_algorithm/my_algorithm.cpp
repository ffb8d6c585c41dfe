// A congestion control algorithm in a shared object, for `--cc ./my_algorithm.so:gaimd`. It is an additive increase and
// multiplicative decrease with two free constants (GAIMD: Yang and Lam, ICNP 2000). docs/reference/algorithms.md
// explains the parts of this file.
#include <mltcp/cc/registry.h>

#include <algorithm>
#include <array>

namespace {

using namespace mltcp;

struct GaimdParameters {
  double increase = 1.0;
  double keep = 0.5;
};

class Gaimd {
 public:
  static constexpr std::string_view name = "gaimd";
  static constexpr cc::Capabilities capabilities{};
  using Parameters = GaimdParameters;
  static constexpr std::array parameters{
      cc::parameter<&GaimdParameters::increase>("increase", cc::above(0).at_most(100), "growth of the window",
                                                "packets per round trip"),
      cc::parameter<&GaimdParameters::keep>("keep", cc::above(0).below(1), "what congestion leaves of the window"),
  };

  void start(const cc::PathInfo& path, cc::Output& out) {
    const GaimdParameters given = path.parameters->of<Gaimd>();
    packet_ = path.max_packet_bytes;
    increase_ = given.increase;
    keep_ = given.keep;
    out.cwnd_bytes = 10 * packet_;  // initial window of RFC 6928
  }
  void on_ack(const cc::AckSample& ack, cc::Output& out) {
    if (ack.in_recovery || !ack.cwnd_limited) return;
    const auto acked = static_cast<double>(ack.acked_bytes);
    // The gain multiplies only the increase. This is what an algorithm needs to work with MLTCP.
    out.cwnd_bytes += slow_start_ ? acked : ack.gain * increase_ * packet_ * acked / out.cwnd_bytes;
  }
  void on_congestion(const cc::CongestionEvent& event, cc::Output& out) {
    slow_start_ = false;
    out.cwnd_bytes *= 1 - cc::reduction(1 - keep_, event.decrease_gain);
    out.cwnd_bytes = std::max(out.cwnd_bytes, 2 * packet_);
  }
  void on_timeout(Nanos, cc::Output& out) { out.cwnd_bytes = 2 * packet_; }
  void on_spurious_congestion(Nanos, cc::Output&) {}
  void on_timer(Nanos, cc::Output&) {}
  void on_idle_restart(Nanos, cc::Output& out) { out.cwnd_bytes = std::min(out.cwnd_bytes, 10 * packet_); }

 private:
  double packet_ = 0;  // bytes
  double increase_ = 0;
  double keep_ = 0;
  bool slow_start_ = true;
};

}  // namespace

const cc::AlgorithmLibrary* mltcp_cc_library() { return cc::library_of<Gaimd>(); }
