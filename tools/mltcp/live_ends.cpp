// Publishes the live state of a command (see live_ends.h).
#include "live_ends.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

/// Time limit of an answer. It is shorter than the time that live::ask_all() waits for one.
constexpr Nanos kAnswerWithin{400'000'000};

}  // namespace

std::optional<live::MetricsAddress> metrics_of(const std::optional<std::string>& given) {
  if (!given) return std::nullopt;
  live::MetricsAddress address = live::MetricsAddress::parse("--metrics", *given);
  if (!address.is_loopback)
    print_warning(
        fmt::format("--metrics: every program that reaches {} can read the metrics, without a password; give a "
                    "loopback address, or restrict access by a firewall",
                    address.text()));
  return address;
}

LiveEnds::LiveEnds(const std::string& kind, live::Exchange& exchange,
                   const std::optional<live::MetricsAddress>& metrics) {
  const auto look = [&exchange] { return exchange.ask(kAnswerWithin); };
  if (metrics) metrics_ = std::make_unique<live::MetricsServer>("--metrics", *metrics, look);
  try {
    socket_ = std::make_unique<live::ControlSocket>(kind, look);
  } catch (const RunError& error) {
    print_warning(fmt::format("mltcp top cannot show this process: {}", error.what()));
  }
}

}  // namespace mltcp::tools
