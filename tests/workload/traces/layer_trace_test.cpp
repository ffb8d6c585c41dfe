// Tests layer-by-layer traces: the values read, data that is accepted with a warning, and rejected data.
#include "mltcp/lab/workload/traces/layer_trace.h"

#include <string>
#include <vector>

#include "../../message_of.h"

namespace mltcp::workload::layer_trace_test {
namespace {

const std::string kLayer = "conv1 -1 5 NONE 0 6 ALLTOALL 10 7 ALLREDUCE 1000 3\n";

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_trace(text, "t.txt"); });
}

// Returns a layer with one column replaced, in line 1.
std::string layer_with(std::size_t column, const std::string& value) {
  std::vector<std::string> columns{"conv1",    "-1", "5", "NONE",      "0",    "6",
                                   "ALLTOALL", "10", "7", "ALLREDUCE", "1000", "3"};
  columns.at(column) = value;
  std::string line;
  for (const std::string& text : columns) line.append(text).append(" ");
  return line;
}

TEST(LayerTrace, parse__a_layer) {
  const Trace trace = parse_trace(kLayer, "t.txt");
  EXPECT_EQ(trace.file, "t.txt");
  EXPECT_EQ(trace.parallelism, Parallelism::unspecified);
  EXPECT_THAT(trace.warnings, IsEmpty());
  ASSERT_EQ(trace.layers.size(), 1U);
  const Layer& layer = trace.layers[0];
  EXPECT_EQ(layer.name, "conv1");
  EXPECT_EQ(layer.line, 1U);
  EXPECT_EQ(layer.update, Nanos(3));
  EXPECT_EQ(layer.pass(Pass::forward).compute, Nanos(5));
  EXPECT_EQ(layer.pass(Pass::forward).collective, Collective::none);
  EXPECT_EQ(layer.pass(Pass::input_gradient).compute, Nanos(6));
  EXPECT_EQ(layer.pass(Pass::input_gradient).collective, Collective::all_to_all);
  EXPECT_EQ(layer.pass(Pass::input_gradient).group, Group::model);
  EXPECT_EQ(layer.pass(Pass::input_gradient).size, 10U);
  EXPECT_EQ(layer.pass(Pass::weight_gradient).compute, Nanos(7));
  EXPECT_EQ(layer.pass(Pass::weight_gradient).collective, Collective::all_reduce);
  EXPECT_EQ(layer.pass(Pass::weight_gradient).group, Group::data);
  EXPECT_EQ(layer.pass(Pass::weight_gradient).size, 1000U);
}

TEST(LayerTrace, parse__white_space_of_any_kind) {
  const Trace trace = parse_trace(
      "\n  \t\r\nDATA \t\r\n 1\t \r\n\r\n\tconv1\t-1  5 \t NONE 0\t6 ALLTOALL 10   7\tALLREDUCE\t1000\t3  \r\n\r\n",
      "t");
  ASSERT_EQ(trace.layers.size(), 1U);
  EXPECT_EQ(trace.layers[0].update, Nanos(3));
  EXPECT_EQ(trace.layers[0].line, 6U);
  EXPECT_THAT(trace.warnings, IsEmpty());
}

TEST(LayerTrace, parse__last_line_without_newline_and_byte_order_mark) {
  EXPECT_EQ(parse_trace("\xEF\xBB\xBF" + kLayer.substr(0, kLayer.size() - 1), "t").layers.size(), 1U);
}

TEST(LayerTrace, parse__every_parallelism) {
  for (const char* text : {"DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_TRANSFORMER",
                           "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "DISTRIBUTED_INFERENCE", "MICRO"}) {
    const Trace trace = parse_trace(std::string(text) + "\n1\n" + kLayer, "t");
    EXPECT_EQ(name(trace.parallelism), text);
    EXPECT_EQ(trace.layers[0].parallelism, trace.parallelism);
    EXPECT_THAT(trace.warnings, IsEmpty()) << text;
  }
}

TEST(LayerTrace, parse__header_of_simai) {
  const Trace trace = parse_trace(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 4 pp: 2 vpp: 8 ga: 1 all_gpus: 64 "
      "checkpoints: 1 0 checkpoint_initiates: 1 1 pp_comm 5033\n2\n" +
          kLayer + kLayer,
      "t.txt");
  EXPECT_EQ(trace.model_group, 8U);
  EXPECT_EQ(trace.expert_group, 4U);
  EXPECT_EQ(trace.pipeline_stages, 2U);
  EXPECT_EQ(trace.all_workers, 64U);
  EXPECT_THAT(trace.checkpoints, ElementsAre(0U));
  EXPECT_THAT(trace.recompute_before, ElementsAre(1U));
  EXPECT_THAT(trace.warnings, ElementsAre(AllOf(StartsWith("t.txt:1: "), HasSubstr("pp is 2"))));
}

TEST(LayerTrace, parse__checkpoint_lists_are_sorted) {
  std::string text =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 checkpoints: 2 2 0 checkpoint_initiates: 2 3 1\n4\n";
  for (int i = 0; i < 4; ++i) text += kLayer;
  const Trace trace = parse_trace(text, "t");
  EXPECT_THAT(trace.checkpoints, ElementsAre(0U, 2U));
  EXPECT_THAT(trace.recompute_before, ElementsAre(1U, 3U));
}

TEST(LayerTrace, parse__dlrm_header_in_both_forms) {
  EXPECT_EQ(parse_trace("HYBRID_DLRM 1\n2\n" + kLayer + kLayer, "t").last_bottom_layer, 1U);
  const Trace trace = parse_trace("HYBRID_DLRM_ENHANCED DLRM_LAST_BOTTOM_LAYER: 1\n2\n" + kLayer + kLayer, "t");
  EXPECT_EQ(trace.last_bottom_layer, 1U);
  EXPECT_EQ(trace.layers[0].pass(Pass::input_gradient).group, Group::data);  // embeddings are on all workers
  EXPECT_EQ(trace.layers[1].pass(Pass::input_gradient).group, Group::model);
}

TEST(LayerTrace, parse__a_parallelism_per_layer) {
  const std::string layer = kLayer.substr(0, kLayer.size() - 1);
  const Trace trace = parse_trace("HYBRID_CUSTOMIZED\n2\n" + layer + " DATA\n" + layer + "\tHYBRID_MODEL_DATA \n", "t");
  EXPECT_EQ(trace.layers[0].parallelism, Parallelism::data);
  EXPECT_EQ(trace.layers[1].parallelism, Parallelism::hybrid_model_data);
}

TEST(LayerTrace, parse__every_collective_and_group) {
  const auto read = [](const std::string& text) {
    return parse_trace(layer_with(9, text), "t").layers[0].pass(Pass::weight_gradient);
  };
  EXPECT_EQ(read("ALLREDUCE").collective, Collective::all_reduce);
  EXPECT_EQ(read("ALLGATHER").collective, Collective::all_gather);
  EXPECT_EQ(read("REDUCESCATTER").collective, Collective::reduce_scatter);
  EXPECT_EQ(read("ALLTOALL").collective, Collective::all_to_all);
  EXPECT_EQ(read("BROADCAST").collective, Collective::broadcast);
  EXPECT_EQ(read("ALLREDUCEALLTOALL").collective, Collective::all_reduce_all_to_all);
  EXPECT_EQ(read("ALLGATHER_DP_EP").collective, Collective::all_gather);
  EXPECT_EQ(read("ALLGATHER_DP_EP").group, Group::expert_data);
  EXPECT_EQ(read("ALLTOALL_EP").group, Group::expert);
  EXPECT_EQ(read("ALLREDUCE_DP").group, Group::data);
  EXPECT_EQ(read("ALLREDUCE_TP").group, Group::model);
  EXPECT_EQ(read("ALLREDUCE").group, Group::data);
}

TEST(LayerTrace, parse__tolerates_with_a_warning) {
  const auto warning = [](const std::string& text) {
    const Trace trace = parse_trace(text, "t.txt");
    EXPECT_EQ(trace.layers.size(), 2U);
    EXPECT_EQ(trace.warnings.size(), 1U);
    return trace.warnings.empty() ? std::string() : trace.warnings[0];
  };
  EXPECT_EQ(warning("DATA\n839\n" + kLayer + kLayer), "t.txt:2: 839 layers are announced and 2 follow, which are used");
  EXPECT_EQ(warning("DATA\n1\n" + kLayer + kLayer), "t.txt:2: 1 layers are announced and 2 follow, which are used");
  EXPECT_THAT(warning("DATA\n" + kLayer + kLayer), StartsWith("t.txt:1: the number of layers is missing"));
  EXPECT_THAT(warning("DATA color: 3\n2\n" + kLayer + kLayer), StartsWith("t.txt:1: \"color\" in the header"));
  EXPECT_THAT(warning(kLayer + "b -1 5 NONE 77 6 NONE 1 7 NONE 0 3"),
              AllOf(StartsWith("t.txt:2: "), HasSubstr("NONE"), HasSubstr("2 times")));
}

TEST(LayerTrace, parse__refuses_numbers) {
  const std::vector<std::pair<std::size_t, std::string>> columns{{2, "forward compute"},
                                                                 {4, "forward size"},
                                                                 {5, "input-gradient compute"},
                                                                 {7, "input-gradient size"},
                                                                 {8, "weight-gradient compute"},
                                                                 {10, "weight-gradient size"},
                                                                 {11, "update time"}};
  for (const auto& [column, column_name] : columns) {
    const auto expect = [&, index = column, label = column_name](const std::string& value, const std::string& cause) {
      EXPECT_THAT(
          refusal("DATA\n2\n" + kLayer + layer_with(index, value)),
          AllOf(StartsWith("t.txt:4: " + label + ": \"" + value.substr(0, 40)), HasSubstr(cause), HasSubstr("; ")))
          << label;
    };
    expect("-5", "is negative");
    expect("x", "is not a whole number");
    expect("1.5", "is not a whole number");
    expect("1e3", "is not a whole number");
    expect("+5", "is not a whole number");
    expect("-", "is not a whole number");
    expect("99999999999999999999", "is too large");
    expect("18446744073709551616", "is too large");
    expect("9999999999999999999", "is too large");
    expect(std::string(1000, '9'), "is too large");
  }
  EXPECT_THAT(refusal(layer_with(1, "x")), StartsWith("t.txt:1: dependency: \"x\" is not a whole number"));
}

TEST(LayerTrace, parse__refuses_unknown_collectives) {
  for (const char* text :
       {"ALLREDUCEX", "allreduce", "REDUCE", "0", "ALLREDUCE_XP", "ALLREDUCE_", "_DP", "ALLREDUCE_DP_"}) {
    EXPECT_THAT(refusal(layer_with(3, text)), AllOf(StartsWith("t.txt:1: forward collective: \"" + std::string(text) +
                                                               "\" is not a known collective"),
                                                    HasSubstr("; write one of NONE, ALLREDUCE, ALLGATHER")));
    EXPECT_THAT(refusal(layer_with(6, text)), StartsWith("t.txt:1: input-gradient collective: "));
    EXPECT_THAT(refusal(layer_with(9, text)), StartsWith("t.txt:1: weight-gradient collective: "));
  }
}

TEST(LayerTrace, parse__refuses_wrong_column_counts) {
  EXPECT_THAT(refusal(kLayer + "conv2 -1 5 NONE\n"), StartsWith("t.txt:2: layer: 4 columns where 12 are expected; "));
  EXPECT_THAT(refusal("conv1 -1 5 NONE 0 6 NONE 0 7 NONE 0\n"), StartsWith("t.txt:1: layer: 11 columns where 12 "));
  EXPECT_THAT(refusal(kLayer.substr(0, kLayer.size() - 1) + " 9\n"), StartsWith("t.txt:1: layer: 13 columns"));
  EXPECT_THAT(refusal("HYBRID_CUSTOMIZED\n1\n" + kLayer), StartsWith("t.txt:3: layer: 12 columns where 13 "));
}

TEST(LayerTrace, parse__refuses_empty_files) {
  EXPECT_THAT(refusal(""), StartsWith("t.txt:1: text: the file is empty; "));
  EXPECT_THAT(refusal(" \n\r\n\t\n"), StartsWith("t.txt:1: text: the file is empty; "));
  EXPECT_THAT(refusal("DATA\n"), StartsWith("t.txt:1: layers: no layer follows; "));
  EXPECT_THAT(refusal("DATA\n0\n"), StartsWith("t.txt:2: layers: no layer follows; "));
}

TEST(LayerTrace, parse__refuses_binary_and_other_formats) {
  EXPECT_THAT(refusal(kLayer + std::string("\x00\x01\x02", 3)), StartsWith("t.txt:2: text: a byte of value 0 "));
  EXPECT_THAT(refusal("\x7f"
                      "ELF\x02\x01\x01"),
              StartsWith("t.txt:1: text: a byte of value 127 "));
  EXPECT_THAT(
      refusal("comm_type,comm_group\nCommType.all_reduce,CommGroup.dp_group\n"),
      AllOf(StartsWith("t.txt:1: layer: the line begins with \"comm_type,comm_group\""), HasSubstr("another format")));
  EXPECT_THAT(refusal("{\"layers\": []}"), HasSubstr("another format"));
  EXPECT_THAT(
      refusal("### This comment, of a file about a network, has as many words as a layer has columns and more\n\n"
              "Topology: [ Ring, Switch ]\n"),
      AllOf(StartsWith("t.txt:3: layer: the line begins with \"Topology:\""), HasSubstr("YAML")));
  EXPECT_THAT(refusal("---\nForward: [ 16, -1 ]\n"), HasSubstr("YAML"));
  EXPECT_THAT(refusal("# a layer\nA -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
              AllOf(StartsWith("t.txt:1: layer: the line begins with \"#\""), HasSubstr("remove the comments")));
}

TEST(LayerTrace, parse__refuses_headers) {
  const auto header = [](const std::string& text) { return refusal(text + "\n1\n" + kLayer); };
  EXPECT_THAT(header("HYBRID_MAGIC"), AllOf(StartsWith("t.txt:1: parallelism: \"HYBRID_MAGIC\" is not known; "),
                                            HasSubstr("HYBRID_TRANSFORMER")));
  EXPECT_THAT(header("HYBRID_TRANSFORMER model_parallel_NPU_group: x"),
              StartsWith("t.txt:1: model_parallel_NPU_group: "));
  EXPECT_THAT(header("HYBRID_TRANSFORMER model_parallel_NPU_group:"), HasSubstr("the value is missing"));
  EXPECT_THAT(header("HYBRID_TRANSFORMER ep: -1"), StartsWith("t.txt:1: ep: \"-1\" is negative"));
  EXPECT_THAT(header("HYBRID_TRANSFORMER all_gpus: 99999999999"), StartsWith("t.txt:1: all_gpus: "));
  EXPECT_THAT(header("HYBRID_DLRM"), StartsWith("t.txt:1: last bottom layer: "));
  EXPECT_THAT(header("HYBRID_DLRM 1"), StartsWith("t.txt:1: last bottom layer: there is no layer 1; "));
  const std::string recompute = "HYBRID_TRANSFORMER_FWD_IN_BCKWD ";
  EXPECT_THAT(header(recompute + "checkpoints: 2 0"), HasSubstr("checkpoints: 2 layers are announced and 1 follow"));
  EXPECT_THAT(header(recompute + "checkpoints: 1 7"), HasSubstr("checkpoints: there is no layer 7"));
  EXPECT_THAT(header(recompute + "checkpoints: 0 checkpoint_initiates: 1 0"), HasSubstr("has no checkpoint before it"));
  EXPECT_THAT(header(recompute + "checkpoints: 99999999999999999999"), HasSubstr("is too large"));
  EXPECT_THAT(refusal("DATA\nfour\n" + kLayer), StartsWith("t.txt:2: number of layers: \"four\""));
  EXPECT_THAT(refusal("HYBRID_CUSTOMIZED\n1\n" + layer_with(0, "a") + " MICRO"), StartsWith("t.txt:3: parallelism: "));
}

TEST(LayerTrace, parse__bounds_what_is_recomputed) {
  // Every layer recomputes all layers from the first one on. Of 1414 layers, this recomputes 998,991 in total. Of 1500
  // layers, it recomputes 1,124,250.
  const auto recomputing = [](int layers) {
    std::string header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 1 0 checkpoint_initiates: ";
    std::string list;
    std::string lines;
    for (int i = 0; i < layers; ++i) {
      list.append(" ").append(std::to_string(i));
      lines += kLayer;
    }
    return refusal(header + std::to_string(layers) + list + "\n" + std::to_string(layers) + "\n" + lines);
  };
  EXPECT_EQ(recomputing(1414), "no error");
  EXPECT_EQ(recomputing(1500),
            "t.txt:1: checkpoint_initiates: 1124250 layers are recomputed in an iteration; list more checkpoints, so "
            "that at most 1000000 are");
}

TEST(LayerTrace, parse__errors_are_one_line) {
  EXPECT_THAT(refusal_of([&] { parse_trace("", "a\nb\x1b"); }), StartsWith("a?b?:1: text: "));
  EXPECT_THAT(parse_trace("DATA\n7\n" + kLayer, "a\nb").warnings, ElementsAre(StartsWith("a?b:2: ")));
  EXPECT_EQ(refusal("a\rb").find_first_of("\r\n"), std::string::npos);
  EXPECT_LT(refusal(std::string(100'000, 'x')).size(), 300U);
}

}  // namespace
}  // namespace mltcp::workload::layer_trace_test
