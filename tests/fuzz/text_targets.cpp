// Lists the targets that read files, messages and other short texts.
#include <array>

#include "corpus_targets.h"

namespace mltcp::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kAll{
      Target{"experiment", fuzz_experiment, 4000},
      Target{"traces", fuzz_traces, 2000},
      Target{"results", fuzz_results, 1500},
      Target{"control", fuzz_control, 10'000},
      Target{"plan", fuzz_plan, 4000},
      Target{"http", fuzz_http, 1500},
      Target{"words", fuzz_words, 4000},
  };
  return kAll;
}

}  // namespace mltcp::fuzz
