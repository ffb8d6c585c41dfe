// Tests the ranges of the algorithms' parameters. The error for an invalid value names the parameter, and only the
// algorithm with that parameter reports it.
#include "mltcp/cc/parameters.h"

#include <limits>
#include <string>

#include "../message_of.h"
#include "mltcp/cc/cubic.h"
#include "mltcp/cc/dcqcn.h"
#include "mltcp/cc/dctcp.h"
#include "mltcp/cc/registry.h"
#include "mltcp/cc/swift.h"

namespace mltcp::cc {
namespace {

std::string refusal_of_text(std::string_view text) {
  Parameters parameters;
  std::string refused = refusal_of([&] { set_from_text(parameters, "swift.beta=0.7," + std::string(text)); });
  EXPECT_EQ(parameters.of<Swift>().beta == SwiftParameters().beta, refused != "no error") << "all is set, or nothing";
  return refused;
}

TEST(ParameterText, set__as_files_spell_them) {
  Parameters parameters;
  set_from_text(parameters,
                "swift.base_target=40 us, swift.beta = 0.7,\ndctcp.g=\"0.25\"; cubic.hystart=false,"
                "dcqcn.min_rate=40 Mbps,dcqcn.increase_bytes=10 MB,dcqcn.fast_recovery_steps=7,swift.beta=0.6");
  EXPECT_EQ(parameters.of<Swift>().base_target, Nanos(40'000));
  EXPECT_EQ(parameters.of<Swift>().beta, 0.6);
  EXPECT_EQ(parameters.of<Dctcp>().g, 0.25);
  EXPECT_FALSE(parameters.of<Cubic>().hystart);
  EXPECT_EQ(parameters.of<Dcqcn>().min_rate, Rate(40'000'000));
  EXPECT_EQ(parameters.of<Dcqcn>().increase_bytes, 10'000'000U);
  EXPECT_EQ(parameters.of<Dcqcn>().fast_recovery_steps, 7U);
  EXPECT_EQ(refusal_of_text(" , "), "no error");
}

TEST(ParameterText, refusal__names_cause_and_cure) {
  EXPECT_EQ(refusal_of_text("swift.beta"),
            "\"swift.beta\" sets no parameter; write ALGORITHM.PARAMETER=VALUE, such as swift.base_target=40 us");
  EXPECT_THAT(refusal_of_text("beta=1"), HasSubstr("sets no parameter; write"));
  EXPECT_THAT(refusal_of_text("swfit.beta=1"), HasSubstr("swift"));
  EXPECT_EQ(refusal_of_text("swift.bata=1"), "swift has no parameter \"bata\"; did you mean beta?");
  EXPECT_THAT(refusal_of_text("dctcp.beta=1"), HasSubstr("; there are g, initial_alpha"));
  EXPECT_EQ(refusal_of_text("reno.beta=1"), "reno has no parameters; leave \"beta\" out");
  EXPECT_EQ(refusal_of_text("swift.beta=1.5"), "swift beta of 1.5 is out of range; give a value above 0 and at most 1");
  EXPECT_EQ(refusal_of_text("swift.beta=much"), "swift.beta: \"much\" is no number; write one, such as 5");
  EXPECT_THAT(refusal_of_text("swift.base_target=40"), StartsWith("swift.base_target: "));
  EXPECT_THAT(refusal_of_text("cubic.hystart=1"), HasSubstr("neither true nor false; write"));
}

using namespace mltcp::literals;

/// Returns the algorithm's objection after `set` has changed the default parameters, or an empty text if there is none.
template <typename Set>
std::string refusal(std::string_view algorithm, Set set) {
  Parameters parameters;
  set(parameters);
  for (const AlgorithmTable* table : algorithms()) {
    if (table->name == algorithm) continue;
    EXPECT_NO_THROW(parameters.validate(table->name)) << table->name << " has no such parameter";
  }
  return refusal_of([&] { parameters.validate(algorithm); });
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
  const auto windows = [](double min, double max) {
    return refusal("swift", [=](Parameters& p) {
      p.edit<Swift>().min_window = min;
      p.edit<Swift>().max_window = max;
    });
  };
  EXPECT_EQ(windows(20, 20), "no error");
  EXPECT_THAT(windows(20, 10), HasSubstr("swift max_window of 10 is out of range"));
  EXPECT_THAT(windows(0.01, 0.5), HasSubstr("swift max_window of 0.5"));
  EXPECT_THAT(windows(0.01, 1e19), HasSubstr("swift max_window of 1e+19")) << "no whole number of packets";
  EXPECT_THAT(windows(0, 10), HasSubstr("swift min_window of 0"));
}

}  // namespace
}  // namespace mltcp::cc
