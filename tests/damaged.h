// Damages text for tests. Readers of files and messages must accept damaged text, or refuse it with one line.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/base/random.h"

namespace mltcp {

/// Returns `text` with 1 to `max_changes` random changes. A change replaces a byte, flips a bit, writes a digit,
/// removes or repeats a part, removes the rest, or inserts many copies of one byte.
inline std::string damaged(std::string text, Random& random, std::uint64_t max_changes = 4) {
  for (std::uint64_t changes = 1 + random.below(max_changes); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = random.below(text.size());
    switch (random.below(8)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      case 2:
        text[at] = static_cast<char>('0' + random.below(10));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        text.erase(at, 1 + random.below(20));
        break;
      case 5:
        text.insert(at, text.substr(random.below(text.size()), random.below(50)));
        break;
      case 6:
        text.insert(at, std::string(1 + random.below(18), '9'));
        break;
      default:
        text.insert(at, std::string(random.below(3000), "\0[{\"\\%\r\n,9"[random.below(10)]));
    }
  }
  return text;
}

}  // namespace mltcp
