// Sockets and workers of the service's HTTP (see http_server.h).
#include "mltcp/scheduler/service/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/scheduler/service/internal/http_request.h"

namespace mltcp::service {
namespace {

using namespace literals;

constexpr std::size_t least_token = 16;
constexpr std::size_t most_token = 4096;
constexpr int backlog = 1024;
constexpr Nanos look_every = 100_ms;      // whether it is to end
constexpr Nanos tick_every = 1_s;         //
constexpr std::size_t most_refused = 64;  // connections beyond the most, while they are told so
constexpr Nanos linger = 1_s;             // for a client that sends on, so that it reads why it was refused
constexpr std::size_t readers = 2;
constexpr std::uint64_t tick_serial = 0;  // of no connection
constexpr std::size_t most_read_at_once = 1U << 16;
constexpr std::size_t short_answer = 1U << 16;  // is given whatever other clients leave untaken

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
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT(*-reinterpret-cast): as the system's calls want it
}

/// One at which nobody listens any more is removed.
void remove_stale(const std::filesystem::path& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode))
    throw InputError(fmt::format("{}: this is no socket; give --socket a path of its own", path.string()));
  const Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A full backlog answers EAGAIN: somebody is there.
  if (connect(probe.get(), generic(address), sizeof(address)) == 0 || errno == EAGAIN || errno == EINPROGRESS)
    throw InputError(fmt::format("{}: another service answers there; give --socket a path of its own", path.string()));
  if (errno != ECONNREFUSED)
    throw RunError(fmt::format("{}: a socket is there that can't be asked ({}); remove it", path.string(), why()));
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    throw RunError(fmt::format("{}: a socket that nobody uses can't be removed ({}); remove it", path.string(), why()));
}

}  // namespace

std::string read_token(const std::filesystem::path& path) {
  const std::string name = path.string();
  const auto fail = [&](std::string_view cause, std::string_view cure) {
    throw InputError(fmt::format("{}: {}; {}", name, cause, cure));
  };
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0)
    fail(fmt::format("the token's file can't be opened ({})", why()), "check its path and permissions");
  // Asked of what was opened, and not of its name, which may come to mean another file.
  struct stat found {};
  if (fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) fail("this is no file", "give the path of a file");
  if (found.st_uid != geteuid() && found.st_uid != 0)
    fail("the token's file belongs to another user", "give one that this user or root owns");
  if ((found.st_mode & 0137U) != 0)
    fail(fmt::format("others may read or change the token, its mode is {:04o}", found.st_mode & 07777U), "chmod 0600");
  std::string text(most_token + 1, '\0');
  const ssize_t length = read(file.get(), text.data(), text.size());
  if (length < 0) fail(fmt::format("the file can't be read ({})", why()), "check the disk");
  text.resize(static_cast<std::size_t>(length));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < least_token || text.size() > most_token ||
      std::any_of(text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~'; }))
    fail("this is no token",
         fmt::format("write one line of {} to {} printable characters, such as openssl rand -hex 32 "
                     "makes",
                     least_token, most_token));
  return text;
}

class HttpServer::Impl {
 public:
  Impl(Api& api, SchedulerService& service, const HttpOptions& options)
      : api_(api), service_(service), options_(options), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_.get() < 0) throw RunError(fmt::format("no event descriptor ({}); raise the limit of open files", why()));
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
    tick_ = tick;
    Workers workers(*this);
    Nanos next_tick = monotonic_now();
    Nanos give_up = Nanos::never();
    for (;;) {
      const Nanos now = monotonic_now();
      if (give_up.is_never() && ended()) {
        // Nobody new; who waits for a plan gets it as it is; who is in the middle of a request may finish it.
        give_up = now + options_.request_time;
        listener_.reset();
        service_.end_waits();
        for (auto& [serial, connection] : connections_)
          if (connection.state == Connection::State::parked) ask_again(serial, connection);
        close_idle();
      }
      if (!give_up.is_never() && (connections_.empty() || now >= give_up)) break;
      if (tick && now >= next_tick && !tick_waits_.exchange(true)) {
        changes_.add({tick_serial, {}, false});
        next_tick = now + tick_every;
      }
      wait_for_events(now);
    }
    connections_.clear();
  }

 private:
  struct Connection {
    enum class State : std::uint8_t {
      reading,
      working,  ///< a worker has it
      parked,   ///< it waits for a plan
      writing,
      draining,  ///< what the client still sends is thrown away
    };
    explicit Connection(const RequestLimits& limits) : request(limits) {}
    Descriptor socket;
    State state = State::reading;
    IncomingRequest request;
    std::size_t counted = 0;  ///< of most_buffered_bytes: the request
    bool reads = false;       ///< the request changes nothing: it may be asked again
    std::string stripped;
    ApiAnswer::Wait wait;
    std::string out;
    std::size_t written = 0;
    std::size_t untaken = 0;  ///< of most_buffered_bytes: the answer
    Nanos deadline;
    bool refused = false;  ///< beyond options_.connections: it is told so, and takes no place
  };
  struct Task {
    std::uint64_t serial = 0;
    std::string request;
    bool may_wait = false;
  };
  struct Done {
    std::uint64_t serial = 0;
    Responder::Response response;
  };

  /// Queues of requests, and the threads that answer them. The destructor finishes what is being answered.
  class Workers {
   public:
    explicit Workers(Impl& server) : server_(server) {
      server_.changes_.open();
      server_.reads_.open();
      threads_.emplace_back([this] { work(server_.changes_); });
      for (std::size_t i = 0; i < readers; ++i) threads_.emplace_back([this] { work(server_.reads_); });
      watcher_ = std::thread([this] { watch(); });
    }
    ~Workers() {
      server_.changes_.close();
      server_.reads_.close();
      for (std::thread& thread : threads_) thread.join();
      over_ = true;
      server_.service_.end_waits();
      watcher_.join();
    }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

   private:
    void work(auto& queue) {
      Responder responder(server_.api_);
      while (const std::optional<Task> task = queue.next()) {
        if (task->serial == tick_serial) {
          server_.tick_(monotonic_now());
          server_.tick_waits_ = false;
          continue;
        }
        Responder::Response response;
        try {
          response = responder.respond(task->request, monotonic_now(), task->may_wait);
        } catch (const std::exception& error) {
          // Out of memory, for all that is known.
          response.text = response_text(503, Api::error_body(fmt::format("{}; try again later", error.what())));
        }
        server_.finish({task->serial, std::move(response)});
      }
    }
    /// Tells the loop that plans have changed.
    void watch() {
      std::uint64_t seen = server_.service_.revision();
      while (!over_) {
        const std::uint64_t now = server_.service_.wait_for(seen, tick_every);
        if (now != seen) {
          server_.plans_changed_ = true;
          server_.wake();
        } else if (!over_) {
          // After end_waits() there is no waiting.
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        seen = now;
      }
    }
    Impl& server_;
    std::vector<std::thread> threads_;
    std::thread watcher_;
    std::atomic<bool> over_ = false;
  };

  class Queue {
   public:
    void open() { open_ = true; }
    void close() {
      const std::scoped_lock lock(mutex_);
      open_ = false;
      filled_.notify_all();
    }
    void add(Task task) {
      const std::scoped_lock lock(mutex_);
      tasks_.push_back(std::move(task));
      filled_.notify_one();
    }
    std::size_t size() {
      const std::scoped_lock lock(mutex_);
      return tasks_.size();
    }
    /// The next one, as soon as there is one; none when the queue is closed.
    std::optional<Task> next() {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, [&] { return !open_ || !tasks_.empty(); });
      if (!open_) return std::nullopt;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      return task;
    }

   private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<Task> tasks_;
    bool open_ = true;
  };

  // ---- listening ----

  void listen_at_path() {
    const std::filesystem::path& path = options_.socket;
    const sockaddr_un address = address_of(path);
    static_cast<void>(output_target(path));
    if (const std::filesystem::path folder = path.parent_path(); !folder.empty()) {
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      if (error)
        throw RunError(fmt::format("{}: the folder can't be made ({}); make it, or give --socket another path",
                                   folder.string(), error.message()));
    }
    remove_stale(path, address);
    listener_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // From its first moment on it is for its owner and group alone.
    const mode_t before = umask(0117);
    const int bound = bind(listener_.get(), generic(address), sizeof(address));
    const int error = errno;
    umask(before);
    errno = error;
    struct stat own {};
    if (listener_.get() < 0 || bound != 0 || listen(listener_.get(), backlog) != 0 || lstat(path.c_str(), &own) != 0)
      throw RunError(
          fmt::format("{}: the socket can't be made ({}); give --socket another path", path.string(), why()));
    device_ = own.st_dev;
    inode_ = own.st_ino;
    address_ = path.string();
  }
  /// Unless somebody else has put one there.
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
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) refuse("there is no port");
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (colon + 1 == text.size() || error != std::errc() || rest != end) refuse("the port is no number up to 65535");
    std::string host = text.substr(0, colon);
    const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (brackets) host = host.substr(1, host.size() - 2);
    sockaddr_in six_or_four{};
    sockaddr_in6 six{};
    six_or_four.sin_family = AF_INET;
    six_or_four.sin_port = htons(port);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    const bool is_four = !brackets && inet_pton(AF_INET, host.c_str(), &six_or_four.sin_addr) == 1;
    if (!is_four && (!brackets || inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) != 1)) refuse("this is no address");
    constexpr std::uint32_t loopback_net = 127;
    if (is_four ? ntohl(six_or_four.sin_addr.s_addr) >> 24U != loopback_net
                : std::memcmp(&six.sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)) != 0)
      refuse("the service is for this machine alone, as it has no encryption");
    if (options_.token.size() < least_token)
      throw InputError(fmt::format(
          "--listen {}: every user of the machine could change its jobs; give --token-file, too", one_line(text)));
    listener_ = Descriptor(socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    const int bound = is_four ? bind(listener_.get(), generic(six_or_four), sizeof(six_or_four))
                              : bind(listener_.get(), generic(six), sizeof(six));
    if (listener_.get() < 0 || bound != 0 || listen(listener_.get(), backlog) != 0)
      throw RunError(
          fmt::format("--listen {}: the port can't be opened ({}); give another one", one_line(text), why()));
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &size);  // NOLINT(*-reinterpret-cast)
    // Both families have the port at the same place.
    std::memcpy(&six_or_four, &own, sizeof(six_or_four));
    address_ = fmt::format("{}:{}", text.substr(0, colon), ntohs(six_or_four.sin_port));
  }

  // ---- the loop ----

  void wake() const {
    const std::uint64_t one = 1;
    // A counter that is full wakes, too.
    static_cast<void>(!write(wake_.get(), &one, sizeof(one)));
  }
  void finish(Done done) {
    const std::scoped_lock lock(done_mutex_);
    done_.push_back(std::move(done));
    wake();
  }

  void wait_for_events(Nanos now) {
    polled_.clear();
    serials_.clear();
    const auto poll_for = [&](int file, short events, std::uint64_t serial) {
      polled_.push_back({file, events, 0});
      serials_.push_back(serial);
    };
    poll_for(wake_.get(), POLLIN, 0);
    if (listener_.get() >= 0 && now >= accept_again_) poll_for(listener_.get(), POLLIN, 0);
    Nanos next = now + look_every;
    for (const auto& [serial, connection] : connections_) {
      next = std::min(next, connection.deadline);
      switch (connection.state) {
        case Connection::State::reading:
        case Connection::State::draining:
          poll_for(connection.socket.get(), POLLIN, serial);
          break;
        case Connection::State::writing:
          poll_for(connection.socket.get(), POLLOUT, serial);
          break;
        case Connection::State::parked:
          poll_for(connection.socket.get(), POLLRDHUP, serial);
          break;
        case Connection::State::working:
          break;  // its answer is computed, whether somebody waits for it or not
      }
    }
    const auto milliseconds = std::max<std::int64_t>(0, (next - now).count / 1'000'000 + 1);
    if (poll(polled_.data(), polled_.size(), static_cast<int>(milliseconds)) < 0 && errno != EINTR)
      throw RunError(fmt::format("the sockets can't be waited for ({})", why()));
    const Nanos then = monotonic_now();
    if (polled_[0].revents != 0) {
      std::uint64_t count = 0;
      static_cast<void>(!read(wake_.get(), &count, sizeof(count)));
    }
    take_answers(then);
    if (plans_changed_.exchange(false)) ask_parked();
    // What clients have sent is read before room is made for new ones.
    bool somebody_comes = false;
    for (std::size_t i = 1; i < polled_.size(); ++i) {
      if (polled_[i].revents == 0) continue;
      if (serials_[i] == 0) {
        somebody_comes = true;
        continue;
      }
      if (const auto found = connections_.find(serials_[i]); found != connections_.end())
        handle(found->first, found->second, polled_[i].revents, then);
    }
    if (somebody_comes) accept_all(then);
    end_overdue(then);
  }

  void accept_all(Nanos now) {
    constexpr int most_at_once = 64;
    const std::uint64_t fresh_from = last_serial_ + 1;
    for (int i = 0; i < most_at_once; ++i) {
      const bool taken_all = connections_.size() >= options_.connections && taken() >= options_.connections;
      const auto leaves = taken_all ? first_to_leave(fresh_from) : connections_.end();
      const bool full = taken_all && leaves == connections_.end();
      // Who comes waits in the listener's queue for what this round has accepted to be read, or for an answer.
      if (full && last_serial_ >= fresh_from) return;
      if (full && answers_soon()) {
        accept_again_ = now + look_every;
        return;
      }
      Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.get() < 0) {
        // Out of descriptors or memory: what is there has to end first.
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) accept_again_ = now + look_every;
        return;
      }
      if (full && connections_.size() >= options_.connections + most_refused) continue;
      if (leaves != connections_.end()) remove(leaves->first);
      const auto [place, fresh] = connections_.try_emplace(
          ++last_serial_, Connection(RequestLimits{options_.most_header_bytes, kMostBodyBytes}));
      place->second.socket = std::move(socket);
      place->second.deadline = now + options_.request_time;
      if (!full) continue;
      place->second.refused = true;
      answer_error(last_serial_, place->second, 503, "all connections are in use; try again later", now);
    }
  }
  [[nodiscard]] std::size_t taken() const {
    return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                  [](const auto& entry) { return !entry.second.refused; }));
  }
  /// Whether one of those that take the places has an answer soon, as it changes nothing.
  [[nodiscard]] bool answers_soon() const {
    return std::any_of(connections_.begin(), connections_.end(), [](const auto& entry) {
      return !entry.second.refused && entry.second.state == Connection::State::working && entry.second.reads;
    });
  }
  /// Which one makes room for a new one: one that has its answer, or else the one that has been sending for longest,
  /// but none of those from `fresh_from` on, which had no time to send.
  [[nodiscard]] std::map<std::uint64_t, Connection>::iterator first_to_leave(std::uint64_t fresh_from) {
    const auto oldest = [&](Connection::State state) {
      return std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
        return !entry.second.refused && entry.first < fresh_from && entry.second.state == state;
      });
    };
    const auto answered = oldest(Connection::State::draining);
    return answered != connections_.end() ? answered : oldest(Connection::State::reading);
  }
  void remove(std::uint64_t serial) {
    const auto found = connections_.find(serial);
    buffered_ -= found->second.counted;
    untaken_ -= found->second.untaken;
    connections_.erase(found);
  }
  void close_idle() {
    std::erase_if(connections_, [](const auto& entry) {
      return entry.second.state == Connection::State::reading && entry.second.request.size() == 0;
    });
  }

  void handle(std::uint64_t serial, Connection& connection, int events, Nanos now) {
    switch (connection.state) {
      case Connection::State::reading:
        receive(serial, connection, now);
        return;
      case Connection::State::writing:
        send_more(serial, connection, now);
        return;
      case Connection::State::draining:
        drain(serial, connection);
        return;
      case Connection::State::parked:
        if ((events & (POLLRDHUP | POLLHUP | POLLERR)) != 0) remove(serial);
        return;
      case Connection::State::working:
        return;
    }
  }

  void receive(std::uint64_t serial, Connection& connection, Nanos now) {
    const ssize_t count = recv(connection.socket.get(), part_.data(), part_.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      remove(serial);
      return;
    }
    connection.request.add({part_.data(), static_cast<std::size_t>(count)});
    buffered_ += connection.request.size() - connection.counted;
    connection.counted = connection.request.size();
    if (buffered_ > options_.most_buffered_bytes) {
      answer_error(serial, connection, 503, "too many bytes of requests are under way; try again later", now);
      return;
    }
    if (connection.request.has_header() && connection.request.state() != IncomingRequest::State::refused &&
        !authorised(connection.request.authorization())) {
      answer_error(serial, connection, 401, "the token is missing or wrong; send Authorization: Bearer TOKEN", now);
      return;
    }
    if (connection.request.take_expectation()) {
      constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      static_cast<void>(send(connection.socket.get(), go_on.data(), go_on.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    }
    if (connection.request.state() == IncomingRequest::State::refused)
      answer_error(serial, connection, connection.request.status(), connection.request.error(), now);
    else if (connection.request.state() == IncomingRequest::State::whole)
      hand_over(serial, connection, now);
  }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
  [[nodiscard]] bool authorised(const std::string& header) const {
    if (options_.listen.empty()) return true;
    // How long it takes tells nothing but the length.
    return std::any_of(accepted_.begin(), accepted_.end(), [&](const std::string& accepted) {
      if (header.size() != accepted.size()) return false;
      // The scheme's name is written in any case (RFC 9110, section 11.1).
      const std::size_t scheme = accepted.find(' ');
      return std::equal(accepted.begin(), accepted.begin() + static_cast<std::ptrdiff_t>(scheme), header.begin(),
                        [](char a, char b) { return lower(a) == lower(b); }) &&
             CRYPTO_memcmp(header.data() + scheme, accepted.data() + scheme, accepted.size() - scheme) == 0;
    });
  }
  /// The header with the token, as bearer's (RFC 6750), and as the password of user mltcp (RFC 7617), for clients that
  /// have nothing but a URL to write it in.
  static std::array<std::string, 2> accepted_headers(const std::string& token) {
    const std::string user = "mltcp:" + token;
    std::vector<unsigned char> encoded((user.size() + 2) / 3 * 4 + 1);
    // NOLINTNEXTLINE(*-reinterpret-cast): as the library wants bytes
    const int length = EVP_EncodeBlock(encoded.data(), reinterpret_cast<const unsigned char*>(user.data()),
                                       static_cast<int>(user.size()));
    return {"Bearer " + token, "Basic " + std::string(encoded.begin(), encoded.begin() + length)};
  }

  void hand_over(std::uint64_t serial, Connection& connection, Nanos now) {
    const bool reads = connection.request.method() == "GET";
    if (!reads && changes_.size() >= options_.most_waiting_changes) {
      answer_error(serial, connection, 503, "too many requests wait; try again later", now);
      return;
    }
    connection.reads = reads;
    connection.stripped = connection.request.stripped();
    connection.state = Connection::State::working;
    connection.deadline = Nanos::never();
    // The body is copied no more than it has to be: those that change something are not asked twice.
    if (reads)
      reads_.add({serial, connection.stripped, true});
    else
      changes_.add({serial, std::move(connection.stripped), false});
    connection.request = IncomingRequest({});
  }
  void ask_again(std::uint64_t serial, Connection& connection) {
    connection.state = Connection::State::working;
    connection.deadline = Nanos::never();
    reads_.add({serial, connection.stripped, false});
  }
  [[nodiscard]] bool is_news(const ApiAnswer::Wait& wait) const {
    try {
      return service_.plan(wait.job).revision > wait.after;
    } catch (const NotFound&) {
      return true;  // which is what it will be told
    }
  }
  void ask_parked() {
    for (auto& [serial, connection] : connections_)
      if (connection.state == Connection::State::parked && is_news(connection.wait)) ask_again(serial, connection);
  }

  /// Those that wait for plans take at most half of the places: beyond, the one that has waited for longest is answered
  /// with its plan as it is.
  void leave_room_for_others() {
    const auto parks = [](const auto& entry) { return entry.second.state == Connection::State::parked; };
    const auto parked = std::count_if(connections_.begin(), connections_.end(), parks);
    if (static_cast<std::size_t>(parked) < std::max<std::size_t>(1, options_.connections / 2)) return;
    const auto oldest = std::find_if(connections_.begin(), connections_.end(), parks);
    ask_again(oldest->first, oldest->second);
  }

  void take_answers(Nanos now) {
    std::vector<Done> done;
    {
      const std::scoped_lock lock(done_mutex_);
      done.swap(done_);
    }
    if (!done.empty()) accept_again_ = Nanos{};
    for (Done& one : done) {
      const auto found = connections_.find(one.serial);
      if (found == connections_.end()) continue;
      Connection& connection = found->second;
      if (one.response.wait && listener_.get() >= 0) {
        connection.wait = std::move(*one.response.wait);
        connection.deadline = now + connection.wait.timeout;
        // What changes from here on is told by plans_changed_.
        if (is_news(connection.wait)) {
          ask_again(found->first, connection);
        } else {
          leave_room_for_others();
          connection.state = Connection::State::parked;
        }
        continue;
      }
      answer(found->first, connection, std::move(one.response.text), now);
    }
  }

  void answer_error(std::uint64_t serial, Connection& connection, int status, std::string_view message, Nanos now) {
    answer(serial, connection, response_text(status, Api::error_body(message)), now);
  }
  void answer(std::uint64_t serial, Connection& connection, std::string text, Nanos now) {
    buffered_ -= std::exchange(connection.counted, 0);
    connection.request = IncomingRequest({});
    connection.stripped = {};
    // Clients that ask for long lists and take none would have them all kept here.
    if (connection.reads && text.size() > short_answer && untaken_ > 0 &&
        untaken_ + text.size() > options_.most_buffered_bytes)
      text = response_text(503, Api::error_body("too many bytes of answers are under way; try again later"));
    connection.untaken = text.size();
    untaken_ += connection.untaken;
    connection.out = std::move(text);
    connection.state = Connection::State::writing;
    connection.deadline = now + options_.request_time;
    send_more(serial, connection, now);
  }
  void send_more(std::uint64_t serial, Connection& connection, Nanos now) {
    while (connection.written < connection.out.size()) {
      const ssize_t count = send(connection.socket.get(), connection.out.data() + connection.written,
                                 connection.out.size() - connection.written, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count < 0) {
        remove(serial);
        return;
      }
      connection.written += static_cast<std::size_t>(count);
    }
    // Closed with bytes unread, a connection is reset, and the client may never see the answer.
    shutdown(connection.socket.get(), SHUT_WR);
    connection.out = {};
    untaken_ -= std::exchange(connection.untaken, 0);
    connection.state = Connection::State::draining;
    connection.deadline = now + linger;
    drain(serial, connection);
  }
  void drain(std::uint64_t serial, Connection& connection) {
    const ssize_t count = recv(connection.socket.get(), part_.data(), part_.size(), 0);
    if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) return;
    remove(serial);
  }

  void end_overdue(Nanos now) {
    std::vector<std::uint64_t> overdue;
    for (const auto& [serial, connection] : connections_)
      if (connection.deadline <= now) overdue.push_back(serial);
    for (const std::uint64_t serial : overdue) {
      Connection& connection = connections_.at(serial);
      if (connection.state == Connection::State::parked)
        ask_again(serial, connection);
      else if (connection.state == Connection::State::reading && connection.request.size() > 0)
        answer_error(serial, connection, 408, "the request took too long to come; send it at once", now);
      else
        remove(serial);
    }
  }

  Api& api_;
  SchedulerService& service_;
  const HttpOptions options_;
  const std::array<std::string, 2> accepted_ = accepted_headers(options_.token);
  Descriptor wake_;
  Descriptor listener_;
  std::string address_;
  dev_t device_ = 0;
  ino_t inode_ = 0;

  // Of the loop's thread:
  std::map<std::uint64_t, Connection> connections_;  ///< by serial number: oldest first
  std::uint64_t last_serial_ = 0;
  std::size_t buffered_ = 0;  ///< of requests
  std::size_t untaken_ = 0;   ///< of answers
  Nanos accept_again_;
  std::vector<char> part_ = std::vector<char>(most_read_at_once);
  std::vector<pollfd> polled_;
  std::vector<std::uint64_t> serials_;  ///< of polled_; 0: of none

  // Of all:
  Queue changes_;
  Queue reads_;
  std::mutex done_mutex_;
  std::vector<Done> done_;
  std::atomic<bool> plans_changed_ = false;
  std::function<void(Nanos)> tick_;
  std::atomic<bool> tick_waits_ = false;
};

HttpServer::HttpServer(Api& api, SchedulerService& service, const HttpOptions& options)
    : impl_(std::make_unique<Impl>(api, service, options)) {}
HttpServer::~HttpServer() = default;
const std::string& HttpServer::address() const { return impl_->address(); }
void HttpServer::run(const std::function<bool()>& ended, const std::function<void(Nanos)>& tick) {
  impl_->run(ended, tick);
}

}  // namespace mltcp::service
