// An HTTP client on a socket that sends exactly the bytes that a test gives it, whether or not they are valid HTTP.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mltcp::service {

/// Connects to a server, sends given bytes and returns the received bytes. Closes the connection on destruction.
class Client {
 public:
  explicit Client(const std::string& address) {
    if (address.front() == '/') {
      sockaddr_un unix_address{};
      unix_address.sun_family = AF_UNIX;
      std::copy(address.begin(), address.end(), unix_address.sun_path);
      connect_to(AF_UNIX, &unix_address, sizeof(unix_address));
    } else {
      sockaddr_in port{};
      port.sin_family = AF_INET;
      port.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
      port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      connect_to(AF_INET, &port, sizeof(port));
    }
    const timeval longest{60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest));
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof(longest));
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  /// Returns false if the server has closed the connection.
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  /// Reads until the server closes the connection.
  [[nodiscard]] std::string answer() const {
    std::string text;
    std::array<char, 65536> part{};
    for (ssize_t count = 0; (count = recv(socket_, part.data(), part.size(), 0)) > 0;)
      text.append(part.data(), static_cast<std::size_t>(count));
    return text;
  }
  /// Reads up to the first empty line, or until the server closes the connection.
  [[nodiscard]] std::string head() const {
    std::string text;
    for (char c = 0; !text.ends_with("\r\n\r\n") && recv(socket_, &c, 1, 0) == 1;) text += c;
    return text;
  }
  [[nodiscard]] bool readable() const {
    pollfd polled{socket_, POLLIN, 0};
    return poll(&polled, 1, 0) == 1;
  }

 private:
  void connect_to(int family, const void* address, socklen_t size) {
    socket_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connected_ = connect(socket_, static_cast<const sockaddr*>(address), size) == 0;
  }
  int socket_ = -1;
  bool connected_ = false;
};

inline std::string request(const std::string& method, const std::string& target, const std::string& body = "",
                           const std::string& headers = "") {
  return method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + headers +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body;
}

inline int status_of(const std::string& response) {
  return response.size() > 12 && response.starts_with("HTTP/1.1 ") ? std::stoi(response.substr(9, 3)) : 0;
}
/// Returns the JSON body of a response. Returns a discarded value if there is no body or it is not JSON.
inline nlohmann::json body_of(const std::string& response) {
  return nlohmann::json::parse(response.substr(response.find("\r\n\r\n") + 4), nullptr, false);
}

}  // namespace mltcp::service
