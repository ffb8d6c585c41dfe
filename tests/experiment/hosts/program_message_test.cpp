// Tests programs of ranks as messages. Valid programs arrive unchanged, and invalid ones are refused.
#include "mltcp/lab/experiment/hosts/internal/program_message.h"

#include <functional>
#include <string>

#include "../../message_of.h"
#include "../../workload/graphs.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/graph_program.h"

namespace mltcp::experiment::protocol {
namespace {

using namespace literals;
using workload::Collective;
using workload::Operation;
using workload::RankProgram;
using Json = nlohmann::json;

/// Returns a program with operations of all kinds.
RankProgram program() {
  workload::SmallGraph graph(3);
  graph.step(0, 0_ms, 4_ms);  // the step begins 1 ms before its first node
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto computed = graph.compute(rank, 3_ms, {}, 1_ms);
    const auto barrier = graph.collective(rank, Collective::all_reduce, 0, {computed});
    graph.collective(rank, Collective::all_reduce, 9'000, {barrier});
  }
  return workload::graph_programs(graph.graph()).ranks[1];
}

std::string refusal(const std::function<void(Json&)>& change) {
  Json json = to_json(program());
  change(json);
  try {
    return message_of<InputError>([&] { return program_from(json); });
  } catch (const Json::exception& error) {
    return error.what();
  }
}

TEST(program_message, program__arrives_as_it_was_sent) {
  const RankProgram sent = program();
  const RankProgram got = program_from(Json::parse(to_json(sent).dump()));
  EXPECT_EQ(got.rank, 1U);
  EXPECT_EQ(got.ranks, 3U);
  EXPECT_EQ(got.waits, sent.waits);
  ASSERT_EQ(got.operations.size(), sent.operations.size());
  for (std::size_t i = 0; i < sent.operations.size(); ++i) {
    const Operation& a = sent.operations[i];
    const Operation& b = got.operations[i];
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.barrier, b.barrier);
    EXPECT_EQ(a.reduce, b.reduce);
    EXPECT_EQ(a.first_wait, b.first_wait);
    EXPECT_EQ(a.waits, b.waits);
    EXPECT_EQ(a.compute, b.compute);
    if (!a.communicates()) continue;
    EXPECT_EQ(a.peer, b.peer);
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.tag, b.tag);
  }
  EXPECT_THAT(to_json(sent).at("kinds").get<std::string>(), HasAll("c", "d", "s", "S", "R", "a", "r"));
}

TEST(program_message, what_is_no_program__is_refused) {
  EXPECT_EQ(refusal([](Json&) {}), "no error");
  for (const char* const key : {"rank", "ranks", "kinds", "times", "peers", "bytes", "tags", "counts", "waits"}) {
    EXPECT_NE(refusal([&](Json& json) { json.erase(key); }), "no error") << key;
    EXPECT_NE(refusal([&](Json& json) { json[key] = nullptr; }), "no error") << key;
  }
  for (const char* const key : {"times", "peers", "bytes", "tags", "counts", "waits"}) {
    EXPECT_THAT(refusal([&](Json& json) { json[key].push_back(0U); }), HasSubstr("is too long")) << key;
    EXPECT_THAT(refusal([&](Json& json) { json[key].erase(json[key].size() - 1); }), HasSubstr("too short")) << key;
    EXPECT_THAT(refusal([&](Json& json) { json[key][0] = -1; }), HasSubstr("an invalid value")) << key;
  }
  EXPECT_THAT(refusal([](Json& json) { json["kinds"].get_ref<std::string&>()[0] = 'x'; }),
              HasSubstr("an unknown operation"));
  EXPECT_THAT(refusal([](Json& json) { json["peers"][0] = 3U; }),
              HasSubstr("\"peers\" of a program has an invalid value"));
  EXPECT_THAT(refusal([](Json& json) { json["peers"][0] = 1U; }), HasSubstr("its own rank"));
  EXPECT_THAT(refusal([](Json& json) { json["bytes"][0] = 0U; }), HasSubstr("no bytes"));
  EXPECT_THAT(refusal([](Json& json) { json["bytes"][0] = UINT64_MAX; }), HasSubstr("an invalid value"));
  EXPECT_THAT(refusal([](Json& json) { json["times"][0] = UINT64_MAX; }), HasSubstr("an invalid value"));
  EXPECT_THAT(refusal([](Json& json) { json["waits"][0] = 499'999U; }), HasSubstr("waits for a later one"));
  EXPECT_THAT(refusal([](Json& json) { json["rank"] = 3; }), HasSubstr("\"rank\""));
}

TEST(program_message, program_that_can_not_be_sent__is_refused) {
  RankProgram rated = program();
  for (Operation& operation : rated.operations) operation.rate = Rate(1'000);
  EXPECT_THROW(to_json(rated), InputError);
  RankProgram long_one = program();
  long_one.operations.resize(kMaxSentOperations + 1);
  EXPECT_THROW(to_json(long_one), InputError);
}

}  // namespace
}  // namespace mltcp::experiment::protocol
