// Tests the phases made from 12-column texts: their order in each training loop, which collectives cross the network,
// scale factors and sums.
#include "mltcp/lab/workload/traces/training_loop.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../traces.h"
#include "mltcp/lab/workload/traces/layer_trace.h"
#include "mltcp/lab/workload/traces/trace_summary.h"

namespace mltcp::workload::training_loop_test {
namespace {

// Returns phases as text. "c5 s100 o30 c7" means: computes 5 ns, sends 100 bytes, sends 30 bytes overlapping, computes
// 7 ns.
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

// Returns three layers in which each number identifies the source of a phase. Compute times are powers of two. Layer i
// sends i + 1 times 100 bytes (forward), 10 bytes (input gradient) or 1 byte (weight gradient). An all-to-all between 2
// workers sends half of its size, so the sizes in the text are doubled.
std::string three_layers(const std::string& header) {
  return header +
         "a -1 1   ALLTOALL 200 2   ALLTOALL 20 4   ALLTOALL 2 0\n"
         "b -1 8   ALLTOALL 400 16  ALLTOALL 40 32  ALLTOALL 4 0\n"
         "c -1 64  ALLTOALL 600 128 ALLTOALL 60 256 ALLTOALL 6 0\n";
}

/// Returns the view of a trace that experiments and the service use.
TraceView seen(std::optional<Network> network = Network::all) {
  TraceView view;
  view.network = network;
  view.one_worker = true;
  return view;
}
std::vector<Phase> phases_of(const std::string& text, const TraceView& view = seen()) {
  return summarise_trace_text(text, "t.txt", view).phases;
}
std::string loop(const std::string& header, std::optional<Network> network = Network::all) {
  return summary(phases_of(three_layers(header), seen(network)));
}

TEST(TrainingLoop, phases__without_header_every_collective) {
  EXPECT_EQ(loop(""), "c1 s100 c8 s200 c64 s300 c128 s30 c256 o3 c16 s20 c32 o2 c2 s10 c4 s1");
}

TEST(TrainingLoop, phases__transformer) {
  EXPECT_EQ(loop("HYBRID_TRANSFORMER\n3\n"), loop(""));
  EXPECT_EQ(loop("HYBRID_TRANSFORMER_FWD_IN_BCKWD\n3\n"), loop(""));
}

TEST(TrainingLoop, phases__data_reduces_weights_only_and_needs_no_first_input_gradient) {
  EXPECT_EQ(loop("DATA\n3\n"), "c329 o3 c160 o2 c20 s1");  // 329 is 1 + 8 + 64 + 256, 160 is 128 + 32, and 20 is 16 + 4
}

TEST(TrainingLoop, phases__model_reduces_no_weights) {
  EXPECT_EQ(loop("MODEL\n3\n"), "c1 s100 c8 s200 c64 s300 c128 s30 c272 s20 c34 s10 c4");
}

TEST(TrainingLoop, phases__hybrids_have_no_first_input_gradient_collective) {
  const std::string expected = "c1 s100 c8 s200 c64 s300 c128 s30 c256 o3 c16 s20 c32 o2 c6 s1";
  EXPECT_EQ(loop("HYBRID_DATA_MODEL\n3\n"), expected);
  EXPECT_EQ(loop("HYBRID_MODEL_DATA\n3\n"), expected);
}

TEST(TrainingLoop, phases__customized_goes_by_layer) {
  EXPECT_EQ(summary(phases_of("HYBRID_CUSTOMIZED\n3\n"
                              "a -1 1   ALLTOALL 200 2   ALLTOALL 20 4   ALLTOALL 2 0 HYBRID_DATA_MODEL\n"
                              "b -1 8   ALLTOALL 400 16  ALLTOALL 40 32  ALLTOALL 4 0 DATA\n"
                              "c -1 64  ALLTOALL 600 128 ALLTOALL 60 256 ALLTOALL 6 0 MODEL\n")),
            "c1 s100 c72 s300 c128 s30 c304 o2 c6 s1");
}

TEST(TrainingLoop, phases__dlrm) {
  // The forward all-to-all is in layer 0. Weight gradients come before input gradients. The all-to-all of gradients
  // follows the last top layer.
  EXPECT_EQ(loop("HYBRID_DLRM 1\n3\n"), "c1 s100 c328 o3 c128 o10 c32 o2 c20 s1");
  EXPECT_EQ(loop("HYBRID_DLRM_ENHANCED 1\n3\n"), loop("HYBRID_DLRM 1\n3\n"));
  EXPECT_EQ(loop("HYBRID_DLRM 1\n3\n", Network::inter_server), loop("HYBRID_DLRM 1\n3\n"));
  EXPECT_EQ(loop("HYBRID_DLRM 0\n3\n"), "c1 s100 c328 o3 c160 o2 c16 o10 c4 s1");
}

TEST(TrainingLoop, phases__inference_is_forward_only) {
  EXPECT_EQ(loop("DISTRIBUTED_INFERENCE\n3\n"), "c1 s100 c8 s200 c64 s300");
}

TEST(TrainingLoop, phases__micro_is_one_collective) { EXPECT_EQ(loop("MICRO\n3\n"), "s1"); }

TEST(TrainingLoop, phases__recomputes_from_the_nearest_checkpoint) {
  // Before the backward pass of c, b is recomputed from checkpoint 1. Before the backward pass of b, nothing is
  // recomputed, because b is a checkpoint.
  EXPECT_EQ(loop("HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 2 0 1 checkpoint_initiates: 2 2 1\n3\n"),
            "c1 s100 c8 s200 c64 s300 c8 s200 c128 s30 c256 o3 c16 s20 c32 o2 c2 s10 c4 s1");
  EXPECT_EQ(loop("HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 1 0 checkpoint_initiates: 1 2\n3\n"),
            "c1 s100 c8 s200 c64 s300 c1 s100 c8 s200 c128 s30 c256 o3 c16 s20 c32 o2 c2 s10 c4 s1");
}

TEST(TrainingLoop, phases__labels) {
  std::string labels;
  for (const Phase& phase : phases_of(three_layers("DATA\n3\n"))) labels += phase.label + "\n";
  EXPECT_EQ(labels, "\nc weight-gradient\n\nb weight-gradient\n\na weight-gradient\n");
}

TEST(TrainingLoop, phases__weight_gradients_alone_by_default) {
  EXPECT_EQ(loop("", Network::weight_gradient), "c457 o3 c48 o2 c6 s1");
  EXPECT_EQ(loop("", Network::inter_server), loop("", Network::weight_gradient));
  EXPECT_EQ(loop("MODEL\n3\n", Network::weight_gradient), "c511");
  EXPECT_EQ(loop("", std::nullopt), loop("", Network::weight_gradient));
  EXPECT_EQ(loop("MODEL\n3\n", std::nullopt), loop("MODEL\n3\n")) << "there are no others";
}

TEST(TrainingLoop, phases__experts_cross_between_servers) {
  const std::string text = "a -1 1 ALLTOALL_EP 200 2 ALLREDUCE 20 4 ALLGATHER_DP_EP 2 0\n";
  EXPECT_EQ(summary(phases_of(text, seen(Network::inter_server))), "c1 s100 c6 s1");
  EXPECT_EQ(summary(phases_of(text, seen(Network::weight_gradient))), "c7 s1");
  EXPECT_EQ(summary(phases_of(text)), "c1 s100 c2 s20 c4 s1");
}

// On another link, collectives may take less time, so they do not have to wait for each other as in the trace.
TEST(TrainingLoop, phases__begin_when_they_are_ready_though_the_link_is_busy) {
  const std::string text =
      "a -1 0 NONE 0 0 NONE 0 100 ALLREDUCE 1000000 0\n"
      "b -1 0 NONE 0 0 NONE 0 100 ALLREDUCE 2000000 0\n"
      "c -1 0 NONE 0 0 NONE 0 100 ALLREDUCE 3000000 0\n";
  EXPECT_EQ(summary(phases_of(text)), "c100 o3000000 c100 o2000000 c100 s1000000");
}

TEST(TrainingLoop, phases__neighbours_stay_apart) {
  EXPECT_EQ(summary(phases_of("a -1 0 ALLREDUCE 5 0 ALLREDUCE 6 0 ALLREDUCE 7 0\n")), "s5 s6 s7");
  EXPECT_EQ(summary(phases_of("a -1 5 NONE 0 0 NONE 0 0 ALLREDUCE 7 0\nb -1 6 NONE 0 0 NONE 0 0 ALLREDUCE 8 0\n")),
            "c11 s8 s7");
}

// The update time is the delay between the end of a collective and the use of its result.
TEST(TrainingLoop, phases__update_time) {
  // After a blocking collective, the job waits for the update time. After the collective that ends the iteration, the
  // update time delays the next iteration. After any other collective, the job computes something else meanwhile.
  EXPECT_EQ(summary(phases_of("a -1 1 ALLREDUCE 5 2 NONE 0 4 ALLREDUCE 7 1000\n"
                              "b -1 8 NONE 0 16 NONE 0 32 ALLREDUCE 9 500\n")),
            "c1001 s5 c1056 o9 c6 s7");
  // A collective that does not cross the network has no update time.
  EXPECT_EQ(summary(phases_of("a -1 1 ALLREDUCE 5 2 ALLREDUCE 6 4 NONE 0 1000\n", seen(Network::weight_gradient))),
            "c7");
}

TEST(TrainingLoop, phases__scales) {
  const std::string text = "a -1 10 NONE 0 1 NONE 0 1 ALLREDUCE 1001 4\n";
  TraceView view = seen();
  view.compute_scale = 2.5;
  view.bytes_scale = 0.5;
  EXPECT_EQ(summary(phases_of(text, view)), "c40 s501");
  view.bytes_scale = 1e-6;
  // a collective that sends any bytes sends at least one byte after scaling
  EXPECT_EQ(summary(phases_of(text, view)), "c40 s1");
}

// A thousand steps of 1 ns, scaled by 0.1, are 100 ns and not 0.
TEST(TrainingLoop, phases__scales_sums_and_not_steps) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a -1 1 NONE 0 0 NONE 0 0 NONE 0 0\n";
  TraceView view = seen();
  view.compute_scale = 0.1;
  EXPECT_EQ(summary(phases_of(text, view)), "c100");
}

TEST(TrainingLoop, bytes__follow_groups_of_the_header_or_of_the_option) {
  const std::string header =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 16 pp: 12 all_gpus: 9216\n4\n";
  // The all-to-alls send (n-1)/n of 9216 bytes, between 2, 384, 16 and 24 workers.
  const std::string layers =
      "a -1 1 ALLTOALL_TP 9216 1 NONE 0 1 NONE 0 0\nb -1 1 ALLTOALL_DP 9216 1 NONE 0 1 NONE 0 0\n"
      "c -1 1 ALLTOALL_EP 9216 1 NONE 0 1 NONE 0 0\nd -1 1 ALLTOALL_DP_EP 9216 1 NONE 0 1 NONE 0 0\n";
  EXPECT_EQ(summary(phases_of(header + layers)), "c1 s4608 c1 s9192 c1 s8640 c1 s8832 c8");
  TraceView view = seen();
  view.workers = 8;
  EXPECT_EQ(summary(phases_of(header + layers, view)), "c1 s4608 c1 s8064 c1 s8640 c1 s8064 c8");
  EXPECT_EQ(summary(phases_of(layers, view)), "c1 s8064 c1 s8064 c1 s8064 c1 s8064 c8");
  EXPECT_EQ(summary(phases_of(layers)), "c1 s4608 c1 s4608 c1 s4608 c1 s4608 c8") << "among 2";
}

TEST(TrainingLoop, bytes__of_shards_are_those_of_all_workers) {
  const std::string text = "a -1 1 NONE 0 2 NONE 0 4 ALLGATHER 100 0\n";
  TraceView view = seen();
  view.workers = 5;
  EXPECT_EQ(summary(phases_of(text, view)), "c7 s80");
  view.gather_size = GatherSize::shard;
  EXPECT_EQ(summary(phases_of(text, view)), "c7 s400");
}

TEST(TrainingLoop, job__names_why_it_sends_nothing) {
  const std::string refused = refusal_of(
      [&] { to_job(summarise_trace_text(three_layers("MODEL\n3\n"), "t.txt", seen(Network::weight_gradient)), "a"); });
  EXPECT_THAT(refused, HasAll("t.txt: rank 0 sends nothing in an iteration; ", "network \"all\""));
}

TEST(TrainingLoop, network__names_read_back) {
  for (const Network network : {Network::weight_gradient, Network::inter_server, Network::all})
    EXPECT_EQ(network_from(name(network)), network);
  EXPECT_EQ(network_from("weight-gradient"), Network::weight_gradient);
  EXPECT_EQ(network_from("inter-server"), Network::inter_server);
  EXPECT_EQ(network_from("all"), Network::all);
  EXPECT_EQ(network_from("everything"), std::nullopt);
}

// The expected values are computed by hand from the columns of published traces.
TEST(TrainingLoop, published__send_what_their_columns_say) {
  const auto resnet = trace_folder() / "libra" / "ResNet_50.txt";
  const auto gpt = trace_folder() / "aicb" / "G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt";
  SKIP_WITHOUT(gpt);
  const auto job_of = [](const std::filesystem::path& path, const TraceView& view) {
    return to_job(summary_of(read_traces(std::span(&path, 1), options_of(view)), view), "job");
  };
  TraceView view = seen(std::nullopt);
  EXPECT_EQ(job_of(gpt, view).bytes_per_iteration(), 3'248'619'520U);  // this includes half of the reduce-scatter
  // There are 40 attention layers and 40 MLP layers. Each attention layer has 3 computations of 752 us, and each MLP
  // layer has 3 computations of 750 us. The first layers add 27.956 ms.
  EXPECT_NEAR(job_of(gpt, seen()).compute_per_iteration().millis(), 3 * 40 * 1.502 + 27.956, 0.2);
  view.workers = 8;
  // this is 2 * 7/8 of the 51005824 bytes in the trace
  EXPECT_EQ(job_of(resnet, view).bytes_per_iteration(), 89'260'192U);
}

}  // namespace
}  // namespace mltcp::workload::training_loop_test
