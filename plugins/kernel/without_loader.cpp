// Says that the loader was left out, and why (see doctor.h).
#include "mltcp/plugins/kernel/doctor.h"

namespace mltcp::kernel {

Examination examine() { return {false, "left out of this program: " MLTCP_KERNEL_LACKS, MLTCP_KERNEL_CURE}; }

}  // namespace mltcp::kernel
