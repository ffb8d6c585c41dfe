// Loads the module with MPI's functions (see load_mpi_module.h).
#include "load_mpi_module.h"

#include <dlfcn.h>

#include "own_files.h"

namespace mltcp::tools {

void* load_mpi_module(std::string& why) {
  why = "the system does not report the path of this program";
  for (const auto& path : own_files("libmltcp_mpi.so")) {
    // RTLD_GLOBAL, because Open MPI loads plug-ins that need its symbols.
    if (void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL); module != nullptr) return module;
    why = dlerror();
  }
  return nullptr;
}

}  // namespace mltcp::tools
