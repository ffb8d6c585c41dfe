// Reader of a software switch's configuration: a TOML file, command-line arguments, or both. All keys with units,
// defaults and ranges: docs/how-to/switch.md. Errors are as for experiment files (experiment_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/lab/fabric/ethernet_switch.h"

namespace mltcp::experiment {

struct SwitchSettings {
  struct Port {
    std::string device;  ///< in the syntax of dpdk::parse_port_name(), not validated here
    /// If no rate is given, it has the maximum rate.
    fabric::SwitchPortConfig config;
    std::uint32_t mtu = 0;  ///< 0: the device's
  };
  std::vector<Port> ports;  ///< 2 or more, with distinct devices
  fabric::MacTableConfig table;
  std::string idle = "pause";  ///< spin, pause or sleep
};

/// The configuration given on a command line.
struct SwitchWords {
  /// Values for all ports, by option: {"rate", "1 Gbps"}, {"ecn", "30kB,60kB,0.5"}. They override those of the file.
  std::vector<std::pair<std::string, std::string>> values;
  /// Additional ports: "af_packet:eth1,rate=1Gbps,ecn=30kB,60kB".
  std::vector<std::string> ports;
};

/// Throws InputError "FILE:LINE: KEY: cause; cure"; for values from the command line, with the option in place of file
/// and line. `path` may be empty: then there is no file.
SwitchSettings load_switch(const std::filesystem::path& path, const SwitchWords& words);
SwitchSettings parse_switch(std::string_view text, const std::string& file, const SwitchWords& words);

}  // namespace mltcp::experiment
