// A shared object with algorithms, for registry_test.cpp. It is built three times: valid, with an incompatible ABI, and
// without the function that lists the algorithms.
#include "mltcp/cc/registry.h"

namespace {

using namespace mltcp;

struct Elsewhere {
  static constexpr std::string_view name = "elsewhere";
  static constexpr cc::Capabilities capabilities{};
  void start(const cc::PathInfo&, cc::Output& out) { out.cwnd_bytes = 1234; }
  void on_ack(const cc::AckSample& ack, cc::Output& out) { out.cwnd_bytes += ack.gain; }
  void on_congestion(const cc::CongestionEvent&, cc::Output&) {}
  void on_timeout(Nanos, cc::Output&) {}
  void on_spurious_congestion(Nanos, cc::Output&) {}
  void on_timer(Nanos, cc::Output&) {}
  void on_idle_restart(Nanos, cc::Output&) {}
};

struct Impostor : Elsewhere {
  static constexpr std::string_view name = "reno";
};

}  // namespace

#if MLTCP_MODULE_KIND == 0
const cc::AlgorithmLibrary* mltcp_cc_library() { return cc::library_of<Elsewhere, Impostor>(); }
#elif MLTCP_MODULE_KIND == 1
const cc::AlgorithmLibrary* mltcp_cc_library() {
  static const cc::AlgorithmLibrary other{cc::kLibraryAbi + (std::uint64_t{1} << 32U), nullptr, 99};
  return &other;
}
#else
extern "C" int mltcp_another_library();
int mltcp_another_library() { return static_cast<int>(sizeof(Impostor)); }
#endif
