// Ranges of the algorithms' parameters: each is refused by its name, by the algorithm that it is of and by no other.
#include "mltcp/cc/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "mltcp/base/error.h"
#include "mltcp/cc/cubic.h"
#include "mltcp/cc/dcqcn.h"
#include "mltcp/cc/dctcp.h"
#include "mltcp/cc/registry.h"
#include "mltcp/cc/swift.h"

namespace mltcp::cc {
namespace {

using namespace mltcp::literals;

/// What is said when `set` has changed the defaults; empty: nothing.
template <typename Set>
std::string refusal(std::string_view algorithm, Set set) {
  Parameters parameters;
  set(parameters);
  for (const AlgorithmTable* table : algorithms()) {
    if (table->name == algorithm) continue;
    EXPECT_NO_THROW(parameters.validate(table->name)) << table->name << " has no such parameter";
  }
  try {
    parameters.validate(algorithm);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Parameters, validate__takes_the_defaults) {
  for (const AlgorithmTable* table : algorithms()) EXPECT_NO_THROW(default_parameters.validate(table->name));
}

TEST(Parameters, validate__names_what_is_out_of_range) {
  using testing::HasSubstr;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double c : {0.0, -1.0, nan, 1e306}) {
    EXPECT_THAT(refusal("cubic", [c](Parameters& p) { p.edit<Cubic>().c = c; }), HasSubstr("cubic c of")) << c;
  }
  for (const double beta : {0.3, 1.0, nan}) {
    EXPECT_THAT(refusal("cubic", [beta](Parameters& p) { p.edit<Cubic>().beta = beta; }), HasSubstr("cubic beta of"))
        << beta;
  }
  for (const double g : {0.0, 1.1, nan}) {
    EXPECT_THAT(refusal("dctcp", [g](Parameters& p) { p.edit<Dctcp>().g = g; }), HasSubstr("dctcp g of")) << g;
    EXPECT_THAT(refusal("dcqcn", [g](Parameters& p) { p.edit<Dcqcn>().g = g; }), HasSubstr("dcqcn g of")) << g;
  }
  EXPECT_THAT(refusal("dcqcn", [](Parameters& p) { p.edit<Dcqcn>().alpha_interval = 50_us; }),
              HasSubstr("dcqcn alpha_interval of 50 us"));
  EXPECT_THAT(refusal("dcqcn", [](Parameters& p) { p.edit<Dcqcn>().increase_interval = 0_ns; }),
              HasSubstr("dcqcn increase_interval of"));
  EXPECT_THAT(refusal("swift", [](Parameters& p) { p.edit<Swift>().endpoint_target = 0_ns; }),
              HasSubstr("swift endpoint_target of"));
  EXPECT_THAT(refusal("swift", [](Parameters& p) { p.edit<Swift>().flow_max_window = 0.1; }),
              HasSubstr("swift flow_max_window of 0.1"));
  EXPECT_THAT(refusal("swift", [](Parameters& p) { p.edit<Swift>().max_decrease = 1; }),
              HasSubstr("swift max_decrease of 1"));
}

TEST(Parameters, validate__windows_of_swift_have_room_between_them) {
  const auto windows = [](double least, double most) {
    return refusal("swift", [=](Parameters& p) {
      p.edit<Swift>().min_window = least;
      p.edit<Swift>().max_window = most;
    });
  };
  EXPECT_EQ(windows(20, 20), "");
  EXPECT_THAT(windows(20, 10), testing::HasSubstr("swift max_window of 10 is out of range"));
  EXPECT_THAT(windows(0.01, 0.5), testing::HasSubstr("swift max_window of 0.5"));
  EXPECT_THAT(windows(0.01, 1e19), testing::HasSubstr("swift max_window of 1e+19")) << "no whole number of packets";
  EXPECT_THAT(windows(0, 10), testing::HasSubstr("swift min_window of 0"));
}

}  // namespace
}  // namespace mltcp::cc
