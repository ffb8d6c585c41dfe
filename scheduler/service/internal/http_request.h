// A request as bytes: how far it has come, what bounds it breaks, and what of it is handed on. Sans-IO. Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/scheduler/service/api.h"

namespace mltcp::service {

struct RequestLimits {
  std::size_t most_header_bytes = 16'384;
  std::size_t most_body_bytes = kMostBodyBytes;
};

/// Bytes of one connection, as they come.
class IncomingRequest {
 public:
  explicit IncomingRequest(const RequestLimits& limits) : limits_(limits) {}

  enum class State : std::uint8_t {
    more,  ///< is to come
    whole,
    refused,  ///< status() and error() say why
  };
  State add(std::string_view bytes);
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] const std::string& error() const { return error_; }

  // Once the header is there:
  [[nodiscard]] bool has_header() const { return header_size_ > 0; }
  /// The client waits for "100 Continue" before it sends the body. True once.
  [[nodiscard]] bool take_expectation();
  [[nodiscard]] const std::string& method() const { return method_; }
  /// Value of the header Authorization; empty if there is none.
  [[nodiscard]] const std::string& authorization() const { return authorization_; }

  /// The whole request with nothing in it that the service doesn't need.
  [[nodiscard]] std::string stripped() const;

 private:
  void refuse(int status, std::string error);
  void read_header(std::string_view header);
  void read_line(std::string_view line);

  RequestLimits limits_;
  State state_ = State::more;
  std::string text_;
  std::size_t header_size_ = 0;  ///< with the empty line; 0: not there yet
  std::optional<std::size_t> body_size_;
  std::string method_;
  std::string target_;
  std::string authorization_;
  bool has_authorization_ = false;
  bool expects_ = false;
  int status_ = 400;
  std::string error_;
};

/// A response with a JSON body, on a connection that ends with it.
std::string response_text(int status, std::string_view body);

/// Parses stripped requests, asks the Api, and writes its responses. One for each thread.
class Responder {
 public:
  explicit Responder(Api& api);
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  struct Response {
    std::string text;
    std::optional<ApiAnswer::Wait> wait;  ///< the request is to be asked again
  };
  Response respond(const std::string& stripped, Nanos now, bool may_wait);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace mltcp::service
