// Finds the known word that is nearest to a misspelt word, for "did you mean ...?" in messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp {

/// Returns the word among `known` with the minimum edit distance to `word`, or the first of several such words. An edit
/// inserts, deletes or replaces a letter, or swaps two neighbouring letters. Empty if the distance is above 2 and is
/// also above one third of the length of `word`. Also empty if `word` has more than 40 letters.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace mltcp
