// The scheduler's service: requests as bytes, in pieces or at once, and what it answers. Jobs come and go, so that one
// input is a conversation.
//
// Input: requests, each with its length before it (2 bytes) and how it comes (1 byte).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mltcp/base/topology.h"
#include "mltcp/scheduler/service/api.h"
#include "mltcp/scheduler/service/internal/http_request.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

using namespace service;

constexpr int most_requests = 12;
constexpr std::uint32_t most_jobs = 6;

/// A response that a client can read: a status line, the length of its body, JSON.
void check_response(const std::string& text) {
  require(text.starts_with("HTTP/1.1 "), "a response without a status");
  const std::size_t end = text.find("\r\n\r\n");
  require(end != std::string::npos, "a response without an end of its header");
  const std::string body = text.substr(end + 4);
  require(text.substr(0, end).find(fmt::format("Content-Length: {}", body.size())) != std::string::npos,
          "a body of another length");
  require(nlohmann::json::accept(body), "a body that is no JSON");
  require(text.substr(9, 3) != "500", "an error of the service: " + body);
}

}  // namespace

void fuzz_http(Input input) {
  Program program(input);
  ServiceOptions options;
  options.host_names = {"a1", "a2", "b1", "b2"};
  options.slots_per_host = 2;
  options.most_jobs = most_jobs;
  SchedulerService scheduler(
      Topology::leaf_spine({.leaves = 2, .spines = 1, .hosts_per_leaf = 2, .host_rate = Rate(10'000'000'000)}),
      options);
  KubernetesExtender kubernetes(scheduler, {});
  Api api(scheduler, kubernetes);
  Responder responder(api);
  Nanos now;
  for (int i = 0; i < most_requests && !program.has_ended(); ++i) {
    const std::size_t size = program.number(2);
    const std::uint8_t choices = program.byte();
    const auto bytes = program.bytes(size);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const RequestLimits limits{.most_header_bytes = 1024, .most_body_bytes = 8192};
    IncomingRequest whole(limits);
    const IncomingRequest::State state = whole.add(text);
    // However it comes, it is the same request, or the same refusal.
    const std::size_t piece = 1 + choices % 64;
    IncomingRequest pieces(limits);
    for (std::size_t at = 0; at < text.size(); at += piece) pieces.add(std::string_view(text).substr(at, piece));
    require(pieces.state() == state, "another verdict of a request in pieces");
    if (state == IncomingRequest::State::refused) {
      require(pieces.status() == whole.status() && pieces.error() == whole.error(), "another refusal in pieces");
      require(whole.error().find("; ") != std::string::npos, "a refusal without a cure");
      check_response(response_text(whole.status(), Api::error_body(whole.error())));
    }
    if (state != IncomingRequest::State::whole) continue;
    require(pieces.stripped() == whole.stripped(), "another request in pieces");
    now += Nanos(choices * std::int64_t{1'000'000'000});
    check_response(responder.respond(whole.stripped(), now, (choices & 1) != 0).text);
    require(scheduler.jobs().size() <= most_jobs, "more jobs than the service takes");
    kubernetes.expire(now);
  }
}

}  // namespace mltcp::fuzz
