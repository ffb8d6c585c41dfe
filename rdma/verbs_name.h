// The form in which a user writes a port of an RDMA device.
//
//   verbs:mlx5_0        port 1 of device mlx5_0, and the GID that is the host's address
//   verbs:mlx5_0:2      port 2
//   verbs:mlx5_0:1:3    port 1, and the GID with index 3
//   verbs:mlx5_0:1:raw  port 1, for Ethernet frames instead of datagrams
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mltcp::rdma {

struct VerbsName {
  std::string device;
  std::uint8_t port = 1;                    ///< counted from 1, as in verbs
  std::optional<std::uint8_t> gid_index{};  ///< empty selects the GID of the host's address
  bool is_raw = false;                      ///< whether to use Ethernet frames, with raw-packet queue pairs

  bool operator==(const VerbsName&) const = default;
};

/// Returns the user's form without the GID, e.g. "verbs:rxe0" or "verbs:mlx5_0:2".
std::string to_text(const VerbsName& name);

/// Throws InputError with the error in `text` and the right form.
VerbsName parse_verbs_name(std::string_view text);

/// Returns whether `text` is "verbs" or begins with "verbs:". The rest may be invalid.
bool is_verbs_name(std::string_view text);

/// Forms of "verbs:" names, for error messages.
inline constexpr std::string_view kVerbsForms =
    "verbs:DEVICE, verbs:DEVICE:PORT, verbs:DEVICE:PORT:GID, verbs:DEVICE:PORT:raw";

}  // namespace mltcp::rdma
