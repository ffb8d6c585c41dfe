// The HTTP/1.1 server of the service. It listens on a Unix socket, or on a loopback address with a bearer token.
// Clients may be slow, broken or hostile. GNU libmicrohttpd reads requests and writes answers; this class limits the
// time and memory that clients use.
//
// One thread does all input and output, so a client that sends or reads slowly delays only itself. A request goes to a
// worker thread when it is complete. One worker serves all requests that change something, one after the other. Two
// workers serve requests that only read, so plans are available while a placement is computed. A client that waits for
// a plan (ApiAnswer::Wait) uses no thread.
//
// A connection carries one request. If too many connections are open, the server closes the connection whose client has
// been sending its request for longest.
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
  /// Path of the Unix socket. The server creates a missing folder, and replaces an existing socket if no process
  /// listens on it.
  std::filesystem::path socket;
  /// Address and port to use instead of the socket, such as "127.0.0.1:8080" or "[::1]:8080". Port 0 means any free
  /// port.
  std::string listen;
  std::string token;  ///< token that clients must send if `listen` is used; 16 bytes or more

  std::size_t connections = 512;          ///< maximum number of open connections
  std::size_t max_header_bytes = 16'384;  ///< maximum size of the request line and the headers
  /// Limit for the sum of all request bodies, and for the sum of long answers.
  std::size_t max_buffered_bytes = 64U << 20;
  std::size_t max_waiting_changes = 64;  ///< maximum number of queued requests that change something
  Nanos request_time{10'000'000'000};    ///< time limit for sending a request, and again for receiving the answer
};

/// Reads the token from a file. Throws InputError if the file cannot be read, if the token is too short or too long, or
/// if the file is not safe. A safe file belongs to this user or root, and its mode is at most 0640.
std::string read_token(const std::filesystem::path& file);

class HttpServer {
 public:
  /// Opens the socket or port and listens. `api` and `service` must outlive this object. Throws InputError for an
  /// address that is not loopback, an invalid path, or a socket on which another process listens. Throws RunError if
  /// the operating system refuses.
  HttpServer(Api& api, SchedulerService& service, const HttpOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Returns the path of the socket, or an address such as "127.0.0.1:8080".
  [[nodiscard]] const std::string& address() const;
  /// Serves clients until `ended` returns true. Calls `ended` several times a second and after every signal. When
  /// `ended` has returned true, answers the requests received so far, for at most `request_time`, and returns. The
  /// worker for changes calls `tick` about once a second. Call run() only once. Throws RunError if the server cannot
  /// start.
  void run(const std::function<bool()>& ended, const std::function<void(Nanos now)>& tick = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::service
