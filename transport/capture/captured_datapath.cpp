// Implements a captured datapath (see captured_datapath.h).
#include "mltcp/transport/capture/captured_datapath.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/transport/capture/capture.h"
#include "mltcp/transport/capture/captured_io.h"

namespace mltcp::capture {
namespace {

class CapturedDatapath final : public HostDatapath {
 public:
  CapturedDatapath(std::unique_ptr<HostDatapath> datapath, std::string device, const CaptureOptions& options,
                   std::function<void(const std::string&, bool)> tell)
      : datapath_(std::move(datapath)), device_(std::move(device)), options_(options), tell_(std::move(tell)) {}
  ~CapturedDatapath() override {
    ios_.clear();
    if (capture_ == nullptr) return;
    const Capture::Summary summary = capture_->finish();
    bool is_complete = false;
    const std::string line = Capture::to_text(summary, is_complete);
    if (tell_) tell_(line, is_complete);
  }
  CapturedDatapath(const CapturedDatapath&) = delete;
  CapturedDatapath& operator=(const CapturedDatapath&) = delete;

  [[nodiscard]] std::string description() const override { return datapath_->description() + ", captured"; }
  [[nodiscard]] std::uint32_t mtu() const override { return datapath_->mtu(); }
  [[nodiscard]] TimeSource& time() override { return datapath_->time(); }
  [[nodiscard]] std::string why_link_is_down() const override { return datapath_->why_link_is_down(); }
  [[nodiscard]] std::string why_silent(const Address& peer) const override { return datapath_->why_silent(peer); }

  void take_place(const HostPlace& place) override {
    datapath_->take_place(place);
    try {
      capture_ = std::make_unique<Capture>(options_);
    } catch (const RunError& error) {
      throw RunError(fmt::format("capture: {}", error.what()));
    }
    const std::uint16_t shards = datapath_->shards();
    for (std::uint16_t shard = 0; shard < shards; ++shard) {
      Address own = place.address;
      own.port = static_cast<std::uint16_t>(own.port + shard);
      Tap& tap = capture_->add(shards == 1 ? device_ : fmt::format("{}/{}", device_, shard),
                               fmt::format("{}, IP and UDP headers made by the capture", to_text(own)), own);
      ios_.push_back(std::make_unique<CapturedIo>(datapath_->io(shard), tap));
    }
    // Replaces the feeders by their captured counterparts, so that packets received from feeders are recorded.
    for (std::uint16_t shard = 0; shard < shards; ++shard) {
      std::vector<PacketIo*> feeders;
      for (PacketIo* const feeder : datapath_->io(shard).feeders()) {
        std::uint16_t number = 0;
        while (number < shards && &datapath_->io(number) != feeder) ++number;
        feeders.push_back(number < shards ? ios_[number].get() : feeder);
      }
      ios_[shard]->set_feeders(std::move(feeders));
    }
    capture_->start();
  }
  [[nodiscard]] std::uint16_t shards() const override { return datapath_->shards(); }
  [[nodiscard]] PacketIo& io(std::uint16_t shard) override { return *ios_.at(shard); }
  bool resolve(std::uint16_t shard, const Address& destination) override {
    return datapath_->resolve(shard, destination);
  }
  [[nodiscard]] DatapathLosses losses() const override { return datapath_->losses(); }
  [[nodiscard]] std::span<DmaDevice* const> dma_devices() override { return datapath_->dma_devices(); }

 private:
  const std::unique_ptr<HostDatapath> datapath_;
  const std::string device_;
  const CaptureOptions options_;
  const std::function<void(const std::string&, bool)> tell_;
  std::unique_ptr<Capture> capture_;
  std::vector<std::unique_ptr<CapturedIo>> ios_;
};

}  // namespace

std::unique_ptr<HostDatapath> open_captured(const HostDatapathConfig& config, const CaptureOptions& options,
                                            std::function<void(const std::string& line, bool is_complete)> tell) {
  return std::make_unique<CapturedDatapath>(open_host_datapath(config), config.device, options, std::move(tell));
}

}  // namespace mltcp::capture
