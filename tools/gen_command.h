// What other commands ask of `mltcp gen`.
#pragma once

#include <string>
#include <vector>

namespace mltcp::tools {

/// Whether a coordinator could begin with these words, which stand behind `mltcp gen`, --serve among them: reads them,
/// the experiment and its plan, and listens nowhere. Throws the InputError that the coordinator would throw. False:
/// they ask for --help, which has been printed.
bool check_coordinator_words(const std::vector<std::string>& words);

}  // namespace mltcp::tools
