// Tests writing snapshots as JSON, reading them back, and refusing invalid texts.
#include "mltcp/endpoint/live/snapshot.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "mltcp/base/error.h"
#include "some_snapshot.h"

namespace mltcp::live {
namespace {

TEST(Snapshot, json__there_and_back) {
  const Snapshot before = test::some_snapshot();
  const std::string text = to_json(before);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const Snapshot after = snapshot_from(text);
  EXPECT_EQ(to_json(after), text);
  EXPECT_EQ(after.jobs.at(0).name, "vgg19-a");
  EXPECT_EQ(after.jobs.at(0).gain, 1.125);
  EXPECT_EQ(after.connections.at(1).transport.smoothed_rtt, Nanos(400'000));
  EXPECT_EQ(after.connections.at(1).transport.delivery_rate, Rate(8'000'000));
  EXPECT_EQ(after.ports.at(0).transport.size_probes_lost, 6U);
  EXPECT_FALSE(after.ports.at(0).is_up);
  EXPECT_EQ(after.claims.at(0).verdict, "understated");
  EXPECT_EQ(after.claims.at(0).progress_bytes, 90'000'000.5);
}

TEST(Snapshot, not_one__refused) {
  EXPECT_THROW(snapshot_from(""), InputError);
  EXPECT_THROW(snapshot_from("{}"), InputError);
  EXPECT_THROW(snapshot_from("[1, 2"), InputError);
  EXPECT_THROW(snapshot_from(R"({"schema": "mltcp.live/2"})"), InputError);
  const std::string good = to_json(test::some_snapshot());
  for (std::size_t size = 0; size + 2 < good.size(); size += 7)
    EXPECT_THROW(snapshot_from(good.substr(0, size)), InputError) << size;
  auto json = nlohmann::json::parse(good);
  json["jobs"] = 5;
  EXPECT_THROW(snapshot_from(json.dump()), InputError);
}

TEST(Snapshot, hostile_text__controls_no_terminal) {
  Snapshot shown = test::some_snapshot();
  shown.name = "\x1b[2Jgone\n";
  EXPECT_EQ(snapshot_from(to_json(shown)).name, "?[2Jgone?");
}

TEST(Snapshot, rows__bounded_and_counted) {
  Snapshot shown;
  for (int i = 0; i < 300; ++i)
    if (has_space(shown.jobs, shown)) shown.jobs.emplace_back();
  EXPECT_EQ(shown.jobs.size(), kMaxRows);
  EXPECT_EQ(shown.left_out, 300 - kMaxRows);
}

}  // namespace
}  // namespace mltcp::live
