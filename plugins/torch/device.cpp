// PyTorch over MLTCP: registers the device of plugins/gloo as "MLTCP" with torch.distributed, which takes it where
// GLOO_DEVICE_TRANSPORT=MLTCP says so. Loaded by `import mltcp.torch`.
//
// The functions are for that module. They speak of all devices that PyTorch has made and that are still there: one for
// each process group, or one for all.
#include <c10/util/Registry.h>
#include <gloo/transport/device.h>
#include <torch/csrc/api/include/torch/version.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mltcp/plugins/gloo/device.h"

namespace c10d {
// As in GlooDeviceFactory.hpp, which only builds of PyTorch itself can include.
C10_DECLARE_SHARED_REGISTRY(GlooDeviceRegistry, ::gloo::transport::Device, const std::string&, const std::string&);
}  // namespace c10d

namespace {

using Device = gloo::transport::mltcp::Device;

struct Devices {
  std::mutex mutex;
  std::vector<std::weak_ptr<Device>> all;

  std::vector<std::shared_ptr<Device>> alive() {
    const std::lock_guard lock(mutex);
    std::vector<std::shared_ptr<Device>> found;
    for (const auto& one : all)
      if (auto device = one.lock(); device != nullptr) found.push_back(std::move(device));
    return found;
  }
};

/// Never destroyed: PyTorch's threads may ask for a device until the process ends.
Devices& devices() {
  static Devices* const instance = new Devices;  // NOLINT(cppcoreguidelines-owning-memory)
  return *instance;
}

/// PyTorch gives one of both: GLOO_SOCKET_IFNAME, or this host's name or address.
std::shared_ptr<gloo::transport::Device> make(const std::string& interface, const std::string& hostname) {
  gloo::transport::mltcp::attr attributes;
  attributes.iface = interface;
  attributes.hostname = hostname;
  auto device = gloo::transport::mltcp::CreateDevice(attributes);
  Devices& known = devices();
  const std::lock_guard lock(known.mutex);
  known.all.erase(std::remove_if(known.all.begin(), known.all.end(), [](const auto& one) { return one.expired(); }),
                  known.all.end());
  known.all.push_back(device);
  return device;
}

const c10d::RegistererGlooDeviceRegistry registered("MLTCP", c10d::GlooDeviceRegistry(), make);

/// 0, or 1 where a device says no.
template <typename What>
int each(What what) noexcept {
  try {
    for (const auto& device : devices().alive()) what(*device);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace

#define MLTCP_TORCH_API extern "C" __attribute__((visibility("default")))

/// The PyTorch that this was built with: "1.13.0".
MLTCP_TORCH_API const char* mltcp_torch_built_with() { return TORCH_VERSION; }
/// Devices that are there.
MLTCP_TORCH_API std::uint32_t mltcp_torch_devices() { return static_cast<std::uint32_t>(devices().alive().size()); }
MLTCP_TORCH_API int mltcp_torch_begin_iteration(std::uint64_t bytes) {
  return each([&](Device& device) { device.beginIteration(bytes); });
}
MLTCP_TORCH_API int mltcp_torch_end_iteration() {
  return each([](Device& device) { device.endIteration(); });
}
/// Of device `number`, from 0: iteration, bytes_sent, bytes_per_iteration, connections; bytes_ratio, gain. 1: there is
/// no such device.
MLTCP_TORCH_API int mltcp_torch_state(std::uint32_t number, std::uint64_t counts[4], double shares[2]) {
  try {
    const auto alive = devices().alive();
    if (number >= alive.size()) return 1;
    const gloo::transport::mltcp::JobState state = alive[number]->jobState();
    counts[0] = state.iteration;
    counts[1] = state.bytes_sent;
    counts[2] = state.bytes_per_iteration;
    counts[3] = state.connections;
    shares[0] = state.bytes_ratio;
    shares[1] = state.gain;
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
