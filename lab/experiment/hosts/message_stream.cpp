// Messages over stream sockets (see message_stream.h).
#include "mltcp/lab/experiment/hosts/message_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

constexpr std::size_t kLengthBytes = 4;
constexpr Nanos kLongestSend = 10_s;
constexpr Nanos kLongestGreeting = 10_s;
// A process without a key sends this text in place of a greeting, so that the peer can report why they cannot
// communicate.
constexpr std::string_view kNoKey = "this end has no key";
constexpr Nanos kRetry = 100_ms;
constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

void make_ready(int file) {
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
  fcntl(file, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  // These options have no effect on Unix sockets. A TCP stream ends 30 s after the peer's machine has become
  // unreachable.
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  for (const auto& [option, value] : {std::pair(TCP_KEEPIDLE, 10), std::pair(TCP_KEEPINTVL, 5),
                                      std::pair(TCP_KEEPCNT, 4), std::pair(TCP_USER_TIMEOUT, 30'000)})
    setsockopt(file, IPPROTO_TCP, option, &value, sizeof value);
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path), path.data(), path.size());
  return address;
}

template <typename T>
const sockaddr* generic(const T& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
}

struct Resolved {
  explicit Resolved(const StreamAddress& address, bool passive) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
    if (const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &list); error != 0)
      throw RunError(fmt::format("{}: {}; give a name that this machine knows, or an IP address",
                                 one_line(address.host), gai_strerror(error)));
  }
  ~Resolved() { freeaddrinfo(list); }
  Resolved(const Resolved&) = delete;
  Resolved& operator=(const Resolved&) = delete;
  addrinfo* list = nullptr;
};

/// Returns a connected socket, or -1 and sets errno.
int try_to_connect(const StreamAddress& address, Nanos limit) {
  const auto attempt = [&](int family, const sockaddr* to, socklen_t size) {
    const int file = socket(family, SOCK_STREAM, 0);
    if (file < 0) return -1;
    make_ready(file);
    int error = connect(file, to, size) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      pollfd wanted{file, POLLOUT, 0};
      socklen_t length = sizeof error;
      if (poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(limit.count / 1'000'000 + 1, 2000))) <= 0)
        error = ETIMEDOUT;
      else
        getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error == 0) return file;
    close(file);
    errno = error;
    return -1;
  };
  if (address.host.empty()) {
    const sockaddr_un to = unix_address(address.path);
    return attempt(AF_UNIX, generic(to), sizeof to);
  }
  const Resolved resolved(address, false);
  for (const addrinfo* to = resolved.list; to != nullptr; to = to->ai_next)
    if (const int file = attempt(to->ai_family, to->ai_addr, to->ai_addrlen); file >= 0) return file;
  return -1;
}

}  // namespace

Nanos wall_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Nanos(std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
}

StreamAddress parse_stream_address(std::string_view text) {
  const auto fail = [&](std::string_view cause) {
    throw InputError(fmt::format("address {}: {}; write HOST:PORT, [IPv6]:PORT or unix:/path", in_quotes(text), cause));
  };
  StreamAddress address;
  if (text.starts_with("unix:")) {
    address.path = text.substr(5);
    if (address.path.empty() || address.path.find('\0') != std::string::npos) fail("there is no path");
    if (address.path.size() > kLongestPath)
      fail(fmt::format("the path has {} characters, but the path of a socket has at most {}", address.path.size(),
                       kLongestPath));
    return address;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) fail("there is no port");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    fail("an IPv6 address must be in brackets");
  address.host = host;
  address.port = text.substr(colon + 1);
  if (address.host.empty()) fail("there is no host");
  if (!number_from<std::uint16_t>(address.port)) fail("the port is not a number from 0 to 65535");
  return address;
}

std::string to_text(const StreamAddress& address) {
  if (address.host.empty()) return "unix:" + address.path;
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

void wait_for(const std::vector<int>& files, Nanos limit) {
  std::vector<pollfd> wanted;
  wanted.reserve(files.size());
  for (const int file : files) wanted.push_back({file, POLLIN, 0});
  poll(wanted.data(), wanted.size(), static_cast<int>(std::clamp<std::int64_t>(limit.count / 1'000'000, 0, 1000)));
}

// ---- MessageStream ----

MessageStream::MessageStream(int file, const StreamKey& key)
    : file_(file), seal_(key == nullptr ? nullptr : std::make_unique<security::SealedMessages>(*key, false)) {
  make_ready(file);
}
MessageStream::~MessageStream() { close(file_); }

std::unique_ptr<MessageStream> MessageStream::connect(const StreamAddress& address, Nanos limit,
                                                      const std::function<std::string()>& interrupted,
                                                      const StreamRole& role, const StreamKey& key,
                                                      const std::function<void()>& waiting) {
  const Nanos give_up = wall_now() + limit;
  for (bool is_first = true;; is_first = false) {
    const int file = try_to_connect(address, std::max(give_up - wall_now(), 1_ms));
    if (file >= 0) {
      auto stream = std::make_unique<MessageStream>(file);
      if (key != nullptr) stream->introduce(*key, address, interrupted, role);
      return stream;
    }
    const int error = errno;
    if (const std::string why = interrupted(); !why.empty())
      throw RunError(fmt::format("{} before the {} was reached", why, role.name));
    if (wall_now() >= give_up)
      throw RunError(fmt::format("no {} at {} for {}: {}; start it ({} {}), and check that this host reaches it{}",
                                 role.name, one_line(to_text(address)), to_text(limit), std::strerror(error),
                                 role.start, one_line(to_text(address)), role.reached));
    if (is_first && waiting) waiting();
    poll(nullptr, 0, static_cast<int>(kRetry.count / 1'000'000));
  }
}

void MessageStream::introduce(const security::JobKey& key, const StreamAddress& address,
                              const std::function<std::string()>& interrupted, const StreamRole& role) {
  seal_ = std::make_unique<security::SealedMessages>(key, true);
  is_client_ = true;
  const std::string where = fmt::format("the {} at {}", role.name, one_line(to_text(address)));
  try {
    send_bytes(seal_->greeting());
    const Nanos give_up = wall_now() + kLongestGreeting;
    std::optional<std::string> greeting;
    while (!(greeting = receive_bytes())) {
      if (const std::string why = interrupted(); !why.empty())
        throw RunError(fmt::format("{} before the {} was reached", why, role.name));
      if (wall_now() >= give_up)
        throw RunError(
            fmt::format("{} did not answer a greeting for {}; check the address, and that the other end has the key",
                        where, to_text(kLongestGreeting)));
      wait(50_ms);
    }
    meet(*greeting);
  } catch (const StreamError& error) {
    throw RunError(fmt::format("{} {}", where, error.what()));
  }
}

void MessageStream::meet(const std::string& greeting) {
  // A server always answers, even if it refuses the client's greeting below, so that the client can report why the
  // greeting was refused.
  if (!is_client_) send_bytes(seal_->greeting());
  try {
    seal_->meet(greeting);
  } catch (const security::GreetingError& error) {
    throw KeyMismatch(error.what());
  }
  for (const std::string& message : unsealed_) send_bytes(seal_->seal(message));
  unsealed_.clear();
}

void MessageStream::send(std::string_view message) {
  if (seal_ == nullptr)
    send_bytes(message);
  else if (seal_->has_met())
    send_bytes(seal_->seal(message));
  else
    unsealed_.emplace_back(message);
}

std::optional<std::string> MessageStream::receive() {
  std::optional<std::string> bytes = receive_bytes();
  if (seal_ != nullptr && bytes && !seal_->has_met()) {
    meet(*bytes);
    bytes = receive_bytes();
  }
  if (!bytes) return std::nullopt;
  if (seal_ == nullptr) {
    if (!security::SealedMessages::is_greeting(*bytes)) return bytes;
    try {
      send_bytes(kNoKey);
    } catch (const StreamError&) {  // the peer has already closed the stream
    }
    throw KeyMismatch(
        "has a key, but this end has none: start this end with --key FILE too, or start the other end without a key");
  }
  std::optional<std::string> message = seal_->open(*bytes);
  if (!message)
    throw StreamError(
        "sends messages that are not encrypted with the key: it does not have the key, or its messages are changed on "
        "the way");
  return message;
}

void MessageStream::send_bytes(std::string_view message) {
  std::string framed(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    framed[i] = static_cast<char>(message.size() >> (8 * (kLengthBytes - 1 - i)) & 0xFFU);
  framed += message;
  const Nanos give_up = wall_now() + kLongestSend;
  for (std::size_t sent = 0; sent < framed.size();) {
    const ssize_t count = ::send(file_, framed.data() + sent, framed.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (wall_now() >= give_up) throw StreamError(fmt::format("has read nothing for {}", to_text(kLongestSend)));
      pollfd wanted{file_, POLLOUT, 0};
      poll(&wanted, 1, 100);
    } else if (errno != EINTR) {
      throw StreamError("closed the connection");
    }
  }
}

std::optional<std::string> MessageStream::receive_bytes() {
  const std::size_t longest = longest_ + (seal_ == nullptr ? 0 : security::SealedMessages::kOverhead);
  for (;;) {
    const std::size_t here = received_.size() - next_;
    if (here >= kLengthBytes) {
      std::size_t length = 0;
      for (std::size_t i = 0; i < kLengthBytes; ++i)
        length = length << 8U | static_cast<unsigned char>(received_[next_ + i]);
      if (length > longest)
        throw StreamError(fmt::format("sends a message of {} bytes, but the maximum is {}", length, longest));
      if (here >= kLengthBytes + length) {
        std::string message = received_.substr(next_ + kLengthBytes, length);
        next_ += kLengthBytes + length;
        if (next_ == received_.size()) {
          received_.clear();
          next_ = 0;
        }
        return message;
      }
    }
    received_.erase(0, next_);
    next_ = 0;
    std::array<char, 65536> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `count`
    const ssize_t count = recv(file_, bytes.data(), bytes.size(), 0);
    if (count == 0) throw StreamError("closed the connection");
    if (count < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
      if (errno == EINTR) continue;
      throw StreamError("closed the connection");
    }
    received_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

void MessageStream::wait(Nanos limit) const { wait_for({file_}, limit); }

std::string MessageStream::peer() const {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  std::array<char, 64> text{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  if (getpeername(file_, reinterpret_cast<sockaddr*>(&from), &size) != 0 || from.ss_family == AF_UNIX ||
      getnameinfo(generic(from), size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  return text.data();
}

// ---- StreamListener ----

StreamListener::StreamListener(const StreamAddress& address, const StreamRole& role, StreamKey key)
    : address_(address), key_(std::move(key)) {
  const auto attempt = [&](int family, const sockaddr* at, socklen_t size) {
    file_ = socket(family, SOCK_STREAM, 0);
    if (file_ < 0) return errno;
    make_ready(file_);
    const int on = 1;
    setsockopt(file_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(file_, at, size) == 0 && listen(file_, SOMAXCONN) == 0) return 0;
    const int error = errno;
    close(file_);
    file_ = -1;
    return error;
  };
  int error = EADDRNOTAVAIL;
  if (address.host.empty()) {
    const sockaddr_un at = unix_address(address.path);
    refuse_planted_links(address.path);
    error = attempt(AF_UNIX, generic(at), sizeof at);
    if (error == EADDRINUSE) {
      // If no process listens on this socket, a killed process has left it.
      const int probe = try_to_connect(address, 1_s);
      // Removes only a socket. Connecting to a file of another kind also fails with ECONNREFUSED.
      struct stat found {};
      if (probe < 0 && errno == ECONNREFUSED && lstat(address.path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) {
        unlink(address.path.c_str());
        error = attempt(AF_UNIX, generic(at), sizeof at);
      }
      if (probe >= 0) close(probe);
    }
  } else {
    const Resolved resolved(address, true);
    for (const addrinfo* at = resolved.list; at != nullptr && file_ < 0; at = at->ai_next)
      error = attempt(at->ai_family, at->ai_addr, at->ai_addrlen);
  }
  if (file_ < 0)
    throw RunError(fmt::format("{} {}: {}; {}", role.option, one_line(to_text(address)), std::strerror(error),
                               error == EADDRINUSE ? "end the program that listens there, or choose another address"
                               : error == EADDRNOTAVAIL ? "give an address of this machine, or 0.0.0.0 for all"
                                                        : "choose another address"));
  if (address.host.empty()) return;
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  std::array<char, 16> port{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  if (getsockname(file_, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
      getnameinfo(generic(own), size, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV) == 0)
    address_.port = port.data();
}

StreamListener::~StreamListener() {
  close(file_);
  if (address_.host.empty()) unlink(address_.path.c_str());
}

std::unique_ptr<MessageStream> StreamListener::accept() {
  const int file = ::accept(file_, nullptr, nullptr);
  return file < 0 ? nullptr : std::make_unique<MessageStream>(file, key_);
}

}  // namespace mltcp::experiment
