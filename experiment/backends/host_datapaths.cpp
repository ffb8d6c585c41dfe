// The datapaths of this build; see host_datapaths.h. A new one is a line here.
#include "mltcp/experiment/backends/host_datapaths.h"

#if MLTCP_HAS_DPDK
#include "mltcp/dpdk/port_datapath.h"
#endif

namespace mltcp::experiment {

void register_datapaths() {
#if MLTCP_HAS_DPDK
  dpdk::register_datapath();
#endif
}

}  // namespace mltcp::experiment
