// The form in which a user writes a port of an RDMA device.
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
  std::optional<std::uint8_t> gid_index{};  ///< empty: the GID of the host's address
  bool is_raw = false;                      ///< Ethernet frames, by raw-packet queue pairs

  bool operator==(const VerbsName&) const = default;
};

/// The user's form, without the GID: "verbs:rxe0", "verbs:mlx5_0:2".
std::string to_text(const VerbsName& name);

/// Throws InputError that describes the error in `text` and the right form.
VerbsName parse_verbs_name(std::string_view text);

/// Whether `text` has the form of such a name, valid or not.
bool is_verbs_name(std::string_view text);

/// The forms of names, for messages.
inline constexpr std::string_view kVerbsForms =
    "verbs:DEVICE, verbs:DEVICE:PORT, verbs:DEVICE:PORT:GID, verbs:DEVICE:PORT:raw";

}  // namespace mltcp::rdma
