// Identification of this program's build, and of the files that belong to it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::tools {

/// Possible paths of a file of this program, in the order of preference: as installed, and as built
/// (cmake/OwnFolders.cmake). Empty if the program's own path is unknown.
std::vector<std::filesystem::path> own_files(std::string_view name);

/// The linker's build id of this program (ELF note NT_GNU_BUILD_ID) in lower-case hexadecimal; empty if it has none.
std::string build_id();

}  // namespace mltcp::tools
