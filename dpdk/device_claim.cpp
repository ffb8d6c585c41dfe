// Claims of devices within a process; see device_claim.h.
#include "mltcp/dpdk/device_claim.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

namespace mltcp::dpdk {
namespace {

struct Holder {
  std::string port;
  std::string user;
};

struct Holders {
  std::mutex mutex;
  std::map<std::string, Holder> by_identity;
};

/// Never destroyed, because ports may be closed while the process ends.
Holders& holders() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one for the process
  static Holders* const all = new Holders;
  return *all;
}

}  // namespace

DeviceClaim::DeviceClaim(std::string identity, const std::string& port) : identity_(std::move(identity)) {
  Holders& all = holders();
  const std::lock_guard lock(all.mutex);
  const auto [place, is_new] = all.by_identity.try_emplace(identity_, Holder{port, {}});
  ours_ = is_new;
  if (ours_) return;
  const Holder& holder = place->second;
  holder_ = fmt::format("as {}{}{}", holder.port, holder.user.empty() ? "" : ", of ", holder.user);
}

DeviceClaim::~DeviceClaim() {
  if (!ours_) return;
  Holders& all = holders();
  const std::lock_guard lock(all.mutex);
  all.by_identity.erase(identity_);
}

void DeviceClaim::set_user(const std::string& user) const {
  Holders& all = holders();
  const std::lock_guard lock(all.mutex);
  all.by_identity[identity_].user = user;
}

}  // namespace mltcp::dpdk
