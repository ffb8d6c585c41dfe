// Fuzzes the messages between an experiment's coordinator and its hosts. Each side reads the messages of both
// directions.
//
// Input: a message.
#include <nlohmann/json.hpp>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/hosts/internal/hosts_protocol.h"
#include "mltcp/lab/experiment/hosts/internal/program_message.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

using namespace experiment;
using protocol::Json;

/// Calls `read`, and catches the errors that the coordinator and the hosts catch.
template <typename Read>
void try_to(Read read) {
  try {
    read();
  } catch (const InputError&) {
  } catch (const RunError&) {
  } catch (const Json::exception&) {
  }
}

}  // namespace

void fuzz_control(Input input) {
  const std::string text(input.begin(), input.end());
  // receive() refuses messages beyond these limits before it parses them.
  if (!beyond_limits(text, protocol::kLimits).empty()) return;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("type") || !json["type"].is_string()) return;
  const std::string type = json["type"].get<std::string>();
  if (type == "setup")
    try_to([&] {
      const Json once = to_json(protocol::setup_from(json));
      require(to_json(protocol::setup_from(once)) == once, "a set-up is not read as it was written");
    });
  if (type == "program")
    try_to([&] {
      const workload::RankProgram program = protocol::program_from(json);
      const Json once = protocol::to_json(program);
      require(protocol::to_json(protocol::program_from(once)) == once, "a program is not read as it was written");
    });
  if (type == "result")
    try_to([&] {
      const protocol::RankLimits limits{.iterations = 100,
                                        .bytes_per_iteration = json.value("bytes_per_iteration", Bytes{0}),
                                        .from = Nanos(0),
                                        .until = Nanos(1'000'000'000'000)};
      const Json once = protocol::to_json(protocol::result_from(json, limits));
      require(protocol::to_json(protocol::result_from(once, limits)) == once, "a result is not read as it was written");
    });
  if (type == "plan")
    try_to([&] {
      const Json once = protocol::to_json(protocol::plan_from(json.at("plan")));
      require(protocol::to_json(protocol::plan_from(once)) == once, "a plan is not read as it was written");
    });
  if (type == "stopped") try_to([&] { static_cast<void>(protocol::losses_from(json.at("losses"))); });
  // The following fields occur in several types of messages.
  for (const char* const key : {"message", "why", "host", "device", "policy"})
    try_to([&] {
      require(protocol::words_from(json, key).find('\n') == std::string::npos, "words of more than one line");
    });
  for (const char* const key : {"time", "lasted", "since", "longest_gap"})
    try_to([&] { static_cast<void>(protocol::time_from(json, key)); });
  try_to([&] { static_cast<void>(protocol::plan_state_from(json, "plan_state")); });
  try_to([&] { static_cast<void>(protocol::address_from(json.at("address").get<std::string>())); });
}

}  // namespace mltcp::fuzz
