// Lists the targets that read packets.
#include <array>

#include "corpus_targets.h"

namespace mltcp::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kAll{
      Target{"wire", fuzz_wire, 20'000},           Target{"encapsulation", fuzz_encapsulation, 20'000},
      Target{"neighbours", fuzz_neighbours, 3000}, Target{"shard", fuzz_shard, 150},
      Target{"claims", fuzz_claims, 20'000},
  };
  return kAll;
}

}  // namespace mltcp::fuzz
