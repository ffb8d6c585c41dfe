// Control sockets, server side and client side (see control_socket.h). SO_PEERCRED is described in unix(7).
#include "mltcp/endpoint/live/control_socket.h"

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::live {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{4} << 20;
constexpr Nanos kAnswerWithin{500'000'000};
constexpr int kSendWithinMs = 500;
constexpr int kWaiting = 8;
constexpr std::string_view kEnding = ".sock";

class File {
 public:
  explicit File(int file = -1) : file_(file) {}
  ~File() {
    if (file_ >= 0) close(file_);
  }
  File(File&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

/// Returns whether the folder exists. Throws RunError if it belongs to another user or is open to other users.
bool is_own_folder(const std::string& folder) {
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0) return false;
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid())
    throw RunError(fmt::format("{} is not a folder of this user's; remove it, or name another one in MLTCP_RUN_DIR",
                               one_line(folder)));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw RunError(fmt::format("{} is open to other users; run chmod 700 on it, or name another one in MLTCP_RUN_DIR",
                               one_line(folder)));
  return true;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw RunError(fmt::format("{} is too long for a socket; name a shorter folder in MLTCP_RUN_DIR", one_line(path)));
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  return address;
}

bool is_allowed(int file) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

/// Sends the whole text, or the part that the peer accepts within kSendWithinMs.
void send_all(int file, std::string_view text) {
  const Nanos give_up = monotonic_now() + Nanos(std::int64_t{kSendWithinMs} * 1'000'000);
  while (!text.empty()) {
    const ssize_t count = send(file, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) return;
    const std::int64_t left = (give_up - monotonic_now()).count / 1'000'000;
    if (left <= 0) return;
    pollfd ready{.fd = file, .events = POLLOUT, .revents = 0};
    poll(&ready, 1, static_cast<int>(left));
  }
}

}  // namespace

std::string run_folder() {
  if (std::string own = environment("MLTCP_RUN_DIR"); !own.empty()) return own;
  for (const std::string& base : {environment("XDG_RUNTIME_DIR"), fmt::format("/run/user/{}", geteuid())}) {
    struct stat status {};
    if (!base.empty() && stat(base.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid())
      return base + "/mltcp";
  }
  return fmt::format("/tmp/mltcp-{}", geteuid());
}

// ---- The server side ----

struct ControlSocket::Server {
  Look look;
  File listening;
  File stop;
  std::thread thread;

  void run() const {
    for (;;) {
      std::array<pollfd, 2> files{{{.fd = listening.get(), .events = POLLIN, .revents = 0},
                                   {.fd = stop.get(), .events = POLLIN, .revents = 0}}};
      if (poll(files.data(), files.size(), -1) < 0 && errno != EINTR) return;
      if (files[1].revents != 0) return;
      if (files[0].revents == 0) continue;
      const File client(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.get() < 0) {
        // Wait before the next accept(): the process may have too many open files.
        if (errno != EINTR && errno != ECONNABORTED) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
      if (!is_allowed(client.get())) continue;
      if (const auto snapshot = look()) send_all(client.get(), to_json(*snapshot));
    }
  }
};

ControlSocket::ControlSocket(const std::string& kind, Look look) : server_(std::make_unique<Server>()) {
  const std::string folder = run_folder();
  if (!is_own_folder(folder) && mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw RunError(fmt::format("{} cannot be created ({}); name another folder in MLTCP_RUN_DIR", one_line(folder),
                               std::strerror(errno)));
  is_own_folder(folder);
  server_->look = std::move(look);
  server_->listening = File(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  server_->stop = File(eventfd(0, EFD_CLOEXEC));
  if (server_->listening.get() < 0 || server_->stop.get() < 0)
    throw RunError(
        fmt::format("cannot create a socket ({}); raise the limit of open files (ulimit -n)", std::strerror(errno)));
  // Find a free name. Names of processes that have ended are free again.
  for (int number = 1;; ++number) {
    path_ = number == 1 ? fmt::format("{}/{}-{}{}", folder, kind, getpid(), kEnding)
                        : fmt::format("{}/{}-{}-{}{}", folder, kind, getpid(), number, kEnding);
    const sockaddr_un address = address_of(path_);
    const auto* const name = reinterpret_cast<const sockaddr*>(&address);
    if (bind(server_->listening.get(), name, sizeof address) == 0) break;
    if (errno != EADDRINUSE || number == 1000)
      throw RunError(fmt::format("{} cannot be created ({}); name another folder in MLTCP_RUN_DIR", one_line(path_),
                                 std::strerror(errno)));
    const File probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(probe.get(), name, sizeof address) != 0 && errno == ECONNREFUSED && unlink(path_.c_str()) == 0)
      --number;  // an earlier process with the same id left this socket: try the name again
  }
  if (listen(server_->listening.get(), kWaiting) != 0)
    throw RunError(fmt::format("cannot listen on {} ({})", one_line(path_), std::strerror(errno)));
  // Block all signals in the new thread, because they are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    server_->thread = std::thread([server = server_.get()] { server->run(); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    unlink(path_.c_str());
    throw RunError(fmt::format(
        "cannot start a thread for the control socket ({}); raise the limit of processes (ulimit -u)", error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ControlSocket::~ControlSocket() {
  unlink(path_.c_str());
  const std::uint64_t one = 1;
  if (write(server_->stop.get(), &one, sizeof one) == sizeof one) server_->thread.join();
}

// ---- The client side ----

std::vector<Asked> ask_all() {
  const std::string folder = run_folder();
  std::vector<Asked> all;
  if (!is_own_folder(folder)) return all;
  std::vector<std::string> names;
  if (DIR* const entries = opendir(folder.c_str()); entries != nullptr) {
    while (const dirent* const entry = readdir(entries)) {
      const std::string_view name(std::begin(entry->d_name));
      if (name.ends_with(kEnding)) names.emplace_back(name);
    }
    closedir(entries);
  }
  std::sort(names.begin(), names.end());

  struct Answer {
    std::size_t of = 0;
    File file;
    std::string text;
    bool is_open = true;
  };
  std::vector<Answer> answers;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    if (path.size() >= sizeof(sockaddr_un::sun_path)) continue;
    const sockaddr_un address = address_of(path);
    File file(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(file.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      const int error = errno;
      if (error == ECONNREFUSED) {
        unlink(path.c_str());
        continue;
      }
      if (error == ENOENT) continue;  // the process has ended since the folder was read
      all.push_back({path, std::nullopt,
                     error == EAGAIN ? "too many programs query it at once; try again"
                                     : fmt::format("it cannot be queried ({})", std::strerror(error))});
      continue;
    }
    all.push_back({path, std::nullopt, {}});
    answers.push_back({all.size() - 1, std::move(file), {}, true});
  }

  const Nanos give_up = monotonic_now() + kAnswerWithin;
  for (;;) {
    std::vector<pollfd> files;
    std::vector<Answer*> open;
    for (Answer& answer : answers) {
      if (!answer.is_open) continue;
      files.push_back({.fd = answer.file.get(), .events = POLLIN, .revents = 0});
      open.push_back(&answer);
    }
    const std::int64_t left = (give_up - monotonic_now()).count / 1'000'000;
    if (files.empty() || left <= 0) break;
    if (poll(files.data(), files.size(), static_cast<int>(left)) <= 0) continue;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i].revents == 0) continue;
      std::array<char, 65536> block;  // NOLINT(*-member-init): recv() writes into it
      const ssize_t count = recv(open[i]->file.get(), block.data(), block.size(), 0);
      if (count > 0) open[i]->text.append(block.data(), static_cast<std::size_t>(count));
      if ((count < 0 && errno != EAGAIN && errno != EINTR) || count == 0 || open[i]->text.size() > kMaxAnswer)
        open[i]->is_open = false;
    }
  }
  for (Answer& answer : answers) {
    Asked& asked = all[answer.of];
    if (answer.is_open || answer.text.empty()) {
      asked.problem = "it did not answer in time: it hangs, or the machine is busy";
      continue;
    }
    try {
      asked.snapshot = snapshot_from(answer.text);
    } catch (const InputError& error) {
      asked.problem = fmt::format("its answer is {}", error.what());
    }
  }
  return all;
}

}  // namespace mltcp::live
