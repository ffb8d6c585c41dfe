// The options of a capture as users write them, for --pcap and MLTCP_PCAP: "FILE[,snap=BYTES][,size=BYTES][,files=N]".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"

namespace mltcp::capture {

struct CaptureOptions {
  std::string file;  ///< path of the file; parse_capture() has replaced %p by the process id
  /// Maximum number of bytes that are recorded of each packet, 64 to 65535. A host counts from the IP header on, a
  /// switch from the Ethernet header on.
  std::uint32_t snap_bytes = 65535;
  Bytes file_bytes = 0;     ///< maximum size of a file, at least 64 kB; 0 if there is no limit
  std::uint32_t files = 1;  ///< maximum number of files, 1 to 10000; above 1, the oldest is deleted when all are full
};

/// Parses the options in `text`. `what` is the name of the option or variable, for error messages. Throws InputError if
/// `text` is invalid.
CaptureOptions parse_capture(std::string_view what, std::string_view text);

/// Returns `options` with a suffix in the file name: "run.pcapng" and "mltcp" make "run-mltcp.pcapng".
CaptureOptions with_suffix(CaptureOptions options, std::string_view suffix);

}  // namespace mltcp::capture
