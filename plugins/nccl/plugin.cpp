#include "mltcp/plugins/nccl/plugin.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>

#include "mltcp/base/error.h"
#include "mltcp/cc/registry.h"
#include "mltcp/plugins/nccl/datapaths.h"
#include "mltcp/plugins/nccl/log.h"

namespace mltcp::nccl {
namespace {

const char* why_required() {
  const auto read = &endpoint::process_variable;
  if (has_key(read)) return "MLTCP_KEY_FILE";
  return is_on(read, "MLTCP_AUTHENTICATE") ? "MLTCP_AUTHENTICATE" : "MLTCP_REQUIRED";
}

}  // namespace

Plugin& Plugin::of_process() {
  static Plugin* const plugin = [] {
    // When the process ends, waits up to 1 s per device until peers know about connections that were closed shortly
    // before.
    std::atexit([] {
      for (const auto& device : of_process().devices_) device->wait_for_lingering(Nanos(1'000'000'000));
    });
    return new Plugin;
  }();
  return *plugin;
}

void Plugin::set_up() {
  register_datapaths_once();
  settings_ = read_environment(&endpoint::process_variable);
  try {
    settings_.cc = cc::algorithm_from(settings_.cc).name;
  } catch (const InputError& error) {
    throw InputError(fmt::format("MLTCP_CC: {}", error.what()));
  }
  std::vector<std::unique_ptr<Device>> found;
  for (const DevicePlan& plan : choose_devices(settings_, endpoint::list_interfaces()))
    found.push_back(std::make_unique<Device>(plan, settings_));
  // If there is only one device, it must work, so it is opened now. If there are several devices, each is opened when
  // NCCL uses it.
  if (found.size() == 1) found.front()->open();
  devices_ = std::move(found);
}

std::string Plugin::description(int version) const {
  std::string names;
  for (const auto& device : devices_) {
    std::string address = to_text(device->plan().address);
    address.resize(address.rfind(':'));
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", device->plan().device, address);
  }
  return fmt::format("version {}, net API v{}, {}; congestion control {}, job {} with {}", MLTCP_VERSION_TEXT, version,
                     names, settings_.cc, settings_.job, settings_.job_function);
}

Result Plugin::init(Logger logger, int version) {
  const std::lock_guard lock(guard_);
  if (logger != nullptr) set_logger(logger);
  if (devices_.empty() && broken_.empty()) {
    Result failed = Result::success;
    std::string why;
    try {
      set_up();
    } catch (const InputError& error) {
      failed = Result::invalid_usage;
      why = error.what();
    } catch (const std::exception& error) {
      failed = Result::system_error;
      why = error.what();
    }
    if (failed != Result::success) {
      if (!is_required(&endpoint::process_variable)) {
        log_warning(fmt::format("{}. NCCL continues without MLTCP", why));
        return failed;
      }
      log_warning(fmt::format("{}. {} is set, so operations that need the network will fail", why, why_required()));
      broken_ = why;
    }
  }
  ++contexts_;
  const std::uint64_t bit = std::uint64_t{1} << version;
  if (broken_.empty() && (logged_versions_ & bit) == 0) log_info(description(version));
  logged_versions_ |= bit;
  return Result::success;
}

void Plugin::finalize() noexcept {
  const std::lock_guard lock(guard_);
  if (contexts_ == 0 || --contexts_ > 0) return;
  for (const auto& device : devices_) device->close();
}

Result Plugin::devices(int* count) {
  const std::lock_guard lock(guard_);
  *count = broken_.empty() ? static_cast<int>(devices_.size()) : 1;
  return Result::success;
}

Result Plugin::properties(int device, Properties& out) {
  const std::lock_guard lock(guard_);
  out.number = device;
  out.max_comms = static_cast<int>(kMaxComms);
  // Maximum bytes of a message: the largest power of two that test() can report in an int.
  out.max_bytes = std::size_t{1} << 30;
  out.name = "unusable";
  out.speed_mbps = 1;
  if (!broken_.empty() && device == 0) return Result::success;
  if (device < 0 || device >= static_cast<int>(devices_.size())) return Result::internal_error;
  const Device& one = *devices_[static_cast<std::size_t>(device)];
  out.name = one.plan().name.c_str();
  out.pci_path = one.pci().empty() ? nullptr : one.pci().c_str();
  out.speed_mbps = one.speed();
  return Result::success;
}

Device* Plugin::device(int number) {
  const std::lock_guard lock(guard_);
  if (!broken_.empty()) {
    log_warning(fmt::format("{}. {} is set, so NCCL uses no other network", broken_, why_required()));
    return nullptr;
  }
  if (number >= 0 && number < static_cast<int>(devices_.size()))
    return devices_[static_cast<std::size_t>(number)].get();
  log_warning(fmt::format("NCCL requests device {}, of {}; report it, with the log of NCCL_DEBUG=INFO", number,
                          devices_.size()));
  return nullptr;
}

void Plugin::mark_iteration(endpoint::CollectiveSequence::Step step) noexcept {
  const std::lock_guard lock(guard_);
  for (const auto& device : devices_) device->mark_iteration(step);
}

}  // namespace mltcp::nccl
