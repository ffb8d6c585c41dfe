// Shows the endpoints of this process to other processes (see live_endpoints.h).
#include "mltcp/endpoint/internal/live_endpoints.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/endpoint/environment.h"
#include "mltcp/endpoint/internal/core.h"
#include "mltcp/endpoint/live/control_socket.h"
#include "mltcp/endpoint/live/metrics.h"

namespace mltcp::endpoint {
namespace {

/// The process's servers for snapshots. Never destroyed, because their threads may be running when the process ends.
class LiveEndpoints {
 public:
  LiveEndpoints(bool socket, const std::optional<live::MetricsAddress>& metrics) : began_(monotonic_now()) {
    const auto look = [this] { return std::optional(snapshot()); };
    if (metrics) metrics_ = std::make_unique<live::MetricsServer>("MLTCP_METRICS", *metrics, look);
    if (socket) socket_ = std::make_unique<live::ControlSocket>("endpoint", look);
  }

  void add(const std::shared_ptr<Core>& core) {
    const std::lock_guard lock(mutex_);
    std::erase_if(cores_, [](const auto& known) { return known.expired(); });
    cores_.push_back(core);
  }
  /// Removes the socket file, so that no other process connects any more.
  void remove_socket() const {
    if (socket_ != nullptr) unlink(socket_->path().c_str());
  }
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  live::Snapshot snapshot() {
    live::Snapshot shown;
    shown.kind = "endpoint";
    shown.pid = static_cast<std::uint32_t>(process_);
    shown.up_seconds = (monotonic_now() - began_).seconds();
    std::vector<std::weak_ptr<Core>> cores;
    {
      const std::lock_guard lock(mutex_);
      cores = cores_;
    }
    for (const auto& known : cores)
      if (const std::shared_ptr<Core> core = known.lock()) core->show(shown);
    return shown;
  }

  const pid_t process_ = getpid();
  const Nanos began_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Core>> cores_;
  std::unique_ptr<live::MetricsServer> metrics_;
  std::unique_ptr<live::ControlSocket> socket_;
};

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): exist once in a process
std::mutex making;
LiveEndpoints* all = nullptr;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

/// Starts the servers that MLTCP_LIVE and MLTCP_METRICS request, unless the servers already run. Adds the endpoint
/// unless `core` is null. Returns the address of the metrics server; empty if none is requested.
std::optional<live::MetricsAddress> show(const std::shared_ptr<Core>& core) {
  const bool socket = flag_variable(&process_variable, "MLTCP_LIVE");
  const std::string_view text = variable(&process_variable, "MLTCP_METRICS");
  if (!socket && text.empty()) return std::nullopt;
  std::optional<live::MetricsAddress> metrics;
  if (!text.empty()) metrics = live::MetricsAddress::parse("MLTCP_METRICS", text);
  const std::lock_guard lock(making);
  // After fork(2), the threads of the existing object belong to the parent process, so the child makes its own object.
  if (all == nullptr || all->process() != getpid()) {
    static const int registered = std::atexit([] {
      if (all != nullptr && all->process() == getpid()) all->remove_socket();
    });
    static_cast<void>(registered);
    all = std::make_unique<LiveEndpoints>(socket, metrics).release();
  }
  if (core != nullptr) all->add(core);
  return metrics;
}

}  // namespace

void show_endpoint(const std::shared_ptr<Core>& core) { show(core); }

std::string begin_showing() {
  const std::optional<live::MetricsAddress> metrics = show(nullptr);
  return metrics && !metrics->is_loopback ? metrics->text() : "";
}

}  // namespace mltcp::endpoint
