// A libFuzzer target: any bytes as a trace. They are read, or refused by InputError in one line; nothing else.
//
//   cmake -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DMLTCP_FUZZERS=ON
//   ninja -C build-fuzz trace_fuzzer && build-fuzz/bin/trace_fuzzer -max_len=4096 FOLDER_OF_SAMPLES
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/workload/traces/read_traces.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    mltcp::workload::TraceOptions options;
    options.as_recorded = true;  // so that a few bytes do not ask for millions of ranks
    mltcp::workload::parse_trace_graph(text, "fuzz", options);
  } catch (const mltcp::InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
