// A host's datapath, of any kind, whose packets are captured: one interface for each shard.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mltcp/transport/capture/capture_options.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::capture {

/// Opens a datapath like open_host_datapath(), and captures its packets. take_place() of the datapath creates the file,
/// and throws RunError if the file cannot be written. The destructor of the datapath ends the capture, and calls `tell`
/// with a line for people and with whether the file has all packets.
std::unique_ptr<HostDatapath> open_captured(const HostDatapathConfig& config, const CaptureOptions& options,
                                            std::function<void(const std::string& line, bool is_complete)> tell);

}  // namespace mltcp::capture
