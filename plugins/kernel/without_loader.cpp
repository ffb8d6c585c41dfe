// Reports that the loader was not built, and why (see doctor.h).
#include "mltcp/plugins/kernel/doctor.h"

namespace mltcp::kernel {

Examination examine() { return {false, "left out of this program: " MLTCP_KERNEL_LACKS, MLTCP_KERNEL_CURE}; }

}  // namespace mltcp::kernel
