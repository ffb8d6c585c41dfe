// Nearest-match look-up of a misspelt word, for "did you mean ...?" in messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp {

/// The word among `known` with the minimum edit distance to `word` (insertions, deletions, replacements, swaps of
/// neighbours); the first one of several. Empty if the distance exceeds both two and a third of the word's length, or
/// if the word has more than 40 letters.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace mltcp
