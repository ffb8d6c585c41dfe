// The HTTP/1.1 server of the service: on a Unix socket, or on a loopback address with a bearer token, for clients that
// may be slow, broken or hostile. GNU libmicrohttpd reads and writes; this class bounds what clients may take.
//
// One thread does all input and output, so that a client that sends a byte a second, or reads none, delays only itself.
// Only a whole request goes to a worker: one worker for requests that change something, which are served one at a time
// in any case, and others for requests that read, so that plans are available while a placement is computed. A client
// that waits for a plan (ApiAnswer::Wait) uses no thread.
//
// A connection carries one request. When all connections are in use, a new client replaces the one that has been
// sending its request for longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/service/api.h"

namespace mltcp::service {

struct HttpOptions {
  /// Path of the Unix socket; its folder is created if missing. An existing socket is replaced if no service answers
  /// there.
  std::filesystem::path socket;
  /// "127.0.0.1:8080" or "[::1]:8080", instead of the socket; port 0: any.
  std::string listen;
  std::string token;  ///< with `listen`: the token that clients must send; 16 bytes or more

  std::size_t connections = 512;               ///< at a time
  std::size_t max_header_bytes = 16'384;       ///< request line and headers
  std::size_t max_buffered_bytes = 64U << 20;  ///< of all requests' bodies; the same limit for long answers
  std::size_t max_waiting_changes = 64;        ///< requests that wait for the worker that changes things
  Nanos request_time{10'000'000'000};          ///< limit to send a whole request, and to receive an answer
};

/// Reads the token from a file that others must not be able to read: its owner is this user or root, its mode 0600,
/// 0640 or less. Throws InputError.
std::string read_token(const std::filesystem::path& file);

class HttpServer {
 public:
  /// Listens. `api` and `service` must outlive it. Throws InputError for an address that is not loopback, a socket on
  /// which a service answers, or an invalid path; RunError if the system refuses.
  HttpServer(Api& api, SchedulerService& service, const HttpOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The socket's path, or "127.0.0.1:PORT".
  [[nodiscard]] const std::string& address() const;
  /// Serves until `ended` returns true, which is called several times a second and after every signal; then answers the
  /// requests received so far, for at most `request_time`. The worker for changes calls `tick` about once a second.
  /// Call run() only once. Throws RunError.
  void run(const std::function<bool()>& ended, const std::function<void(Nanos now)>& tick = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::service
