// Finds the files that belong to this program, and identifies the program's build.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::tools {

/// Returns the possible paths of a file that belongs to this program: first as installed, then as built
/// (cmake/OwnFolders.cmake). Returns nothing if the path of the program itself is unknown.
std::vector<std::filesystem::path> own_files(std::string_view name);

/// Returns the build id that the linker stored in this program (ELF note NT_GNU_BUILD_ID), in lower-case hexadecimal.
/// Empty if there is none.
std::string build_id();

}  // namespace mltcp::tools
