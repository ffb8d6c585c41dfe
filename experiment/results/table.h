// A table of texts, for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mltcp::experiment {

/// Rows of cells, the header first; all of one length.
struct Cells {
  std::vector<std::vector<std::string>> rows;
  std::size_t left = 0;  ///< that many columns are texts
};

/// A table of GitHub-flavoured Markdown.
std::string to_markdown(const Cells& cells);

}  // namespace mltcp::experiment
