// Implements the sockets, limits and workers of the HTTP server (see http_server.h).
//
// libmicrohttpd ends only connections without traffic, and refuses new clients when all connections are in use. So slow
// clients that send a byte now and then could use all connections. Therefore the thread of run() drives the library,
// and shuts down the sockets of slow clients. The library then closes these connections. While a worker computes an
// answer, the connection is suspended in the library.
#include "mltcp/scheduler/service/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <strings.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/transport/address.h"

namespace mltcp::service {
namespace {

using namespace literals;

constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxTokenBytes = 4096;
constexpr int kBacklog = 1024;
constexpr Nanos kLookEvery = 100_ms;         // interval between calls of `ended`
constexpr Nanos kLookForPlansEvery = 10_ms;  // poll interval while clients wait for plans
constexpr Nanos kTickEvery = 1_s;
constexpr std::size_t kReaders = 2;
constexpr std::size_t kShortAnswer = 1U << 16;  // maximum size of an answer that needs no buffer limit

std::string why() { return std::strerror(errno); }

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int opened) : number_(opened) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  [[nodiscard]] int get() const { return number_; }
  void reset() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }

 private:
  int number_ = -1;
};

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof(address.sun_path))
    throw InputError(fmt::format("socket {}: the path has {} bytes; give one of 1 to {}", in_quotes(text), text.size(),
                                 sizeof(address.sun_path) - 1));
  std::copy(text.begin(), text.end(), address.sun_path);
  return address;
}

template <typename Address>
const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT(*-reinterpret-cast): the socket calls need it
}

/// Removes the socket at `path` if no process listens on it. Throws if a process listens.
void remove_stale(const std::filesystem::path& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode))
    throw InputError(fmt::format("{}: this is no socket; give --socket a path of its own", path.string()));
  const Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // EAGAIN means a full backlog, so a process listens.
  if (connect(probe.get(), generic(address), sizeof(address)) == 0 || errno == EAGAIN || errno == EINPROGRESS)
    throw InputError(fmt::format("{}: another service answers there; give --socket a path of its own", path.string()));
  if (errno != ECONNREFUSED)
    throw RunError(fmt::format("{}: the existing socket does not answer ({}); remove it", path.string(), why()));
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    throw RunError(fmt::format("{}: an unused socket can't be removed ({}); remove it", path.string(), why()));
}

/// Threads that run tasks in the order of add(). The destructor waits for running tasks and drops queued ones.
class Workers {
 public:
  using Task = std::function<void()>;
  explicit Workers(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Workers() {
    {
      const std::scoped_lock lock(mutex_);
      open_ = false;
    }
    filled_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void add(Task task) {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    filled_.notify_one();
  }
  [[nodiscard]] std::size_t waiting() {
    const std::scoped_lock lock(mutex_);
    return tasks_.size();
  }

 private:
  void work() {
    for (std::unique_lock lock(mutex_);;) {
      filled_.wait(lock, [&] { return !open_ || !tasks_.empty(); });
      if (!open_) return;
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Task> tasks_;
  bool open_ = true;
  std::vector<std::thread> threads_;
};

}  // namespace

std::string read_token(const std::filesystem::path& path) {
  const std::string name = path.string();
  const auto fail = [&](std::string_view cause, std::string_view cure) {
    throw InputError(fmt::format("{}: {}; {}", name, cause, cure));
  };
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0)
    fail(fmt::format("the token's file can't be opened ({})", why()), "check its path and permissions");
  // Checks the open file, because another process could replace the file at this path.
  struct stat found {};
  if (fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) fail("this is no file", "give the path of a file");
  if (found.st_uid != geteuid() && found.st_uid != 0)
    fail("the token's file belongs to another user", "give one that this user or root owns");
  if ((found.st_mode & 0137U) != 0)
    fail(fmt::format("others may read or change the token, its mode is {:04o}", found.st_mode & 07777U), "chmod 0600");
  std::string text(kMaxTokenBytes + 1, '\0');
  const ssize_t length = read(file.get(), text.data(), text.size());
  if (length < 0) fail(fmt::format("the file can't be read ({})", why()), "check the disk");
  text.resize(static_cast<std::size_t>(length));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < kMinTokenBytes || text.size() > kMaxTokenBytes ||
      std::ranges::any_of(text, [](char c) { return c <= ' ' || c > '~'; }))
    fail("this is no token",
         fmt::format("write one line of {} to {} printable characters, such as openssl rand -hex 32 "
                     "makes",
                     kMinTokenBytes, kMaxTokenBytes));
  return text;
}

class HttpServer::Impl {
 public:
  Impl(Api& api, SchedulerService& service, const HttpOptions& options)
      : api_(api), service_(service), options_(options) {
    if (options_.listen.empty())
      listen_at_path();
    else
      listen_at_port();
  }
  ~Impl() {
    listener_.reset();
    if (options_.listen.empty()) remove_own_socket();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }

  void run(const std::function<bool()>& ended, const std::function<void(Nanos)>& tick) {
    const Library library(*this);  // outlives the workers, which use the library
    Workers changes(1);
    Workers reads(kReaders);
    changes_ = &changes;
    reads_ = &reads;
    std::atomic<bool> tick_waits = false;
    Nanos next_tick = monotonic_now();
    Nanos give_up = Nanos::never();
    for (;;) {
      const Nanos now = monotonic_now();
      if (give_up.is_never() && ended()) {
        give_up = now + options_.request_time;
        end();
      }
      if (!give_up.is_never() && (clients_.empty() || now >= give_up)) return;
      if (tick && now >= next_tick && !tick_waits.exchange(true)) {
        changes.add([&] {
          tick(monotonic_now());
          tick_waits = false;
        });
        next_tick = now + kTickEvery;
      }
      end_overdue(now);
      if (const std::uint64_t revision = service_.revision(); std::exchange(seen_, revision) != revision) ask_parked();
      wait_for_events(now);
      // MHD_run() reads from all clients that were accepted before this call.
      const std::uint64_t read = last_serial_;
      const std::size_t count = clients_.size();
      MHD_run(daemon_);
      make_room(read);
      hurry_ = last_serial_ != read || clients_.size() != count;
    }
  }

 private:
  struct Client {
    enum class State : std::uint8_t {
      sending,   ///< the client sends its request
      working,   ///< a worker computes the answer
      parked,    ///< the client waits for a newer plan
      answered,  ///< the library sends the answer
      gone,      ///< the library will close the connection
    };
    std::uint64_t serial = 0;
    MHD_Connection* connection = nullptr;
    int socket = -1;
    State state = State::sending;
    Nanos deadline;
    bool has_header = false;
    std::string target;
    ApiRequest request;
    std::size_t held = 0;  ///< bytes of the request body that count towards max_buffered_bytes
    std::optional<ApiAnswer> answer;
    std::size_t untaken = 0;  ///< bytes of the answer that count towards max_buffered_bytes
  };
  using State = Client::State;

  /// Starts the library in the constructor and stops it in the destructor.
  class Library {
   public:
    explicit Library(Impl& server) : server_(server) {
      server_.daemon_ = MHD_start_daemon(
          MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, &Impl::on_request, &server_,
          MHD_OPTION_LISTEN_SOCKET, server_.listener_.get(), MHD_OPTION_NOTIFY_CONNECTION, &Impl::on_connection,
          &server_, MHD_OPTION_URI_LOG_CALLBACK, &Impl::on_target, &server_, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
          // Parsed headers take memory in addition to the header itself.
          2 * server_.options_.max_header_bytes, MHD_OPTION_CONNECTION_LIMIT,
          // One connection more than the limit, for a new client that replaces another client.
          static_cast<unsigned>(server_.options_.connections + 1), MHD_OPTION_END);
      if (server_.daemon_ == nullptr)
        throw RunError("libmicrohttpd can't start; raise the limit of open files (ulimit -n)");
    }
    ~Library() {
      for (auto& [serial, client] : server_.clients_)
        if (client.state == State::working || client.state == State::parked) MHD_resume_connection(client.connection);
      server_.stop_listening();
      MHD_stop_daemon(server_.daemon_);
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

   private:
    Impl& server_;
  };

  // ---- Listening ----

  void listen_at_path() {
    const std::filesystem::path& path = options_.socket;
    const sockaddr_un address = address_of(path);
    refuse_planted_links(path);
    if (const std::filesystem::path folder = path.parent_path(); !folder.empty()) {
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      if (error)
        throw RunError(fmt::format("{}: the folder can't be made ({}); make it, or give --socket another path",
                                   folder.string(), error.message()));
    }
    remove_stale(path, address);
    listener_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // The mode is set before bind(), so that others cannot access the socket even for a moment.
    const mode_t before = umask(0117);
    const int bound = bind(listener_.get(), generic(address), sizeof(address));
    const int error = errno;
    umask(before);
    errno = error;
    struct stat own {};
    if (listener_.get() < 0 || bound != 0 || listen(listener_.get(), kBacklog) != 0 || lstat(path.c_str(), &own) != 0)
      throw RunError(
          fmt::format("{}: the socket can't be made ({}); give --socket another path", path.string(), why()));
    device_ = own.st_dev;
    inode_ = own.st_ino;
    address_ = path.string();
  }
  /// Removes the socket of this server. If another process has replaced the socket, does nothing.
  void remove_own_socket() const {
    struct stat found {};
    if (lstat(options_.socket.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_)
      unlink(options_.socket.c_str());
  }

  void listen_at_port() {
    const std::string& text = options_.listen;
    const auto refuse = [&](std::string_view cause) {
      throw InputError(
          fmt::format("--listen {}: {}; give a loopback address and a port, such as 127.0.0.1:8470 or "
                      "[::1]:8470",
                      one_line(text), cause));
    };
    Address address;
    try {
      address = Address::parse(text);
      if (Address::parse(text, 1) != address) refuse("there is no port");
    } catch (const InputError& wrong) {
      refuse(wrong.what());
    }
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(address.port);
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(address.port);
    std::memcpy(&six.sin6_addr, address.ip.data(), address.ip.size());
    constexpr std::uint32_t kLoopbackNet = 127;
    if (address.is_v4()) four.sin_addr.s_addr = htonl(address.v4_ip());
    if (address.is_v4() ? address.v4_ip() >> 24U != kLoopbackNet
                        : std::memcmp(&six.sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)) != 0)
      refuse("the service is for this machine alone, as it has no encryption");
    if (options_.token.size() < kMinTokenBytes)
      throw InputError(fmt::format("--listen {}: every user of the machine could change its jobs; add --token-file",
                                   one_line(text)));
    listener_ = Descriptor(socket(address.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    const int bound = address.is_v4() ? bind(listener_.get(), generic(four), sizeof(four))
                                      : bind(listener_.get(), generic(six), sizeof(six));
    if (listener_.get() < 0 || bound != 0 || listen(listener_.get(), kBacklog) != 0)
      throw RunError(
          fmt::format("--listen {}: the port can't be opened ({}); give another one", one_line(text), why()));
    socklen_t size = sizeof(six);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&six), &size);  // NOLINT(*-reinterpret-cast)
    // sin_port of an IPv4 address has the same offset as sin6_port.
    address.port = ntohs(six.sin6_port);
    address_ = to_text(address);
  }

  // ---- The loop ----

  void wait_for_events(Nanos now) {
    polled_.assign(1, {MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, POLLIN, 0});
    parked_.clear();
    Nanos next = now + kLookEvery;
    for (auto& [serial, client] : clients_) {
      next = std::min(next, client.deadline);
      if (client.state != State::parked) continue;
      next = std::min(next, now + kLookForPlansEvery);
      parked_.push_back(&client);
      polled_.push_back({client.socket, POLLRDHUP, 0});
    }
    auto milliseconds = std::max<std::int64_t>(0, (next - now).count / 1'000'000 + 1);
    MHD_UNSIGNED_LONG_LONG library_ms = 0;
    if (MHD_get_timeout(daemon_, &library_ms) == MHD_YES)
      milliseconds = std::min(milliseconds, static_cast<std::int64_t>(library_ms));
    if (poll(polled_.data(), polled_.size(), hurry_ ? 0 : static_cast<int>(milliseconds)) <= 0) return;
    for (std::size_t i = 0; i < parked_.size(); ++i) {
      if (polled_[i + 1].revents == 0) continue;
      parked_[i]->state = State::gone;
      MHD_resume_connection(parked_[i]->connection);
    }
  }

  /// Begins the shutdown of the server. Accepts no more clients, and sends the current plan to clients that wait for a
  /// plan. Clients that are sending a request body may finish.
  void end() {
    ending_ = true;
    stop_listening();
    for (auto& [serial, client] : clients_) {
      if (client.state == State::parked) ask(client, false);
      if (client.state == State::sending && !client.has_header) shut(client);
    }
  }
  void stop_listening() {
    if (listener_.get() < 0) return;
    MHD_quiesce_daemon(daemon_);
    listener_.reset();
  }

  void end_overdue(Nanos now) {
    for (auto& [serial, client] : clients_) {
      if (client.deadline > now) continue;
      if (client.state == State::parked)
        ask(client, false);
      else if (client.state == State::sending)
        refuse(client, 408, "the request took too long to arrive; send it without pauses");
      else
        shut(client);
    }
  }

  /// If too many connections are open, closes the client that has been sending its request for longest. If no client
  /// sends a request, closes the client that has been receiving its answer for longest. Does not close clients with a
  /// serial number above `read`, because they had no time to send. If no client can be closed, new clients wait.
  void make_room(std::uint64_t read) {
    std::size_t open = 0;
    Client* sends = nullptr;
    Client* takes = nullptr;
    for (auto& [serial, client] : clients_) {
      if (client.state == State::gone) continue;
      ++open;
      if (serial > read) continue;
      if (sends == nullptr && client.state == State::sending) sends = &client;
      if (takes == nullptr && client.state == State::answered) takes = &client;
    }
    if (open <= options_.connections) return;
    if (Client* const leaves = sends != nullptr ? sends : takes; leaves != nullptr) shut(*leaves);
  }

  static void shut(Client& client) {
    client.state = State::gone;
    client.deadline = Nanos::never();
    shutdown(client.socket, SHUT_RDWR);
  }
  /// Sends an error answer and closes the client. The library cannot send this answer, because it waits for the rest of
  /// the request.
  static void refuse(Client& client, unsigned status, std::string_view message) {
    const std::string body = Api::error_body(message);
    const std::string text = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
        MHD_get_reason_phrase_for(status), body.size(), body);
    static_cast<void>(!send(client.socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    shut(client);
  }

  // ---- Clients that wait for plans ----

  [[nodiscard]] bool is_news(const ApiAnswer::Wait& wait) const {
    try {
      return service_.plan(wait.job).revision > wait.after;
    } catch (const NotFound&) {
      return true;  // ends the wait, so that the client gets the error
    }
  }
  void ask_parked() {
    for (auto& [serial, client] : clients_)
      if (client.state == State::parked && is_news(*client.answer->wait)) ask(client, false);
  }
  void park(Client& client) {
    client.state = State::parked;
    client.deadline = monotonic_now() + client.answer->wait->timeout;
    // Waiting clients may use half of the connections. If there are more, the client that has waited for longest gets
    // the current plan.
    const auto is_parked = [](const auto& entry) { return entry.second.state == State::parked; };
    const auto parked = std::ranges::count_if(clients_, is_parked);
    if (static_cast<std::size_t>(parked) > std::max<std::size_t>(1, options_.connections / 2))
      ask(std::ranges::find_if(clients_, is_parked)->second, false);
  }

  // ---- Requests ----

  /// Passes the request of a suspended client to a worker.
  void ask(Client& client, bool may_wait) {
    client.state = State::working;
    client.deadline = Nanos::never();
    const bool reads = client.request.method == "GET";
    // The reference to `client` stays valid, because the library does not close a suspended connection.
    (reads ? reads_ : changes_)->add([this, &client, may_wait] {
      client.answer = api_.answer(client.request, monotonic_now(), may_wait);
      MHD_resume_connection(client.connection);
    });
  }

  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code) noexcept {
    Impl& server = *static_cast<Impl*>(self);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      const std::uint64_t serial = ++server.last_serial_;
      Client& client = server.clients_[serial];
      client.serial = serial;
      client.connection = connection;
      client.socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
      client.deadline = monotonic_now() + server.options_.request_time;
      *context = &client;
    } else {
      Client& client = *static_cast<Client*>(*context);
      server.buffered_ -= client.held;
      server.untaken_ -= client.untaken;
      server.clients_.erase(client.serial);
    }
  }
  static Client& client_of(MHD_Connection* connection) {
    return *static_cast<Client*>(
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
  }
  /// Stores the target as the client sent it, because the library would decode an encoded '/'.
  static void* on_target(void* /*self*/, const char* target, MHD_Connection* connection) noexcept {
    client_of(connection).target = target;
    return nullptr;
  }
  /// The library calls this function after the header, for each part of the body, at the end of the request, and after
  /// the connection is resumed.
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* /*path*/, const char* method,
                               const char* /*version*/, const char* part, std::size_t* size,
                               void** /*context*/) noexcept {
    return static_cast<Impl*>(self)->handle(client_of(connection), method, part, *size);
  }
  MHD_Result handle(Client& client, const char* method, const char* part, std::size_t& size) {
    if (client.state == State::gone) return MHD_NO;
    if (!client.has_header) {
      client.has_header = true;
      client.request.method = method;
      client.answer = refusal(client.connection);
      return client.answer ? answer(client) : MHD_YES;
    }
    if (size > 0) {
      buffered_ += size;
      client.held += size;
      if (buffered_ > options_.max_buffered_bytes) {
        refuse(client, 503, "too many bytes of requests are under way; try again later");
        return MHD_NO;
      }
      client.request.body.append(part, size);
      size = 0;
      return MHD_YES;
    }
    if (client.state == State::sending) {
      client.request = request_of(client.request.method, client.target, std::move(client.request.body));
      if (client.request.method != "GET" && changes_->waiting() >= options_.max_waiting_changes) {
        client.answer = error(503, "too many requests wait; try again later");
        return answer(client);
      }
      MHD_suspend_connection(client.connection);
      ask(client, !ending_);
      return MHD_YES;
    }
    if (!client.answer->wait || ending_) return answer(client);
    // The check below finds earlier changes of the plan. run() finds later changes.
    MHD_suspend_connection(client.connection);
    if (is_news(*client.answer->wait))
      ask(client, false);
    else
      park(client);
    return MHD_YES;
  }

  static ApiAnswer error(int status, std::string_view message) { return {status, Api::error_body(message), {}}; }

  /// Returns an error answer if the request is refused because of its header. Returns no value if the request is
  /// accepted.
  [[nodiscard]] std::optional<ApiAnswer> refusal(MHD_Connection* connection) const {
    const auto header = [&](const char* name) {
      const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
      return std::string_view(value == nullptr ? "" : value);
    };
    if (MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size >
        options_.max_header_bytes)
      return error(431, fmt::format("the header has more than {} bytes; send less", options_.max_header_bytes));
    if (!options_.listen.empty() && !is_authorised(connection, header(MHD_HTTP_HEADER_AUTHORIZATION)))
      return error(401, "the token is missing or wrong; send Authorization: Bearer TOKEN");
    if (!header(MHD_HTTP_HEADER_TRANSFER_ENCODING).empty())
      return error(501, "transfer codings are not supported; send Content-Length");
    if (!header(MHD_HTTP_HEADER_CONTENT_ENCODING).empty())
      return error(415, "content codings are not supported; send the body as it is");
    const std::string_view length = header(MHD_HTTP_HEADER_CONTENT_LENGTH);
    std::size_t size = 0;
    const auto [end, wrong] = std::from_chars(length.data(), length.data() + length.size(), size);
    if (!length.empty() && (wrong != std::errc() || size > kMaxBodyBytes))
      return error(
          413, fmt::format("the body has {} bytes; send at most {}", one_line(length.substr(0, 20)), kMaxBodyBytes));
    return std::nullopt;
  }
  [[nodiscard]] bool is_authorised(MHD_Connection* connection, std::string_view header) const {
    // The time of the comparison depends only on the length, so that it does not reveal the token.
    const auto is_token = [&](std::string_view shown) {
      return shown.size() == options_.token.size() &&
             CRYPTO_memcmp(shown.data(), options_.token.data(), shown.size()) == 0;
    };
    // The name of the authentication scheme is case-insensitive (RFC 9110, section 11.1).
    constexpr std::string_view kBearer = "Bearer ";
    if (header.size() > kBearer.size() && strncasecmp(header.data(), kBearer.data(), kBearer.size()) == 0)
      return is_token(header.substr(kBearer.size()));
    // The token may also be the password of user mltcp (RFC 7617), for clients that can send it only in a URL.
    char* word = nullptr;
    using Text = std::unique_ptr<char, decltype(&MHD_free)>;
    const Text user(MHD_basic_auth_get_username_password(connection, &word), &MHD_free);
    const Text password(word, &MHD_free);
    return user && password && std::string_view(user.get()) == "mltcp" && is_token(password.get());
  }

  MHD_Result answer(Client& client) {
    // Limits memory for clients that request long lists and do not receive them.
    if (client.request.method == "GET" && client.answer->body.size() > kShortAnswer && untaken_ > 0 &&
        untaken_ + client.answer->body.size() > options_.max_buffered_bytes)
      client.answer = error(503, "too many bytes of answers are under way; try again later");
    buffered_ -= std::exchange(client.held, 0);
    client.request = {};
    client.state = State::answered;
    client.deadline = monotonic_now() + options_.request_time;
    std::string& body = client.answer->body;
    untaken_ += client.untaken = body.size();
    // The body stays valid until the connection is closed.
    MHD_Response* const response = MHD_create_response_from_buffer(body.size(), body.data(), MHD_RESPMEM_PERSISTENT);
    if (response == nullptr) return MHD_NO;
    const auto add = [&](const char* name, const char* value) { MHD_add_response_header(response, name, value); };
    add(MHD_HTTP_HEADER_CONTENT_TYPE, client.answer->type);
    add(MHD_HTTP_HEADER_CONNECTION, "close");
    if (client.answer->status == 401) add(MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (client.answer->status == 503) add(MHD_HTTP_HEADER_RETRY_AFTER, "1");
    const MHD_Result result =
        MHD_queue_response(client.connection, static_cast<unsigned>(client.answer->status), response);
    MHD_destroy_response(response);
    return result;
  }

  Api& api_;
  SchedulerService& service_;
  const HttpOptions options_;
  Descriptor listener_;
  std::string address_;
  dev_t device_ = 0;
  ino_t inode_ = 0;

  // Only the thread of run() uses these members, except the request and answer of a client in state `working`.
  MHD_Daemon* daemon_ = nullptr;
  Workers* changes_ = nullptr;
  Workers* reads_ = nullptr;
  std::map<std::uint64_t, Client> clients_;  ///< by serial number, so the oldest client is first
  std::uint64_t last_serial_ = 0;
  std::size_t buffered_ = 0;  ///< sum of Client::held
  std::size_t untaken_ = 0;   ///< sum of Client::untaken
  std::uint64_t seen_ = 0;    ///< revision at the last check of parked clients
  bool hurry_ = false;        ///< the library may have more work than its descriptor reports
  bool ending_ = false;
  std::vector<pollfd> polled_;
  std::vector<Client*> parked_;  ///< clients of the entries of polled_ after the first one
};

HttpServer::HttpServer(Api& api, SchedulerService& service, const HttpOptions& options)
    : impl_(std::make_unique<Impl>(api, service, options)) {}
HttpServer::~HttpServer() = default;
const std::string& HttpServer::address() const { return impl_->address(); }
void HttpServer::run(const std::function<bool()>& ended, const std::function<void(Nanos)>& tick) {
  impl_->run(ended, tick);
}

}  // namespace mltcp::service
