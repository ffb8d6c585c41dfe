// Reports of readiness (see readiness.h).
#include "mltcp/lab/testbed/readiness.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::testbed {
namespace {

constexpr const char* kVariable = "NOTIFY_SOCKET";
constexpr std::string_view kReady = "READY=1";

/// Address of a socket whose name has the syntax of NOTIFY_SOCKET: a path, or "@NAME" for an abstract name.
class Address {
 public:
  /// valid() is false if the name is too long, or is neither a path nor an abstract name.
  explicit Address(std::string_view name) {
    if (name.size() < 2 || name.size() >= sizeof address_.sun_path || (name[0] != '/' && name[0] != '@')) return;
    name.copy(address_.sun_path, name.size());
    if (name[0] == '@') address_.sun_path[0] = '\0';
    // An abstract name has no terminating 0, so this size tells the kernel where the name ends.
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  }
  [[nodiscard]] bool valid() const { return size_ > 0; }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  [[nodiscard]] socklen_t size() const { return size_; }

 private:
  sockaddr_un address_{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size_ = 0;
};

/// Returns whether any line of the message reports readiness. All other lines are for systemd and are ignored.
bool says_ready(std::string_view message) {
  while (!message.empty()) {
    const std::size_t end = message.find('\n');
    if (message.substr(0, end) == kReady) return true;
    message = end == std::string_view::npos ? std::string_view() : message.substr(end + 1);
  }
  return false;
}

}  // namespace

Readiness::Readiness(const std::string& name)
    : name_("@" + name), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const Address address(name_);
  if (socket_ >= 0 && address.valid() && bind(socket_, address.get(), address.size()) == 0) return;
  const std::string reason = address.valid() ? std::strerror(errno) : "its name is too long";
  if (socket_ >= 0) close(socket_);
  throw RunError(
      fmt::format("cannot create socket {}, on which a program reports that it is ready: {}", name_, reason));
}

Readiness::~Readiness() { close(socket_); }

std::pair<std::string, std::string> Readiness::environment() const { return {kVariable, name_}; }

bool Readiness::reported() {
  std::array<char, 4096> message{};
  for (ssize_t size = 0; !reported_ && (size = recv(socket_, message.data(), message.size(), 0)) >= 0;)
    reported_ = says_ready({message.data(), static_cast<std::size_t>(size)});
  return reported_;
}

std::string report_ready() {
  const char* const name = std::getenv(kVariable);
  if (name == nullptr) return "";
  const Address address(name);
  if (!address.valid())
    return fmt::format("{} is {}, which is neither /PATH nor @NAME of a socket", kVariable, in_quotes(name));
  const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool sent = file >= 0 && sendto(file, kReady.data(), kReady.size(), MSG_NOSIGNAL, address.get(),
                                        address.size()) == static_cast<ssize_t>(kReady.size());
  const int error = errno;
  if (file >= 0) close(file);
  return sent ? ""
              : fmt::format("{} {} cannot be notified that this program is ready: {}", kVariable, in_quotes(name),
                            std::strerror(error));
}

}  // namespace mltcp::testbed
