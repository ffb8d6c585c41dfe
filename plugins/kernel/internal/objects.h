// The compiled BPF programs, built from bpf/.
#pragma once

#include <span>
#include <string_view>

namespace mltcp::kernel::internal {

/// Returns the ELF object of an algorithm; empty if there is no algorithm of this name.
std::span<const unsigned char> object_of(std::string_view algorithm);

}  // namespace mltcp::kernel::internal
