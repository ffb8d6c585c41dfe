// Checks that caller, library and loaded Gloo agree on the layout of Gloo's types. Gloo has no version that can be read
// at run time, so the loaded library creates a context, and its bytes are examined.
#pragma once

#include "mltcp/plugins/gloo/device.h"

namespace gloo::transport::mltcp {

/// Throws InvalidOperationException unless `caller` equals GlooLayout{} of this library's build.
void check_layout(const GlooLayout& caller);
/// Throws InvalidOperationException if the loaded Gloo lays out a context differently from the headers.
void check_loaded_gloo();

}  // namespace gloo::transport::mltcp
