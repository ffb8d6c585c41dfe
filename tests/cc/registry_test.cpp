// Tests that algorithms are found by name, including algorithms that a program registers. Also tests the controller
// that holds an algorithm.
#include "mltcp/cc/registry.h"

#include <array>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/cc/reno.h"

namespace mltcp::cc {
namespace {

/// Returns the error message for an unknown name.
std::string message_of_unknown(std::string_view name) {
  return message_of<InputError>([&] { find_algorithm(name); });
}

/// An algorithm whose window shows which event function was called last.
struct Probe {
  static constexpr std::string_view name = "probe";
  static constexpr Capabilities capabilities{.needs_ecn = true, .needs_timer = true, .rate_based = true};
  double events = 0;

  void start(const PathInfo& path, Output& out) { out.cwnd_bytes = path.max_packet_bytes; }
  void on_ack(const AckSample&, Output& out) { out.cwnd_bytes = ++events + 100; }
  void on_congestion(const CongestionEvent&, Output& out) { out.cwnd_bytes = ++events + 200; }
  void on_timeout(Nanos, Output& out) { out.cwnd_bytes = ++events + 300; }
  void on_spurious_congestion(Nanos, Output& out) { out.cwnd_bytes = ++events + 400; }
  void on_timer(Nanos, Output& out) { out.cwnd_bytes = ++events + 500; }
  void on_idle_restart(Nanos, Output& out) { out.cwnd_bytes = ++events + 600; }
};

TEST(Registry, find__every_listed_algorithm_by_its_name) {
  std::set<std::string_view> names;
  for (const AlgorithmTable* table : algorithms()) {
    EXPECT_EQ(&find_algorithm(table->name), table);
    EXPECT_TRUE(names.insert(table->name).second) << table->name << " is given twice";
  }
  EXPECT_TRUE(names.contains("reno"));
}

TEST(Registry, find__an_unknown_name_lists_the_names) {
  for (const std::string name : {"Reno", "reno "})
    EXPECT_THAT(message_of_unknown(name), EndsWith("; did you mean \"reno\"?"));
  for (const std::string name : {"vegas", ""}) {
    const std::string message = message_of_unknown(name);
    EXPECT_THAT(message, HasSubstr(testing::PrintToString(name)));
    for (const AlgorithmTable* table : algorithms()) EXPECT_THAT(message, HasSubstr(std::string(table->name)));
  }
}

/// Parameters with one field of each type.
struct DescribedParameters {
  double share = 0.5;
  bool brave = true;
  std::uint32_t steps = 3;
  Nanos interval{50'000};
  Rate step{40'000'000};
  Bytes buffer = 10'000;
};
struct Described {
  using Parameters = DescribedParameters;
  static constexpr std::string_view name = "told";
  static constexpr Capabilities capabilities{};
  static constexpr std::array parameters{
      parameter<&DescribedParameters::share>("share", above(0).below(1), "of the window", "windows"),
      parameter<&DescribedParameters::brave>("brave", "goes on"),
      parameter<&DescribedParameters::steps>("steps", at_least(1), "before it rests"),
      parameter<&DescribedParameters::interval>("interval", at_least(Nanos(1'000)), "between two steps"),
      parameter<&DescribedParameters::step>("step", above(0).or_zero("none"), "of the rate"),
      parameter<&DescribedParameters::buffer>("room", at_least(1'000).or_zero("no end of it"), "in the buffer"),
  };
  static ParameterProblem problem_of(const Parameters& p) {
    if (p.steps == 99) return {"steps", "of 98 or less"};
    return p.steps > 10 && p.brave ? ParameterProblem{"steps", "of 10 or less, or not brave", "brave"}
                                   : ParameterProblem{};
  }
  static void fit(Parameters& p, const NetworkInfo& network) {
    if (p.interval == Nanos(50'000)) p.interval = network.unloaded_round_trip;
  }

  void start(const PathInfo& path, Output& out) { out.cwnd_bytes = path.parameters->of<Described>().share * 1000; }
  void on_ack(const AckSample&, Output&) {}
  void on_congestion(const CongestionEvent&, Output&) {}
  void on_timeout(Nanos, Output&) {}
  void on_spurious_congestion(Nanos, Output&) {}
  void on_timer(Nanos, Output&) {}
  void on_idle_restart(Nanos, Output&) {}
};

const Parameter& described(std::string_view name) {
  for (const Parameter& parameter : table_of<Described>().parameters)
    if (parameter.name == name) return parameter;
  throw std::logic_error("no such parameter");
}

TEST(Registry, register__makes_an_algorithm_known_by_its_name) {
  const std::size_t before = algorithms().size();
  const AlgorithmTable& table = register_algorithm<Described>();
  EXPECT_EQ(&find_algorithm("told"), &table);
  EXPECT_EQ(algorithms().back(), &table);
  EXPECT_TRUE(library_file(table).empty());
  EXPECT_THAT(algorithm_names(), EndsWith(", told"));
  const std::size_t after = algorithms().size();
  EXPECT_LE(before, after);
  EXPECT_EQ(&register_algorithm<Described>(), &table) << "again is fine";
  EXPECT_EQ(algorithms().size(), after);
}

/// An algorithm with the name of a policy that has parameters.
struct NamedTurns : Described {
  static constexpr std::string_view name = "turns";
};

TEST(Registry, policys_name__is_refused) { EXPECT_THROW(register_algorithm<NamedTurns>(), InputError); }

TEST(Parameters, float_out_of_range__is_refused) {
  const ParameterTable& table = find_parameters("turns");
  for (const double value : {1e300, -1e300, std::numeric_limits<double>::quiet_NaN()}) {
    Parameters parameters;
    parameters.set(table, table.parameters[0], value);
    EXPECT_EQ(parameters.objection(table).parameter, table.parameters[0].name) << value;
  }
  EXPECT_EQ(Parameters().get(table, table.parameters[4]), ParameterValue(0.02)) << "0.02F as a user would write it";
}

/// An algorithm whose name is already registered.
struct Impostor : Described {
  static constexpr std::string_view name = "reno";
};
TEST(Registry, register__refuses_another_algorithm_of_the_same_name) {
  EXPECT_EQ(message_of<InputError>([] { register_algorithm<Impostor>(); }),
            "there is another congestion control \"reno\"; give this one another name");
  EXPECT_EQ(find_algorithm("reno").on_ack, table_of<Reno>().on_ack);
}

/// Returns the error of load_algorithm() for a shared object of this test.
std::string refusal_to_load(const std::string& file, std::string_view name) {
  return message_of<InputError>([&] { load_algorithm(std::filesystem::path(MLTCP_MODULES) / file, name); });
}

TEST(Registry, load__makes_an_algorithm_of_a_shared_object_known) {
  const std::filesystem::path file = std::filesystem::path(MLTCP_MODULES) / "good_library.so";
  const AlgorithmTable& loaded = load_algorithm(file, "elsewhere");
  EXPECT_EQ(&find_algorithm("elsewhere"), &loaded);
  EXPECT_EQ(library_file(loaded), std::filesystem::canonical(file));
  const std::size_t count = algorithms().size();
  EXPECT_EQ(&load_algorithm(file, "elsewhere"), &loaded) << "again is fine";
  EXPECT_EQ(&algorithm_from("good_library.so:elsewhere", MLTCP_MODULES), &loaded) << "relative to a folder";
  EXPECT_EQ(algorithms().size(), count);
  Controller controller(loaded, {.max_packet_bytes = 1000, .max_rate = {}});
  EXPECT_EQ(controller.output().cwnd_bytes, 1234);
  AckSample sample;
  sample.gain = 2;
  controller.on_ack(sample);
  EXPECT_EQ(controller.output().cwnd_bytes, 1236) << "the gain is there, too";
}

TEST(Registry, load__refuses_what_it_cannot_use) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal_to_load("nowhere.so", "x"), HasAll("there is no file", "nowhere.so"));
  EXPECT_THAT(refusal_to_load(".", "x"), HasSubstr("there is no file"));
  EXPECT_THAT(refusal_to_load("CTestTestfile.cmake", "x"), HasSubstr("can't be loaded"));
  EXPECT_THAT(refusal_to_load("no_library.so", "x"), HasSubstr("has no function mltcp_cc_library()"));
  EXPECT_THAT(refusal_to_load("other_abi.so", "x"),
              HasAll("is built for ABI 4-", "this program has 3-", "build it against"));
  EXPECT_THAT(refusal_to_load("good_library.so", "bbr"),
              HasSubstr("has no congestion control \"bbr\"; it has: elsewhere, reno"));
  EXPECT_THAT(refusal_to_load("good_library.so", "reno"), HasSubstr("there is another congestion control \"reno\""));
  EXPECT_THAT(message_of<InputError>([] { algorithm_from(":x"); }), HasSubstr("names no file; write FILE.so:NAME"));
  EXPECT_THAT(message_of<InputError>([] { algorithm_from("dctcp:g=0.1"); }),
              HasAll("\"dctcp:g=0.1\": dctcp is built into this program", "such as [dctcp] g = ..."));
  EXPECT_EQ(find_algorithm("reno").on_ack, table_of<Reno>().on_ack);
}

TEST(Registry, name__is_a_key_of_files) {
  for (const std::string_view good : {"a", "reno", "my_own-2"}) EXPECT_TRUE(is_name(good)) << good;
  for (const std::string_view bad : {"", "Reno", "2x", "-x", "a b", "a.b", "a:b", "x/y"})
    EXPECT_FALSE(is_name(bad)) << bad;
}

TEST(Parameters, untyped__are_those_of_the_type) {
  const AlgorithmTable& table = register_algorithm<Described>();
  ASSERT_EQ(table.parameters.size(), 6U);
  Parameters parameters;
  EXPECT_EQ(parameters.get(table, described("share")), ParameterValue(0.5)) << "the default";
  parameters.edit<Described>().share = 0.25;
  EXPECT_EQ(parameters.get(table, described("share")), ParameterValue(0.25));
  parameters.set(table, described("interval"), Nanos(7));
  EXPECT_EQ(parameters.of<Described>().interval, Nanos(7));
  EXPECT_EQ(parameters.of<Described>().share, 0.25) << "the others stay";
  EXPECT_EQ(
      Controller(table, {.max_packet_bytes = 1000, .max_rate = {}, .parameters = &parameters}).output().cwnd_bytes,
      250);
  EXPECT_EQ(Parameters().of<Described>().steps, 3U);
  Parameters untyped;
  untyped.set(table, described("brave"), false);
  EXPECT_EQ(untyped.of<Described>().share, 0.5) << "made with the defaults";
  EXPECT_FALSE(untyped.of<Described>().brave);
}

TEST(Parameters, texts__say_kind_range_and_what_zero_is) {
  const auto texts = [](std::string_view name) {
    return value_text(described(name).by_default) + " | " + range_text(described(name));
  };
  EXPECT_EQ(texts("share"), "0.5 | above 0 and below 1");
  EXPECT_EQ(texts("brave"), "true | ");
  EXPECT_EQ(texts("steps"), "3 | of 1 or more");
  EXPECT_EQ(texts("interval"), "50 us | of 1 us or more");
  EXPECT_EQ(texts("step"), "40 Mbps | above 0, or 0 for none");
  EXPECT_EQ(texts("room"), "10 kB | of 1 kB or more, or 0 for no end of it");
}

TEST(Parameters, validate__checks_ranges_and_what_bounds_what) {
  const AlgorithmTable& table = register_algorithm<Described>();
  const auto refusal = [&](auto change) {
    Parameters parameters;
    change(parameters.edit<Described>());
    return std::string(parameters.objection(table).text);
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_EQ(refusal([](auto& p) { p.share = 1; }), "told share of 1 is out of range; give a value above 0 and below 1");
  EXPECT_EQ(refusal([](auto& p) { p.share = 0; }), "told share of 0 is out of range; give a value above 0 and below 1");
  EXPECT_NE(refusal([](auto& p) { p.share = std::numeric_limits<double>::quiet_NaN(); }), "");
  EXPECT_EQ(refusal([](auto& p) { p.interval = Nanos(999); }),
            "told interval of 999 ns is out of range; give a time of 1 us or more, and at most 1000 s");
  EXPECT_NE(refusal([](auto& p) { p.interval = Nanos(1'000'000'000'001); }), "");
  EXPECT_EQ(refusal([](auto& p) { p.buffer = 0; }), "") << "stands for something";
  EXPECT_NE(refusal([](auto& p) { p.buffer = 999; }), "");
  EXPECT_EQ(refusal([](auto& p) { p.steps = 11; }),
            "told steps of 11 is out of range; give a whole number of 10 or less, or not brave (brave is true)");
  EXPECT_EQ(refusal([](auto& p) { p.steps = 99; }),
            "told steps of 99 is out of range; give a whole number of 98 or less");
  Parameters parameters;
  parameters.edit<Described>().steps = 11;
  EXPECT_EQ(parameters.objection(table).parameter, "steps");
  EXPECT_EQ(parameters.objection(table).bound_by, "brave");
  EXPECT_THROW(parameters.validate("told"), InputError);
  EXPECT_NO_THROW(parameters.validate("reno"));
}

TEST(Parameters, fit__sets_what_flows_of_a_network_have_in_common) {
  register_algorithm<Described>();
  Parameters parameters;
  parameters.edit<Described>().share = 0.25;
  parameters.fit({.unloaded_round_trip = Nanos(123)});
  EXPECT_EQ(parameters.of<Described>().interval, Nanos(123));
  EXPECT_EQ(parameters.of<Described>().share, 0.25);
  parameters.fit({.unloaded_round_trip = Nanos(456)});
  EXPECT_EQ(parameters.of<Described>().interval, Nanos(123)) << "it was set";
}

TEST(Controller, events__reach_the_algorithm_and_its_state_lasts) {
  const AlgorithmTable& table = table_of<Probe>();
  EXPECT_EQ(table.name, "probe");
  EXPECT_TRUE(table.capabilities.needs_ecn && table.capabilities.needs_timer && table.capabilities.rate_based);
  Controller controller(table, {.max_packet_bytes = 77, .max_rate = {}});
  EXPECT_EQ(&controller.algorithm(), &table);
  EXPECT_EQ(controller.output().cwnd_bytes, 77);
  controller.on_ack({});
  EXPECT_EQ(controller.output().cwnd_bytes, 101);
  controller.on_congestion({});
  EXPECT_EQ(controller.output().cwnd_bytes, 202);
  controller.on_timeout(Nanos(1));
  EXPECT_EQ(controller.output().cwnd_bytes, 303);
  controller.on_spurious_congestion(Nanos(1));
  EXPECT_EQ(controller.output().cwnd_bytes, 404);
  controller.on_timer(Nanos(1));
  EXPECT_EQ(controller.output().cwnd_bytes, 505);
  controller.on_idle_restart(Nanos(1));
  EXPECT_EQ(controller.output().cwnd_bytes, 606);
}

TEST(Controller, instances__do_not_share_state) {
  Controller a(table_of<Reno>(), {.max_packet_bytes = 1000, .max_rate = {}});
  const Controller b(table_of<Reno>(), {.max_packet_bytes = 1000, .max_rate = {}});
  a.on_congestion({});
  EXPECT_EQ(a.output().cwnd_bytes, 5000);
  EXPECT_EQ(b.output().cwnd_bytes, 10'000);
}

}  // namespace
}  // namespace mltcp::cc
