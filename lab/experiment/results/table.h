// A table of texts for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mltcp::experiment {

/// A table: all rows have the same number of cells, and the first row is the header.
struct Cells {
  std::vector<std::vector<std::string>> rows;
  std::size_t left = 0;  ///< number of leading columns with text, to be left-aligned
};

/// Returns the table in GitHub-flavoured Markdown.
std::string to_markdown(const Cells& cells);

}  // namespace mltcp::experiment
