// `mltcp top` finds running processes here: each has a Unix socket in a folder that only its user can access. A client
// gets one snapshot on connecting; nothing that it sends is read. Only clients of the same user and of root are
// answered, as the kernel reports (SO_PEERCRED).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live {

/// MLTCP_RUN_DIR, or "mltcp" below XDG_RUNTIME_DIR or /run/user/UID, or /tmp/mltcp-UID.
std::string run_folder();

/// The server side of run_folder(): answers until it is destroyed.
class ControlSocket {
 public:
  /// Called by the socket's thread for each client; nothing if there is no snapshot at this time.
  using Look = std::function<std::optional<Snapshot>()>;

  /// Opens "KIND-PID.sock" in run_folder(), which is created if needed. Throws RunError if the folder belongs to
  /// another user, is open to others, or cannot be created.
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

/// The answer of a process.
struct Asked {
  std::string path;
  std::optional<Snapshot> snapshot;  ///< none: it did not answer
  std::string problem;               ///< why not: "cause; cure" in one line
};

/// Asks all processes of this user in parallel, for at most half a second. Removes sockets of processes that have
/// ended. Throws RunError if run_folder() belongs to another user.
std::vector<Asked> ask_all();

}  // namespace mltcp::live
