// What belongs to this program and to no other: the id of its build, and the files that are built with it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::tools {

/// Where a file of this program may be, in the order of looking: as it is installed, and as it is built
/// (cmake/OwnFolders.cmake). None if the system doesn't tell where the program is.
std::vector<std::filesystem::path> own_files(std::string_view name);

/// What the linker made of all that is in this program (note NT_GNU_BUILD_ID of its ELF file), in lower hexadecimal
/// digits; empty if it was linked without.
std::string build_id();

}  // namespace mltcp::tools
