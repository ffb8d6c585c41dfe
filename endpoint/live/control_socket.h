// Where `mltcp top` finds what runs: a Unix socket for each process in a folder that is its user's alone. Who connects
// gets one snapshot and nothing else, so that nothing it says has to be understood. The kernel says whose process is at
// the other end (SO_PEERCRED): only the same user's, and root's, get an answer.
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

/// The other end of run_folder(): answers until it is destroyed.
class ControlSocket {
 public:
  /// Called by its thread, for each that connects; nothing if there is no snapshot just now.
  using Look = std::function<std::optional<Snapshot>()>;

  /// "KIND-PID.sock" in run_folder(), which is made if it isn't there. Throws RunError: the folder is somebody else's,
  /// or open to others, or can't be made.
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

/// A process that was asked.
struct Asked {
  std::string path;
  std::optional<Snapshot> snapshot;  ///< none: it did not answer
  std::string problem;               ///< why not: "cause; cure" in one line
};

/// Asks every process of this user, side by side, for half a second at most. Sockets of processes that are gone are
/// removed. Throws RunError if run_folder() is somebody else's.
std::vector<Asked> ask_all();

}  // namespace mltcp::live
