// Fuzzes the scheduler's service with arbitrary targets and bodies of requests, and checks its answers. An input is a
// sequence of requests, so that jobs arrive and leave. The HTTP library itself is not tested.
//
// Input: requests, each after its length (2 bytes) and the time in seconds since the previous request (1 byte).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "mltcp/base/topology.h"
#include "mltcp/scheduler/service/api.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

using namespace service;

constexpr int kMaxRequests = 12;
constexpr std::uint32_t kMaxJobs = 6;

/// Checks an answer of the service as a client would.
void check_answer(const ApiAnswer& answer) {
  require(answer.type != std::string_view("application/json") || nlohmann::json::accept(answer.body),
          "a body that is no JSON");
  require(answer.status != 500, "an error of the service: " + answer.body);
}

}  // namespace

void fuzz_http(Input input) {
  Program program(input);
  ServiceOptions options;
  options.host_names = {"a1", "a2", "b1", "b2"};
  options.slots_per_host = 2;
  options.max_jobs = kMaxJobs;
  SchedulerService scheduler(
      Topology::leaf_spine({.leaves = 2, .spines = 1, .hosts_per_leaf = 2, .host_rate = Rate(10'000'000'000)}),
      options);
  KubernetesExtender kubernetes(scheduler, {});
  Api api(scheduler, kubernetes);
  Nanos now;
  for (int i = 0; i < kMaxRequests && !program.has_ended(); ++i) {
    const std::size_t size = program.number(2);
    const std::uint8_t choices = program.byte();
    const auto bytes = program.bytes(size);
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto take = [&](std::string_view end) {
      const std::string_view part = text.substr(0, text.find(end));
      text.remove_prefix(std::min(part.size() + end.size(), text.size()));
      return part;
    };
    const std::string method(take(" "));
    const std::string_view target = take(" ");
    take("\r\n\r\n");
    const ApiRequest request = request_of(method, target, std::string(text));
    now += Nanos(choices * std::int64_t{1'000'000'000});
    check_answer(api.answer(request, now, (choices & 1) != 0));
    require(scheduler.jobs().size() <= kMaxJobs, "more jobs than the service takes");
    kubernetes.expire(now);
  }
}

}  // namespace mltcp::fuzz
