// The word that somebody meant who wrote another: for "did you mean ...?" in messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp {

/// The one of `known` that takes the fewest edits to become from `word` (letters inserted, left out, replaced, or
/// swapped with their neighbours), the first of several; nothing if even that takes more than a third of the word's
/// letters, and more than two, or if the word has more than 40.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace mltcp
