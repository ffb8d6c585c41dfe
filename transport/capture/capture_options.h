// The options of a capture as users write them, for --pcap and MLTCP_PCAP: "FILE[,snap=BYTES][,size=BYTES][,files=N]".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"

namespace mltcp::capture {

struct CaptureOptions {
  std::string file;  ///< may contain %p for the process id
  /// Maximum bytes kept of each packet, from the IP header on (in a switch, from the Ethernet header on), 64 to 65535.
  std::uint32_t snap_bytes = 65535;
  Bytes file_bytes = 0;     ///< maximum size of a file; 0: no limit, else at least 64 kB
  std::uint32_t files = 1;  ///< number of files, 1 to 10000; if above 1, the oldest is deleted when all have file_bytes
};

/// `what` is the option or variable, for messages. Throws InputError.
CaptureOptions parse_capture(std::string_view what, std::string_view text);

/// The options with a suffix in the file name: "run.pcapng" and "mltcp" make "run-mltcp.pcapng".
CaptureOptions with_suffix(CaptureOptions options, std::string_view suffix);

}  // namespace mltcp::capture
