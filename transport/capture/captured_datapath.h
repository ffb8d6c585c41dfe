// A host's datapath, of any kind, whose packets are captured: one interface for each shard.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mltcp/transport/capture/capture_options.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::capture {

/// As open_host_datapath(). Its take_place() creates the file, and throws RunError if the file cannot be written. The
/// end of the datapath ends the capture, and reports the result: a line for people, and whether it has all packets.
std::unique_ptr<HostDatapath> open_captured(const HostDatapathConfig& config, const CaptureOptions& options,
                                            std::function<void(const std::string& line, bool is_complete)> tell);

}  // namespace mltcp::capture
