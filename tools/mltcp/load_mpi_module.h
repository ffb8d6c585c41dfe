// Loads libmltcp_mpi.so (mpi_module.h) from the folder in which it is installed or built.
#pragma once

#include <string>

namespace mltcp::tools {

/// Returns a handle for dlsym(), which is never closed. Returns null, with the reason in `why`, if the module cannot be
/// loaded.
void* load_mpi_module(std::string& why);

}  // namespace mltcp::tools
