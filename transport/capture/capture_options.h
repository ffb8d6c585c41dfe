// What users write of a capture, the same for --pcap and MLTCP_PCAP: "FILE[,snap=BYTES][,size=BYTES][,files=N]".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"

namespace mltcp::capture {

struct CaptureOptions {
  std::string file;  ///< with %p for the process id
  /// Bytes kept of each packet, from the IP header on (of a switch: from the Ethernet header on), 64 to 65535.
  std::uint32_t snap_bytes = 65535;
  Bytes file_bytes = 0;     ///< no file gets longer; 0: no limit. At least 64 kB
  std::uint32_t files = 1;  ///< above 1: so many, each of file_bytes, of which the oldest goes; 2 to 10000
};

/// `what` is the option or variable, for messages. Throws InputError.
CaptureOptions parse_capture(std::string_view what, std::string_view text);

/// The options for a file of its own beside others: "run.pcapng" and "mltcp" make "run-mltcp.pcapng".
CaptureOptions with_suffix(CaptureOptions options, std::string_view suffix);

}  // namespace mltcp::capture
