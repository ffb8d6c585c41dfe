// Decorates a JobNetwork so that its packets are captured. The capture has one interface for each used sender or
// receiver. Not installed.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/transport/capture/capture.h"
#include "mltcp/transport/capture/captured_io.h"

namespace mltcp::experiment {

class CapturedNetwork final : public JobNetwork {
 public:
  /// `names` maps job numbers to job names. Throws RunError if the capture file cannot be written.
  CapturedNetwork(std::unique_ptr<JobNetwork> network, std::map<std::uint32_t, std::string> names,
                  const capture::CaptureOptions& options, bool real_time)
      : network_(std::move(network)),
        names_(std::move(names)),
        capture_(
            options, real_time ? std::function<Nanos()>() : [this] { return network_->now(); }) {}

  /// Starts the capture. Call after host() has been called for all senders and receivers.
  void start() { capture_.start(); }
  capture::Capture::Summary finish() { return capture_.finish(); }

  PacketIo& host(const End& end) override {
    std::unique_ptr<capture::CapturedIo>& io = ios_[{end.side, end.job, end.worker}];
    if (io == nullptr) {
      capture::Tap& tap =
          capture_.add(name_of(end), fmt::format("host {}", to_text(network_->address(end))), network_->address(end));
      io = std::make_unique<capture::CapturedIo>(network_->host(end), tap);
    }
    return *io;
  }
  const Address& address(const End& end) override { return network_->address(end); }
  void attach(const End& end, Pollable& pollable) override { network_->attach(end, pollable); }
  void wake(const End& end) override { network_->wake(end); }
  bool run(Nanos until, const std::function<bool()>& stop) override { return network_->run(until, stop); }
  [[nodiscard]] Nanos now() const override { return network_->now(); }
  [[nodiscard]] std::vector<LinkView> links() const override { return network_->links(); }
  [[nodiscard]] Bytes queue_bytes(std::size_t link) const override { return network_->queue_bytes(link); }
  [[nodiscard]] std::optional<Stalls> stalls() const override { return network_->stalls(); }

 private:
  /// Returns an interface name such as "vgg19-a sender" for worker 0 or "vgg19-a/1 sender" for worker 1.
  [[nodiscard]] std::string name_of(const End& end) const {
    const auto found = names_.find(end.job);
    return fmt::format("{}{} {}", found != names_.end() ? found->second : fmt::format("job {}", end.job),
                       end.worker > 0 ? fmt::format("/{}", end.worker) : "",
                       end.side == Side::sender ? "sender" : "receiver");
  }

  const std::unique_ptr<JobNetwork> network_;
  const std::map<std::uint32_t, std::string> names_;
  capture::Capture capture_;
  std::map<std::tuple<Side, std::uint32_t, std::uint32_t>, std::unique_ptr<capture::CapturedIo>> ios_;
};

}  // namespace mltcp::experiment
