// The order of phases under each training loop, which collectives cross the network, scales and sums.
#include "mltcp/lab/workload/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "mltcp/base/error.h"
#include "traces.h"

namespace mltcp::workload {
namespace {

using ::testing::HasSubstr;

// "c5 s100 o30 c7": computes 5 ns, sends 100 bytes, sends 30 overlapping, computes 7 ns.
std::string summary(const std::vector<Phase>& phases) {
  std::string text;
  for (const Phase& phase : phases) {
    if (!text.empty()) text += ' ';
    if (phase.kind == Phase::Kind::compute)
      text.append("c").append(std::to_string(phase.compute.count));
    else
      text.append(phase.overlap ? "o" : "s").append(std::to_string(phase.bytes));
  }
  return text;
}

// Three layers whose numbers tell where a phase comes from: compute times are powers of two, sizes of layer i are
// 100 (forward), 10 (input gradient), 1 (weight gradient) times i + 1. All-to-all among 2 sends half, so sizes double.
std::string three_layers(const std::string& header) {
  return header +
         "a -1 1   ALLTOALL 200 2   ALLTOALL 20 4   ALLTOALL 2 0\n"
         "b -1 8   ALLTOALL 400 16  ALLTOALL 40 32  ALLTOALL 4 0\n"
         "c -1 64  ALLTOALL 600 128 ALLTOALL 60 256 ALLTOALL 6 0\n";
}

std::string loop(const std::string& header, Network network = Network::all) {
  MappingOptions options;
  options.network = network;
  return summary(to_phases(parse_trace(three_layers(header), "t.txt"), options));
}

TEST(Schedule, to_phases__without_header_every_collective) {
  EXPECT_EQ(loop(""), "c1 s100 c8 s200 c64 s300 c128 s30 c256 o3 c16 s20 c32 o2 c2 s10 c4 o1");
}

TEST(Schedule, to_phases__transformer) {
  EXPECT_EQ(loop("HYBRID_TRANSFORMER\n3\n"), loop(""));
  EXPECT_EQ(loop("HYBRID_TRANSFORMER_FWD_IN_BCKWD\n3\n"), loop(""));
}

TEST(Schedule, to_phases__data_reduces_weights_only_and_needs_no_first_input_gradient) {
  EXPECT_EQ(loop("DATA\n3\n"), "c329 o3 c160 o2 c20 o1");  // 329 = 1+8+64+256, 160 = 128+32, 20 = 16+4
}

TEST(Schedule, to_phases__model_reduces_no_weights) {
  EXPECT_EQ(loop("MODEL\n3\n"), "c1 s100 c8 s200 c64 s300 c128 s30 c272 s20 c34 s10 c4");
}

TEST(Schedule, to_phases__hybrids_have_no_first_input_gradient_collective) {
  const std::string expected = "c1 s100 c8 s200 c64 s300 c128 s30 c256 o3 c16 s20 c32 o2 c6 o1";
  EXPECT_EQ(loop("HYBRID_DATA_MODEL\n3\n"), expected);
  EXPECT_EQ(loop("HYBRID_MODEL_DATA\n3\n"), expected);
}

TEST(Schedule, to_phases__customized_goes_by_layer) {
  const Trace trace = parse_trace(
      "HYBRID_CUSTOMIZED\n3\n"
      "a -1 1   ALLTOALL 200 2   ALLTOALL 20 4   ALLTOALL 2 0 HYBRID_DATA_MODEL\n"
      "b -1 8   ALLTOALL 400 16  ALLTOALL 40 32  ALLTOALL 4 0 DATA\n"
      "c -1 64  ALLTOALL 600 128 ALLTOALL 60 256 ALLTOALL 6 0 MODEL\n",
      "t");
  MappingOptions options;
  options.network = Network::all;
  EXPECT_EQ(summary(to_phases(trace, options)), "c1 s100 c72 s300 c128 s30 c304 o2 c6 o1");
}

TEST(Schedule, to_phases__dlrm) {
  // Forward all-to-all of layer 0; weight before input gradient; the gradients' all-to-all after the last top layer.
  EXPECT_EQ(loop("HYBRID_DLRM 1\n3\n"), "c1 s100 c328 o3 c128 o10 c32 o2 c20 o1");
  EXPECT_EQ(loop("HYBRID_DLRM_ENHANCED 1\n3\n"), loop("HYBRID_DLRM 1\n3\n"));
  EXPECT_EQ(loop("HYBRID_DLRM 1\n3\n", Network::inter_server), loop("HYBRID_DLRM 1\n3\n"));
  EXPECT_EQ(loop("HYBRID_DLRM 0\n3\n"), "c1 s100 c328 o3 c160 o2 c16 o10 c4 o1");
}

TEST(Schedule, to_phases__inference_is_forward_only) {
  EXPECT_EQ(loop("DISTRIBUTED_INFERENCE\n3\n"), "c1 s100 c8 s200 c64 s300");
}

TEST(Schedule, to_phases__micro_is_one_collective) { EXPECT_EQ(loop("MICRO\n3\n"), "s1"); }

TEST(Schedule, to_phases__recomputes_from_the_nearest_checkpoint) {
  // Before the backward pass of c: forward of b, from checkpoint 1. Before that of b: nothing, it is a checkpoint.
  EXPECT_EQ(loop("HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 2 0 1 checkpoint_initiates: 2 2 1\n3\n"),
            "c1 s100 c8 s200 c64 s300 c8 s200 c128 s30 c256 o3 c16 s20 c32 o2 c2 s10 c4 o1");
  EXPECT_EQ(loop("HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 1 0 checkpoint_initiates: 1 2\n3\n"),
            "c1 s100 c8 s200 c64 s300 c1 s100 c8 s200 c128 s30 c256 o3 c16 s20 c32 o2 c2 s10 c4 o1");
}

TEST(Schedule, to_phases__labels) {
  MappingOptions options;
  options.network = Network::all;
  std::string labels;
  for (const Phase& phase : to_phases(parse_trace(three_layers("DATA\n3\n"), "t.txt"), options))
    labels += phase.label + "\n";
  EXPECT_EQ(labels,
            "a forward .. c weight-gradient\nc weight-gradient\nc input-gradient .. b weight-gradient\n"
            "b weight-gradient\nb input-gradient .. a weight-gradient\na weight-gradient\n");
  // Overlapping collectives with nothing between them, and a delay that names nothing.
  labels.clear();
  const std::string quiet = "a -1 0 NONE 0 0 NONE 0 0 ALLTOALL 2 5\nb -1 0 NONE 0 0 NONE 0 0 ALLTOALL 4 5\n";
  for (const Phase& phase : to_phases(parse_trace("DATA\n2\n" + quiet, "t.txt"), options)) labels += phase.label + "\n";
  EXPECT_EQ(labels, "\nb weight-gradient .. a weight-gradient\n");
}

TEST(Schedule, to_phases__weight_gradients_alone_by_default) {
  EXPECT_EQ(loop("", Network::weight_gradient), "c457 o3 c48 o2 c6 o1");
  EXPECT_EQ(loop("", Network::inter_server), loop("", Network::weight_gradient));
  EXPECT_EQ(loop("MODEL\n3\n", Network::weight_gradient), "c511");
  EXPECT_EQ(MappingOptions{}.network, Network::weight_gradient);
}

TEST(Schedule, to_phases__experts_cross_between_servers) {
  const Trace trace = parse_trace("a -1 1 ALLTOALL_EP 200 2 ALLREDUCE 20 4 ALLGATHER_DP_EP 2 0\n", "t");
  MappingOptions options;
  options.network = Network::inter_server;
  EXPECT_EQ(summary(to_phases(trace, options)), "c1 s100 c6 o1");
  options.network = Network::weight_gradient;
  EXPECT_EQ(summary(to_phases(trace, options)), "c7 o1");
  options.network = Network::all;
  EXPECT_EQ(summary(to_phases(trace, options)), "c1 s100 c2 s20 c4 o1");
}

TEST(Schedule, to_phases__merges_overlapping_neighbours) {
  const Trace trace = parse_trace(
      "a -1 5 NONE 0 0 NONE 0 0 ALLREDUCE 7 0\n"
      "b -1 6 NONE 0 0 NONE 0 0 ALLREDUCE 8 0\n"
      "c -1 7 NONE 0 3 NONE 0 0 ALLREDUCE 9 0\n",
      "t");
  const auto phases = to_phases(trace);
  EXPECT_EQ(summary(phases), "c21 o24");
  EXPECT_EQ(phases[0].label, "a forward .. c input-gradient");
  EXPECT_EQ(phases[1].label, "c weight-gradient .. a weight-gradient");
}

TEST(Schedule, to_phases__keeps_blocking_neighbours_apart) {
  const Trace trace = parse_trace("a -1 0 ALLREDUCE 5 0 ALLREDUCE 6 0 ALLREDUCE 7 0\n", "t");
  MappingOptions options;
  options.network = Network::all;
  EXPECT_EQ(summary(to_phases(trace, options)), "s5 s6 o7");
}

// The delay between the end of a collective and the use of its result.
TEST(Schedule, to_phases__update_time) {
  MappingOptions options;
  options.network = Network::all;
  // After a blocking collective it is waited for; after the one that ends the iteration it delays the next one;
  // after one in between, something else is computed meanwhile.
  EXPECT_EQ(summary(to_phases(parse_trace("a -1 1 ALLREDUCE 5 2 NONE 0 4 ALLREDUCE 7 1000\n"
                                          "b -1 8 NONE 0 16 NONE 0 32 ALLREDUCE 9 500\n",
                                          "t"),
                              options)),
            "c1001 s5 c1056 o9 c6 o7");
  EXPECT_EQ(to_phases(parse_trace("a -1 1 NONE 0 2 NONE 0 4 ALLREDUCE 7 1000\n", "t")).at(0).label,
            "a forward .. a weight-gradient");
  // A collective that does not cross the network leaves no delay.
  EXPECT_EQ(summary(to_phases(parse_trace("a -1 1 ALLREDUCE 5 2 ALLREDUCE 6 4 NONE 0 1000\n", "t"))), "c7");
}

TEST(Schedule, to_phases__scales) {
  const Trace trace = parse_trace("a -1 10 NONE 0 1 NONE 0 1 ALLREDUCE 1001 4\n", "t");
  MappingOptions options;
  options.compute_scale = 2.5;
  options.bytes_scale = 0.5;
  EXPECT_EQ(summary(to_phases(trace, options)), "c40 o501");
  options.bytes_scale = 1e-6;
  EXPECT_EQ(summary(to_phases(trace, options)), "c40 o1");  // something is sent as long as there is something to send
}

// A thousand steps of 1 ns at a tenth of the time are 100 ns and not a thousand times nothing.
TEST(Schedule, to_phases__scales_sums_and_not_steps) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a -1 1 NONE 0 0 NONE 0 0 NONE 0 0\n";
  MappingOptions options;
  options.compute_scale = 0.1;
  EXPECT_EQ(summary(to_phases(parse_trace(text, "t"), options)), "c100");
}

TEST(Schedule, to_phases__refuses_options) {
  const Trace trace = parse_trace(three_layers(""), "t.txt");
  const auto message = [&](const MappingOptions& options) {
    try {
      to_phases(trace, options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const double scale :
       {0.0, -1.0, 1e7, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    MappingOptions options;
    options.compute_scale = scale;
    EXPECT_THAT(message(options), HasSubstr("t.txt: compute_scale: ")) << scale;
    options.compute_scale = 1;
    options.bytes_scale = scale;
    EXPECT_THAT(message(options), HasSubstr("t.txt: bytes_scale: ")) << scale;
  }
  MappingOptions options;
  options.workers = 4'000'000'000;
  EXPECT_THAT(message(options), HasSubstr("t.txt: workers: "));
}

TEST(Schedule, to_phases__refuses_sums_that_do_not_fit) {
  const auto message = [](const std::string& text, double scale) {
    try {
      MappingOptions options;
      options.compute_scale = scale;
      options.bytes_scale = scale;
      to_phases(parse_trace(text, "t.txt"), options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message("a -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 1000000000000000000 0\n", 5),
              HasSubstr("t.txt:1: weight-gradient size: "));
  EXPECT_THAT(message("a -1 9999999999999999 NONE 0 0 NONE 0 0 NONE 0 0\n", 1e6), HasSubstr("compute_scale"));
  std::string many;
  for (int i = 0; i < 5; ++i) many += "a -1 0 NONE 0 1 NONE 0 0 ALLREDUCE 1000000000000000000 0\n";
  EXPECT_THAT(message(many, 1), HasSubstr("an iteration sends more than"));
  many.clear();
  for (int i = 0; i < 5; ++i) many += "a -1 9999999999999999 NONE 0 0 NONE 0 0 ALLREDUCE 1 0\n";
  EXPECT_THAT(message(many, 100), HasSubstr("exceed 146 years"));
}

TEST(Schedule, group_size__from_header_or_option) {
  const Trace trace = parse_trace(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 16 pp: 12 all_gpus: 9216\n1\n"
      "a -1 1 NONE 0 2 NONE 0 4 NONE 0 0\n",
      "t");
  MappingOptions options;
  EXPECT_EQ(group_size(trace, Group::model, options), 2U);
  EXPECT_EQ(group_size(trace, Group::data, options), 384U);
  EXPECT_EQ(group_size(trace, Group::expert, options), 16U);
  EXPECT_EQ(group_size(trace, Group::expert_data, options), 24U);
  options.workers = 8;
  EXPECT_EQ(group_size(trace, Group::model, options), 2U);
  EXPECT_EQ(group_size(trace, Group::data, options), 8U);
  EXPECT_EQ(group_size(trace, Group::expert, options), 16U);
  EXPECT_EQ(group_size(trace, Group::expert_data, options), 8U);
  const Trace bare = parse_trace(three_layers(""), "t");
  for (const Group group : {Group::model, Group::data, Group::expert, Group::expert_data}) {
    EXPECT_EQ(group_size(bare, group, {}), 2U) << name(group);
    EXPECT_EQ(group_size(bare, group, options), 8U) << name(group);
  }
}

TEST(Schedule, to_job__names_why_it_sends_nothing) {
  try {
    to_job(parse_trace(three_layers("MODEL\n3\n"), "t.txt"), "a");
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("t.txt: with 2 workers and network = \"weight-gradient\" the trace sends "
                                        "nothing; set network = \"all\""));
  }
}

TEST(Schedule, to_job__gather_size) {
  const Trace trace = parse_trace("a -1 1 NONE 0 2 NONE 0 4 ALLGATHER 100 0\n", "t");
  MappingOptions options;
  options.workers = 5;
  EXPECT_EQ(to_job(trace, "a", options).bytes_per_iteration(), 80U);
  options.gather_size = GatherSize::shard;
  EXPECT_EQ(to_job(trace, "a", options).bytes_per_iteration(), 400U);
}

TEST(Schedule, network__names_read_back) {
  for (const Network network : {Network::weight_gradient, Network::inter_server, Network::all})
    EXPECT_EQ(network_from(name(network)), network);
  EXPECT_EQ(network_from("weight-gradient"), Network::weight_gradient);
  EXPECT_EQ(network_from("inter-server"), Network::inter_server);
  EXPECT_EQ(network_from("all"), Network::all);
  EXPECT_EQ(network_from("everything"), std::nullopt);
}

// Sums over published traces, taken from their columns by hand.
TEST(PublishedTrace, to_job__resnet50) {
  const auto path = trace_folder() / "libra" / "ResNet_50.txt";
  SKIP_WITHOUT(path);
  MappingOptions options;
  options.workers = 8;
  const Job job = to_job(load_trace(path), "resnet", options);
  EXPECT_EQ(job.bytes_per_iteration(), 89'260'192U);  // 2 * 7/8 * 51005824
  ASSERT_EQ(job.phases.size(), 2U);
  EXPECT_TRUE(job.phases[1].overlap);
}

TEST(PublishedTrace, to_job__gpt13b_of_aicb) {
  const auto path = trace_folder() / "aicb" / "G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt";
  SKIP_WITHOUT(path);
  const Trace trace = load_trace(path);
  EXPECT_EQ(trace.model_group, 8U);
  EXPECT_EQ(to_job(trace, "gpt").bytes_per_iteration(), 3'248'619'520U);  // half of the reduce-scatter
  MappingOptions options;
  options.network = Network::all;
  // 40 attention and 40 MLP layers with 3 computations of 752 and 750 us, and what the first layers add.
  EXPECT_NEAR(to_job(trace, "gpt", options).compute_per_iteration().millis(), 3 * 40 * 1.502 + 27.956, 0.2);
}

}  // namespace
}  // namespace mltcp::workload
