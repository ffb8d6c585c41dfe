// Measures the speed of reading traces from memory. For compressed traces, the time includes decompression.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "mltcp/lab/workload/traces/read_traces.h"

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>((value & 0x7fU) | 0x80U);
  return bytes + static_cast<char>(value);
}
std::string number(std::uint32_t field, std::uint64_t value) { return varint(field << 3U) + varint(value); }
std::string bytes(std::uint32_t field, const std::string& value) {
  return varint(field << 3U | 2U) + varint(value.size()) + value;
}

/// Returns a Chakra trace like those converted from PyTorch. Its nodes have tensors, a schema and attributes, and each
/// node depends on the previous one. Every hundredth node is a collective. A node has 700 bytes, as in published
/// traces.
std::string chakra_trace(std::uint64_t nodes) {
  std::string trace = varint(7) + bytes(1, "0.0.4");
  const std::string tensors = bytes(8, bytes(1, std::string(200, 't')) + bytes(2, std::string(60, 's')));
  const auto attribute = [](const std::string& name, std::uint32_t field, std::uint64_t value) {
    return bytes(10, bytes(1, name) + number(field, value));
  };
  const std::string schema = bytes(10, bytes(1, "op_schema") + bytes(29, std::string(200, 'o')));
  for (std::uint64_t i = 1; i <= nodes; ++i) {
    const bool collective = i % 100 == 0;
    std::string node = number(1, i) + bytes(2, "aten::operation_" + std::to_string(i % 500)) +
                       number(3, collective ? 7 : 4) + (i > 1 ? number(5, i - 1) : "") + number(7, 10 + i % 90) +
                       tensors + schema + attribute("is_cpu_op", 27, 0) + attribute("tid", 9, 1) +
                       attribute("rf_id", 9, i) + attribute("scope", 9, 0) + attribute("seq_id", 9, i);
    if (collective) node += attribute("comm_type", 9, 0) + attribute("comm_size", 9, 25'000'000);
    trace += varint(node.size()) + node;
  }
  return trace;
}

void read(benchmark::State& state, const std::string& trace, const std::string& name) {
  mltcp::workload::TraceOptions options;
  options.as_recorded = true;
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(mltcp::workload::parse_trace_graph(trace, name, options).ranks.size());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(trace.size()));
}

void chakra(benchmark::State& state) {
  static const std::string trace = chakra_trace(100'000);
  read(state, trace, "bench.0.et");
}
BENCHMARK(chakra)->Unit(benchmark::kMillisecond);

/// Reads the nodes of chakra_trace() from a JSON list.
void chakra_json(benchmark::State& state) {
  static const std::string trace = [] {
    std::string text = "{\"workload_graph\": [";
    for (int i = 1; i <= 100'000; ++i)
      text += (i == 1 ? "\n" : ",\n") + ("{\"Id\": " + std::to_string(i)) + ", \"Name\": \"aten::operation_" +
              std::to_string(i % 500) + "\", \"NodeType\": 4, \"ctrlDeps\": [], \"data_deps\": [" +
              (i > 1 ? std::to_string(i - 1) : "") + "], \"runtime\": " + std::to_string(10 + i % 90) +
              ", \"is_cpu_op\": false, \"op_schema\": \"" + std::string(200, 'o') + "\"}";
    return text + "]}";
  }();
  read(state, trace, "bench.0.json");
}
BENCHMARK(chakra_json)->Unit(benchmark::kMillisecond);

}  // namespace
