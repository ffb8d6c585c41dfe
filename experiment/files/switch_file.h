// Reader of what a software switch is: a TOML file, words of a command line, or both. Every key, its unit, default and
// range: docs/switch.md. Errors are as in experiment files (experiment_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/fabric/ethernet_switch.h"

namespace mltcp::experiment {

struct SwitchSettings {
  struct Port {
    std::string device;  ///< as dpdk::parse_port_name() reads it, which has not seen it yet
    /// Without a rate, of the highest there is.
    fabric::SwitchPortConfig config;
    std::uint32_t mtu = 0;  ///< 0: the port's own
  };
  std::vector<Port> ports;  ///< 2 or more, each with a device of its own
  fabric::MacTableConfig table;
  std::string idle = "pause";  ///< spin, pause or sleep
};

/// What a command line says.
struct SwitchWords {
  /// Values for all ports, by the name of the option: {"rate", "1 Gbps"}, {"ecn", "30kB,60kB,0.5"}. They stand for
  /// those of the file.
  std::vector<std::pair<std::string, std::string>> values;
  /// More ports: "af_packet:eth1,rate=1Gbps,ecn=30kB,60kB".
  std::vector<std::string> ports;
};

/// Throws InputError "FILE:LINE: KEY: cause; cure", or with the option in place of file and line. `path` may be empty:
/// the words say it all.
SwitchSettings load_switch(const std::filesystem::path& path, const SwitchWords& words);
SwitchSettings parse_switch(std::string_view text, const std::string& file, const SwitchWords& words);

}  // namespace mltcp::experiment
