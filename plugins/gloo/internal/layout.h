// Checks that the caller, this library and the loaded Gloo agree on the layout of Gloo's types. Gloo has no version
// that can be read at run time. So the check lets the loaded library create a context, and examines the bytes of that
// context.
#pragma once

#include "mltcp/plugins/gloo/device.h"

namespace gloo::transport::mltcp {

/// Throws InvalidOperationException unless `caller` equals the GlooLayout{} with which this library was built.
void check_layout(const GlooLayout& caller);
/// Throws InvalidOperationException if the layout of a context in the loaded Gloo differs from that in the headers.
void check_loaded_gloo();

}  // namespace gloo::transport::mltcp
