// Names of ports of RDMA devices; see verbs_name.h.
#include "mltcp/rdma/verbs_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/rdma/device.h"

namespace mltcp::rdma {
namespace {

constexpr std::string_view kPrefix = "verbs:";
constexpr std::string_view kKind = "verbs";
constexpr std::string_view kRaw = "raw";
constexpr std::size_t kLongestDevice = 63;  // the kernel's IB_DEVICE_NAME_MAX - 1

std::optional<std::uint8_t> number_in(std::string_view text) {
  std::uint8_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || at != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Removes the text before the next colon from `rest` and returns it. Removes the colon as well.
std::string_view take_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(':'), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::string no_device_given() {
  std::string here;
  try {
    here = fmt::format(" (here: {})", fmt::join(device_names(), ", "));
  } catch (const RunError&) {
    // If the devices cannot be listed, the message below lists none. The user sees the cause after naming a device.
  }
  return fmt::format("the device is missing; write {}{}", kVerbsForms, here);
}

}  // namespace

std::string to_text(const VerbsName& name) {
  return name.port == 1 ? fmt::format("verbs:{}", name.device) : fmt::format("verbs:{}:{}", name.device, name.port);
}

bool is_verbs_name(std::string_view text) { return text == kKind || text.starts_with(kPrefix); }

VerbsName parse_verbs_name(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return InputError(fmt::format("port {}: {}", in_quotes(text), why));
  };
  if (!text.starts_with(kPrefix)) throw wrong(no_device_given());
  std::string_view rest = text.substr(kPrefix.size());
  if (std::count(rest.begin(), rest.end(), ':') > 2)
    throw wrong(fmt::format("too many colons; write {}, without the UDP port", kVerbsForms));
  VerbsName name;
  const bool has_port = rest.find(':') != std::string_view::npos;
  const bool has_gid = std::count(rest.begin(), rest.end(), ':') == 2;
  name.device = std::string(take_part(rest));
  if (name.device.empty()) throw wrong(no_device_given());
  if (name.device.size() > kLongestDevice || name.device.find('/') != std::string::npos)
    throw wrong(fmt::format("there is no device of that name; to list devices: rdma link"));
  if (has_port) {
    const auto port = number_in(take_part(rest));
    if (!port || *port == 0)
      throw wrong("the port of the device is a number from 1 to 255; leave it out for the first");
    name.port = *port;
  }
  if (has_gid && rest == kRaw) {
    name.is_raw = true;
  } else if (has_gid) {
    name.gid_index = number_in(rest);
    if (!name.gid_index)
      throw wrong(
          "the GID is given by its index, 0 to 255; leave it out for the one that is the host's address (ibv_devinfo "
          "-v lists them)");
  }
  return name;
}

}  // namespace mltcp::rdma
