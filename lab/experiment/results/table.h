// A table of texts for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mltcp::experiment {

/// Rows of cells of equal length, header first.
struct Cells {
  std::vector<std::vector<std::string>> rows;
  std::size_t left = 0;  ///< number of leading columns with text, to be left-aligned
};

/// A table of GitHub-flavoured Markdown.
std::string to_markdown(const Cells& cells);

}  // namespace mltcp::experiment
