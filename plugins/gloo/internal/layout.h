// Whether caller, library and the Gloo that is loaded agree on Gloo's types. Gloo has no version that a program could
// ask for at run time, so the loaded one is asked to make a context, and what it has written is looked at.
#pragma once

#include "mltcp/plugins/gloo/device.h"

namespace gloo::transport::mltcp {

/// Throws InvalidOperationException where `caller` is not GlooLayout{} of this library's build.
void check_layout(const GlooLayout& caller);
/// Throws InvalidOperationException where the loaded Gloo writes a context in another way than the headers read it.
void check_loaded_gloo();

}  // namespace gloo::transport::mltcp
