// Loads MPI's module (see load_mpi_module.h).
#include "load_mpi_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace mltcp::tools {

void* load_mpi_module(std::string& why) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  // Beside the program's folder both times.
  for (const std::string_view place : {MLTCP_MPI_MODULE, "lib/mltcp/libmltcp_mpi.so"}) {
    const auto path = program.parent_path().parent_path() / place;
    // Global: Open MPI loads parts that need its symbols.
    if (void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL); module != nullptr) return module;
    why = dlerror();
  }
  return nullptr;
}

}  // namespace mltcp::tools
