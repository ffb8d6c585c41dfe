// Lets libFuzzer call a target. MLTCP_FUZZ_TARGET is the name of the target's function.
#include <cstdio>
#include <cstdlib>

#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    mltcp::fuzz::MLTCP_FUZZ_TARGET({data, size});
  } catch (const mltcp::fuzz::Violation& violation) {
    std::fprintf(stderr, "violation: %s\n", violation.what.c_str());
    std::abort();
  }
  return 0;
}
