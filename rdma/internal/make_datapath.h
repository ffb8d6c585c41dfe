// Creates a datapath on an open device. Tests pass their own device.
#pragma once

#include <memory>

#include "mltcp/rdma/device.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {

std::unique_ptr<HostDatapath> make_datapath(const HostDatapathConfig& config, std::unique_ptr<Device> device);

}  // namespace mltcp::rdma
