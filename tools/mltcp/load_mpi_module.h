// Loads libmltcp_mpi.so (mpi_module.h) from where it is installed or built.
#pragma once

#include <string>

namespace mltcp::tools {

/// Like dlopen(); never unloaded. Null, with the reason in `why`, if it cannot be loaded.
void* load_mpi_module(std::string& why);

}  // namespace mltcp::tools
