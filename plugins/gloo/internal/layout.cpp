#include "mltcp/plugins/gloo/internal/layout.h"

#include <string>

#include "gloo/common/error.h"

namespace gloo::transport::mltcp {
namespace {

constexpr int kProbeRank = 3;
constexpr int kProbeSize = 7;

class Probe final : public ::gloo::transport::Context {
 public:
  Probe() : ::gloo::transport::Context(kProbeRank, kProbeSize) {}
  std::unique_ptr<::gloo::transport::Pair>& createPair(int peer) override {
    return pairs_.at(static_cast<std::size_t>(peer));
  }
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void*, std::size_t) override { return nullptr; }
  [[nodiscard]] bool is_as_written() const {
    return rank == kProbeRank && size == kProbeSize && pairs_.size() == static_cast<std::size_t>(kProbeSize) &&
           pendingOperations_.empty() && expectedNotifications_.empty();
  }
};

std::string text_of(const GlooLayout& layout) {
  std::string text = "version " + std::to_string(layout.version) + ", sizes";
  for (const std::uint32_t size :
       {layout.device, layout.context, layout.pair, layout.buffer, layout.unbound_buffer, layout.address_bytes})
    text += " " + std::to_string(size);
  return text;
}

}  // namespace

void check_layout(const GlooLayout& caller) {
  const GlooLayout own;
  const std::string ours = text_of(own);
  const std::string theirs = text_of(caller);
  if (ours != theirs)
    throw InvalidOperationException("MLTCP: this program is compiled with another Gloo (" + theirs +
                                    ") than libmltcp-gloo (" + ours + "); build both with the same headers of Gloo");
}

void check_loaded_gloo() {
  static const bool good = Probe().is_as_written();
  if (!good)
    throw InvalidOperationException(
        "MLTCP: the Gloo that is loaded has other types than the headers that libmltcp-gloo was built with (" +
        text_of(GlooLayout{}) + "); build libmltcp-gloo with the headers of the Gloo that the program runs with");
}

}  // namespace gloo::transport::mltcp
