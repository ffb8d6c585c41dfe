// PyTorch over MLTCP: makes the device of plugins/gloo available to PyTorch. The device is registered as "MLTCP" with
// torch.distributed, which uses it if GLOO_DEVICE_TRANSPORT=MLTCP is set. It is also passed to Python, for the backend
// "mltcp" that `import mltcp.torch` registers.
//
// The Python module mltcp.torch calls the functions of this library. These functions apply to devices that PyTorch has
// created and that still exist. There is one device for each process group, or one device for all groups. Each device
// has a number.
//
// Python gets a device as an object of PyTorch's own class ProcessGroupGloo.Device, through the types that PyTorch has
// registered with pybind11. Python itself is not linked, because the loading process is Python.
#include <pybind11/pybind11.h>
// pybind11.h includes Python's header, which must come before all other headers.
#include <torch/csrc/api/include/torch/version.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/GlooDeviceFactory.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "mltcp/plugins/gloo/device.h"

namespace {

using Device = gloo::transport::mltcp::Device;

struct Devices {
  struct One {
    std::uint64_t number;
    std::weak_ptr<Device> device;
    pid_t process = getpid();
  };
  std::mutex mutex;
  std::vector<One> all;
  std::uint64_t made = 0;

  /// Returns the existing devices with these numbers, or all devices if `numbers` is empty. In a forked process, omits
  /// devices of the parent process.
  std::vector<std::shared_ptr<Device>> alive(std::span<const std::uint64_t> numbers = {}) {
    const std::lock_guard lock(mutex);
    std::vector<std::shared_ptr<Device>> found;
    for (const One& one : all)
      if (auto device = one.device.lock();
          device != nullptr && one.process == getpid() &&
          (numbers.empty() || std::find(numbers.begin(), numbers.end(), one.number) != numbers.end()))
        found.push_back(std::move(device));
    return found;
  }
};

/// Returns the list of devices. It is never destroyed, because PyTorch's threads may ask for a device until the process
/// ends.
Devices& devices() {
  static Devices* const instance = new Devices;  // NOLINT(cppcoreguidelines-owning-memory)
  return *instance;
}

/// Creates a device. PyTorch gives either the interface (GLOO_SOCKET_IFNAME) or this host's name or address.
std::shared_ptr<gloo::transport::Device> make(const std::string& interface, const std::string& hostname) {
  gloo::transport::mltcp::attr attributes;
  attributes.iface = interface;
  attributes.hostname = hostname;
  auto device = gloo::transport::mltcp::CreateDevice(attributes);
  Devices& known = devices();
  const std::lock_guard lock(known.mutex);
  known.all.erase(
      std::remove_if(known.all.begin(), known.all.end(), [](const auto& one) { return one.device.expired(); }),
      known.all.end());
  known.all.push_back({++known.made, device});
  return device;
}

/// Reads what PyTorch's class of process groups declares as protected.
struct Group : c10d::ProcessGroupGloo {
  /// Returns true if no thread of `group` has work or holds a tensor of ended work. A thread of the group holds the
  /// mutex while it releases such a tensor.
  static bool is_idle(c10d::ProcessGroupGloo& group) {
    const std::lock_guard lock(group.*&Group::workMutex_);
    const auto& running = group.*&Group::workInProgress_;
    return (group.*&Group::workQueue_).empty() &&
           std::all_of(running.begin(), running.end(), [](const auto& work) { return !work.defined(); });
  }
};

/// Whether this copy of the library is the one that PyTorch uses.
bool is_registered = false;

/// Text that describes why the latest call of this thread failed.
thread_local std::string failure;

/// Calls `what` for the devices with the `count` numbers, or for all devices if `count` is 0. Returns 1 if one of the
/// calls fails, and 0 if none does. A failed call does not stop the others.
template <typename What>
int each(const std::uint64_t* numbers, std::uint32_t count, What what) noexcept {
  int failed = 0;
  const auto attempt = [&](auto&& part) {
    try {
      part();
    } catch (const std::exception& error) {
      if (failed == 0) failure = error.what();
      failed = 1;
    }
  };
  attempt([&] {
    for (const auto& device : devices().alive({numbers, count})) attempt([&] { what(*device); });
  });
  return failed;
}

}  // namespace

#define MLTCP_TORCH_API extern "C" __attribute__((visibility("default")))

/// Returns the version of PyTorch for which this library was built, such as "1.13.0".
MLTCP_TORCH_API const char* mltcp_torch_built_with() { return TORCH_VERSION; }
/// Registers the device, once. Returns 1 if another copy of this library has already done so.
MLTCP_TORCH_API int mltcp_torch_register() {
  if (is_registered) return 0;
  if (c10d::GlooDeviceRegistry()->Has("MLTCP")) return 1;
  c10d::GlooDeviceRegistry()->Register("MLTCP", make);
  is_registered = true;
  return 0;
}
/// Returns a new device as a ProcessGroupGloo.Device. At least one of `interface` and `hostname` must be empty. The
/// caller holds Python's lock. On failure, returns null and sets a Python exception.
MLTCP_TORCH_API PyObject* mltcp_torch_make_device(const char* interface, const char* hostname) {
  try {
    std::shared_ptr<gloo::transport::Device> device;
    {
      const pybind11::gil_scoped_release unlocked;  // looking up a host's name may take time
      device = make(interface, hostname);
    }
    return pybind11::cast(std::move(device)).release().ptr();
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}
/// Returns the number of existing devices of this process.
MLTCP_TORCH_API std::uint32_t mltcp_torch_devices() { return static_cast<std::uint32_t>(devices().alive().size()); }
/// Returns the number of a ProcessGroupGloo.Device, from 1. Returns 0 if it is not a device of MLTCP. The caller holds
/// Python's lock.
MLTCP_TORCH_API std::uint64_t mltcp_torch_number_of(PyObject* object) {
  try {
    const auto device = pybind11::cast<std::shared_ptr<gloo::transport::Device>>(pybind11::handle(object));
    Devices& known = devices();
    const std::lock_guard lock(known.mutex);
    for (const auto& one : known.all)
      if (device != nullptr && one.device.lock() == device) return one.number;
  } catch (const std::exception&) {  // an object of another class
  }
  return 0;
}
/// Waits until the threads of a process group have ended all work and hold no tensor, for at most `limit_s` seconds.
/// Returns at once if `object` is not a ProcessGroupGloo. The caller holds Python's lock, which is free meanwhile.
MLTCP_TORCH_API void mltcp_torch_wait_until_idle(PyObject* object, double limit_s) {
  try {
    auto& group = pybind11::cast<c10d::ProcessGroupGloo&>(pybind11::handle(object));
    const pybind11::gil_scoped_release unlocked;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
    while (!Group::is_idle(group) && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } catch (const std::exception&) {  // an object of another class
  }
}
/// Returns the error text of this thread's latest call that returned 1.
MLTCP_TORCH_API const char* mltcp_torch_failure() { return failure.c_str(); }
// Each of the next functions applies to the devices with the `count` numbers, or to all devices if `count` is 0.
MLTCP_TORCH_API int mltcp_torch_begin_iteration(const std::uint64_t* numbers, std::uint32_t count,
                                                std::uint64_t bytes) {
  return each(numbers, count, [&](Device& device) { device.beginIteration(bytes); });
}
MLTCP_TORCH_API int mltcp_torch_end_iteration(const std::uint64_t* numbers, std::uint32_t count) {
  return each(numbers, count, [](Device& device) { device.endIteration(); });
}
MLTCP_TORCH_API int mltcp_torch_begin_by_hook(const std::uint64_t* numbers, std::uint32_t count,
                                              std::uint64_t expected) {
  return each(numbers, count, [&](Device& device) { device.beginIterationByHook(expected); });
}
MLTCP_TORCH_API int mltcp_torch_end_by_hook(const std::uint64_t* numbers, std::uint32_t count) {
  return each(numbers, count, [](Device& device) { device.endIterationByHook(); });
}
/// Writes the state of device `number`, counted from 0. `counts`: iteration, bytes_sent, bytes_per_iteration,
/// connections, IterationsBy, bytes_posted, packets_sent, lost_packets, retransmitted_packets, smoothed_rtt_ns.
/// `shares`: bytes_ratio, gain. Returns 1 if there is no such device.
MLTCP_TORCH_API int mltcp_torch_state(std::uint32_t number, std::uint64_t counts[10], double shares[2]) {
  try {
    const auto alive = devices().alive();
    if (number >= alive.size()) return 1;
    const gloo::transport::mltcp::JobState state = alive[number]->jobState();
    counts[0] = state.iteration;
    counts[1] = state.bytes_sent;
    counts[2] = state.bytes_per_iteration;
    counts[3] = state.connections;
    counts[4] = static_cast<std::uint64_t>(state.iterations_by);
    counts[5] = state.bytes_posted;
    counts[6] = state.packets_sent;
    counts[7] = state.lost_packets;
    counts[8] = state.retransmitted_packets;
    counts[9] = static_cast<std::uint64_t>(state.smoothed_rtt_ns);
    shares[0] = state.bytes_ratio;
    shares[1] = state.gain;
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
