// Requests as bytes (see http_request.h). The framing is RFC 9112's, with what it allows a server to refuse.
#include "mltcp/scheduler/service/internal/http_request.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "mltcp/base/text.h"

namespace mltcp::service {
namespace {

constexpr std::size_t longest_target = 2048;
constexpr std::size_t longest_method = 16;

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

/// Of what is refused before anybody has parsed it (RFC 9110, section 15).
std::string_view reason_of(int status) {
  constexpr std::array<std::pair<int, std::string_view>, 10> reasons{{{401, "Unauthorized"},
                                                                      {408, "Request Timeout"},
                                                                      {413, "Content Too Large"},
                                                                      {414, "URI Too Long"},
                                                                      {415, "Unsupported Media Type"},
                                                                      {417, "Expectation Failed"},
                                                                      {431, "Request Header Fields Too Large"},
                                                                      {501, "Not Implemented"},
                                                                      {503, "Service Unavailable"},
                                                                      {505, "HTTP Version Not Supported"}}};
  const auto* const found =
      std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) { return reason.first == status; });
  return found == reasons.end() ? "Bad Request" : found->second;
}

/// A request that is all there, for httplib to read.
class WholeRequest final : public httplib::Stream {
 public:
  explicit WholeRequest(const std::string& request) : request_(request) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t count = request_.copy(to, size, at_);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    response.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return -1; }

  std::string response;

 private:
  const std::string& request_;
  std::size_t at_ = 0;
};

/// The path's parts, each decoded by itself, so that an encoded '/' belongs to its part.
std::vector<std::string> parts_of(std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    parts.push_back(httplib::detail::decode_url(std::string(path.substr(0, end)), false));
    path.remove_prefix(end);
  }
  return parts;
}

}  // namespace

/// httplib's parser and writer, without its sockets and threads.
class Responder::Parser final : public httplib::Server {
 public:
  explicit Parser(Api& api) : api_(api) {
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      ApiRequest asked;
      asked.method = request.method;
      asked.path = parts_of(request.target);
      for (const auto& [key, value] : request.params) asked.query.try_emplace(key, value);
      asked.body = request.body;
      ApiAnswer answer = api_.answer(asked, now_, may_wait_);
      wait_ = std::move(answer.wait);
      response.status = answer.status;
      response.set_content(answer.body, answer.type);
    };
    // All paths: the Api knows which there are.
    Get(".*", handle);
    Post(".*", handle);
    Put(".*", handle);
    Patch(".*", handle);
    Delete(".*", handle);
    set_error_handler(httplib::Server::Handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty())
        response.set_content(
            Api::error_body("this is no request that is served here; docs/scheduler-service.md has them"),
            "application/json");
    }));
    set_payload_max_length(kMostBodyBytes);
  }

  Response respond(const std::string& request, Nanos now, bool may_wait) {
    now_ = now;
    may_wait_ = may_wait;
    wait_.reset();
    WholeRequest stream(request);
    bool closed = false;
    process_request(stream, true, closed, nullptr);
    return {std::move(stream.response), std::move(wait_)};
  }

 private:
  Api& api_;
  Nanos now_;
  bool may_wait_ = false;
  std::optional<ApiAnswer::Wait> wait_;
};

Responder::Responder(Api& api) : parser_(std::make_unique<Parser>(api)) {}
Responder::~Responder() = default;
Responder::Response Responder::respond(const std::string& stripped, Nanos now, bool may_wait) {
  return parser_->respond(stripped, now, may_wait);
}

IncomingRequest::State IncomingRequest::add(std::string_view bytes) {
  if (state_ != State::more) return state_;
  const std::size_t before = text_.size();
  text_.append(bytes);
  if (header_size_ == 0) {
    // The end may lie across what came before and what comes now.
    const std::size_t end = text_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
    if (std::min(end, text_.size()) > limits_.most_header_bytes) {
      refuse(431, fmt::format("the header has more than {} bytes; send less", limits_.most_header_bytes));
      return state_;
    }
    if (end == std::string::npos) return state_;
    header_size_ = end + 4;
    read_header(std::string_view(text_).substr(0, end));
    if (state_ == State::refused) return state_;
  }
  const std::size_t whole = header_size_ + body_size_.value_or(0);
  if (text_.size() < whole) return state_;
  text_.resize(whole);  // a second request on the connection is not answered
  return state_ = State::whole;
}

void IncomingRequest::refuse(int status, std::string error) {
  state_ = State::refused;
  status_ = status;
  error_ = std::move(error);
}

void IncomingRequest::read_header(std::string_view header) {
  const std::size_t end = header.find("\r\n");
  const std::string_view first = header.substr(0, end);
  const std::size_t space = first.find(' ');
  const std::size_t last = first.rfind(' ');
  method_ = first.substr(0, std::min(space, first.size()));
  if (space == std::string_view::npos || last == space || method_.empty() || method_.size() > longest_method ||
      !is_printable(method_)) {
    refuse(400, "the request line is none; send METHOD TARGET HTTP/1.1");
    return;
  }
  target_ = first.substr(space + 1, last - space - 1);
  const std::string_view version = first.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    refuse(505, "the version is not served here; send HTTP/1.1");
    return;
  }
  if (target_.size() > longest_target) {
    refuse(414, fmt::format("the target has {} bytes; send at most {}", target_.size(), longest_target));
    return;
  }
  if (target_.front() != '/' || !is_printable(target_) || target_.find('#') != std::string::npos) {
    refuse(400, "the target is no path; send one that begins with /, of printable ASCII");
    return;
  }
  if (method_ != "GET" && method_ != "POST" && method_ != "DELETE" && method_ != "PUT" && method_ != "PATCH") {
    refuse(501, fmt::format("method {} is not served here; use GET, POST or DELETE", in_quotes(method_)));
    return;
  }
  for (std::size_t at = end; at != std::string_view::npos && state_ != State::refused;) {
    header.remove_prefix(at + 2);
    at = header.find("\r\n");
    read_line(header.substr(0, at));
  }
}

void IncomingRequest::read_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, std::min(colon, line.size()));
  // White space before the colon, or a line that goes on, is how requests are smuggled (RFC 9112, section 5).
  if (colon == std::string_view::npos || name.empty() || !is_printable(name)) {
    refuse(400, "a header is none; send NAME: VALUE");
    return;
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (equals_ignoring_case(name, "Content-Length")) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (value.empty() || end != value.data() + value.size() ||
        (error != std::errc() && error != std::errc::result_out_of_range) || body_size_) {
      refuse(400, "Content-Length is no length; send one, once, in digits");
      return;
    }
    if (error != std::errc() || size > limits_.most_body_bytes)
      refuse(413, fmt::format("the body has {} bytes; send at most {}", one_line(value.substr(0, 20)),
                              limits_.most_body_bytes));
    body_size_ = size;
  } else if (equals_ignoring_case(name, "Transfer-Encoding")) {
    refuse(501, "transfer codings are not served here; send Content-Length");
  } else if (equals_ignoring_case(name, "Content-Encoding")) {
    if (!equals_ignoring_case(value, "identity"))
      refuse(415, "content codings are not served here; send the body as it is");
  } else if (equals_ignoring_case(name, "Authorization")) {
    if (has_authorization_) refuse(400, "Authorization stands there twice; send it once");
    has_authorization_ = true;
    authorization_ = value;
  } else if (equals_ignoring_case(name, "Expect")) {
    if (equals_ignoring_case(value, "100-continue"))
      expects_ = true;
    else
      refuse(417, "that expectation is not met here; leave Expect out");
  }
}

bool IncomingRequest::take_expectation() {
  return has_header() && state_ == State::more && std::exchange(expects_, false);
}

std::string IncomingRequest::stripped() const {
  std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", method_, target_);
  const std::string_view body = std::string_view(text_).substr(header_size_);
  if (body_size_ || (method_ != "GET" && method_ != "DELETE"))
    request += fmt::format("Content-Length: {}\r\n", body.size());
  request += "\r\n";
  request += body;
  return request;
}

std::string response_text(int status, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}", status,
      reason_of(status), body.size(),
      status == 401   ? "WWW-Authenticate: Bearer\r\n"
      : status == 503 ? "Retry-After: 1\r\n"
                      : "",
      body);
}

}  // namespace mltcp::service
