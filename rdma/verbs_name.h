// How a user writes a port of an RDMA device.
//
//   verbs:mlx5_0        its first port, and the GID that is the host's address
//   verbs:mlx5_0:2      its second port
//   verbs:mlx5_0:1:3    its first port, and the GID of index 3
//   verbs:mlx5_0:1:raw  its first port, for Ethernet frames instead of datagrams of its own
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mltcp::rdma {

struct VerbsName {
  std::string device;
  std::uint8_t port = 1;                    ///< as verbs count them: from 1
  std::optional<std::uint8_t> gid_index{};  ///< empty: that of the host's address
  bool is_raw = false;                      ///< Ethernet frames, by raw-packet queue pairs

  bool operator==(const VerbsName&) const = default;
};

/// As its user may have written it: "verbs:rxe0", "verbs:mlx5_0:2". Without the GID.
std::string to_text(const VerbsName& name);

/// Throws InputError that says what is wrong with `text` and how to write it.
VerbsName parse_verbs_name(std::string_view text);

/// Whether `text` is written as such a name, be it right or wrong.
bool is_verbs_name(std::string_view text);

/// The forms of names, for messages.
inline constexpr std::string_view kVerbsForms =
    "verbs:DEVICE, verbs:DEVICE:PORT, verbs:DEVICE:PORT:GID, verbs:DEVICE:PORT:raw";

}  // namespace mltcp::rdma
