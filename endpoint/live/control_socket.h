// Control sockets, by which `mltcp top` finds running processes. Each process has a Unix socket in a folder that only
// its user can access. A client gets one snapshot when it connects; the process reads nothing that a client sends. Only
// clients of the same user and of root get an answer. The kernel identifies the client's user (SO_PEERCRED).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live {

/// Returns the folder of the control sockets. This is MLTCP_RUN_DIR if it is set. Otherwise it is "mltcp" below the
/// first of XDG_RUNTIME_DIR and /run/user/UID that exists and belongs to this user. If there is none, it is
/// /tmp/mltcp-UID.
std::string run_folder();

/// Server side of a control socket. Answers clients until it is destroyed.
class ControlSocket {
 public:
  /// Called by the socket's thread for each client. Returns nothing if there is no snapshot at this time.
  using Look = std::function<std::optional<Snapshot>()>;

  /// Opens "KIND-PID.sock" in run_folder(), or "KIND-PID-2.sock" and so on if the name is in use. Creates the folder if
  /// needed. Throws RunError if the folder belongs to another user, is open to others, or cannot be created.
  ControlSocket(const std::string& kind, Look look);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Server;
  std::string path_;
  std::unique_ptr<Server> server_;
};

/// Answer of one process to ask_all().
struct Asked {
  std::string path;
  std::optional<Snapshot> snapshot;  ///< empty if the process did not answer
  std::string problem;               ///< why the process did not answer, as "cause; cure" in one line
};

/// Asks all processes of this user for a snapshot. Queries them in parallel for at most half a second in total. Removes
/// sockets of processes that have ended. Throws RunError if run_folder() belongs to another user.
std::vector<Asked> ask_all();

}  // namespace mltcp::live
