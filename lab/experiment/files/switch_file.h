// Reader of the configuration of a software switch: a TOML file, command-line arguments, or both. docs/how-to/switch.md
// lists all keys with units, defaults and ranges. Errors are as for experiment files (experiment_file.h).
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
    std::string device;  ///< name of the device in the syntax of dpdk::parse_port_name(); not validated here
    /// Settings of the port. If no rate is given, the rate is 1 Pbit/s, more than any device has.
    fabric::SwitchPortConfig config;
    std::uint32_t mtu = 0;  ///< maximum IP packet size in bytes; 0 for the device's default
  };
  std::vector<Port> ports;  ///< at least 2 ports; each has a different device
  fabric::MacTableConfig table;
  std::string idle = "pause";  ///< "spin", "pause" or "sleep"
};

/// Configuration given on a command line.
struct SwitchWords {
  /// Values for all ports by option name, such as {"rate", "1 Gbps"} or {"ecn", "30kB,60kB,0.5"}. Override the values
  /// in the file.
  std::vector<std::pair<std::string, std::string>> values;
  /// Additional ports, such as "af_packet:eth1,rate=1Gbps,ecn=30kB,60kB".
  std::vector<std::string> ports;
};

/// Reads a configuration. If `path` is empty, there is no file. Throws InputError "FILE:LINE: KEY: cause; cure"; for
/// values from the command line, the error names the option instead of file and line.
SwitchSettings load_switch(const std::filesystem::path& path, const SwitchWords& words);
SwitchSettings parse_switch(std::string_view text, const std::string& file, const SwitchWords& words);

}  // namespace mltcp::experiment
