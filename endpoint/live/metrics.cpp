// Loads the module that serves metrics, and gives it snapshots (see metrics.h).
#include "mltcp/endpoint/live/metrics.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/endpoint/live/internal/metrics_module.h"

namespace mltcp::live {
namespace {

constexpr const char* kModule = "libmltcp_metrics.so";

/// Returns the paths where the module may be, next to the program or shared library that contains this code. They cover
/// the layouts of an installation and of a build folder.
std::vector<std::filesystem::path> places() {
  std::vector<std::filesystem::path> places;
  Dl_info info{};
  std::filesystem::path own;
  if (dladdr(reinterpret_cast<const void*>(&mltcp::live::to_json), &info) != 0 && info.dli_fname != nullptr)
    own = info.dli_fname;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  // If a program was found through PATH, its name contains no path.
  if (own.is_relative() && !error) own = program;
  for (const char* const folder : {"mltcp", "../" MLTCP_LIB_FOLDER "/mltcp", "../lib/mltcp"})
    places.push_back((own.parent_path() / folder / kModule).lexically_normal());
  places.emplace_back(MLTCP_INSTALLED_FOLDER "/" + std::string(kModule));
  return places;
}

void* load(std::string& why) {
  why = "the file does not exist";
  for (const auto& path : places()) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    if (void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); module != nullptr) return module;
    why = dlerror();
  }
  return nullptr;
}

}  // namespace

MetricsAddress MetricsAddress::parse(std::string_view what, std::string_view text) {
  const auto wrong = [&] {
    return InputError(fmt::format(
        "{}: {} is not a valid address for metrics; write a port or an address, e.g. 9470 or 127.0.0.1:9470", what,
        in_quotes(text)));
  };
  MetricsAddress address;
  std::string_view port = text;
  std::string_view host = "127.0.0.1";
  if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']'))
      host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string_view::npos)
      throw wrong();
  }
  address.host = host == "localhost" ? "127.0.0.1" : std::string(host);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || address.port == 0) throw wrong();
  std::array<unsigned char, 16> ip{};
  if (inet_pton(AF_INET, address.host.c_str(), ip.data()) == 1) {
    address.is_loopback = ip[0] == 127;
  } else if (inet_pton(AF_INET6, address.host.c_str(), ip.data()) == 1) {
    address.is_loopback = address.host == "::1";
  } else {
    throw wrong();
  }
  return address;
}

std::string MetricsAddress::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

struct MetricsServer::Module {
  decltype(&mltcp_metrics_start) start = nullptr;
  decltype(&mltcp_metrics_stop) stop = nullptr;
  void* server = nullptr;
};

MetricsServer::MetricsServer(std::string_view what, const MetricsAddress& address, Look look)
    : look_(std::move(look)), module_(std::make_unique<Module>()) {
  std::string why;
  void* const library = load(why);
  if (library == nullptr)
    throw RunError(
        fmt::format("{}: the metrics module, {}, cannot be loaded ({}); install prometheus-cpp and libmicrohttpd "
                    "(Debian: prometheus-cpp-dev, libmicrohttpd-dev) and build again, or leave it out",
                    what, kModule, why));
  const auto find = [&](auto& function, const char* name) {
    function = std::bit_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) throw RunError(fmt::format("{}: {} has no {}; build mltcp again", what, kModule, name));
  };
  find(module_->start, "mltcp_metrics_start");
  find(module_->stop, "mltcp_metrics_stop");
  const auto look_in_c = [](void* context) -> char* {
    try {
      const auto snapshot = static_cast<MetricsServer*>(context)->look_();
      return snapshot ? strdup(to_json(*snapshot).c_str()) : nullptr;
    } catch (const std::exception&) {
      return nullptr;  // handled like a missing snapshot
    }
  };
  std::array<char, 256> error{};
  module_->server = module_->start(address.host.c_str(), address.port, look_in_c, this, error.data(), error.size());
  if (module_->server == nullptr)
    throw RunError(
        fmt::format("{}: cannot listen on {} ({}); give another port", what, address.text(), one_line(error.data())));
}

MetricsServer::~MetricsServer() { module_->stop(module_->server); }

}  // namespace mltcp::live
