// The thread that starts DPDK and sets it up; see service.h.
#include "mltcp/dpdk/service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <rte_lcore.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/eal.h"

namespace mltcp::dpdk {
namespace {

/// The network namespace of the thread that creates the object, as a file that the destructor closes. Threads of one
/// process may be in different namespaces.
class NetNamespace {
 public:
  NetNamespace() : file_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0 || fstat(file_, &identity_) != 0) identity_ = {};
  }
  ~NetNamespace() {
    if (file_ >= 0) close(file_);
  }
  NetNamespace(const NetNamespace&) = delete;
  NetNamespace& operator=(const NetNamespace&) = delete;

  /// Moves the calling thread into this namespace. Returns false if the kernel does not permit this. If /proc shows no
  /// namespaces, there is only one namespace, so nothing has to be done.
  [[nodiscard]] bool enter() const {
    const NetNamespace own;
    if (file_ < 0 || own.file_ < 0) return true;
    if (own.identity_.st_ino == identity_.st_ino && own.identity_.st_dev == identity_.st_dev) return true;
    return setns(file_, CLONE_NEWNET) == 0;
  }

 private:
  int file_;
  struct stat identity_ {};
};

struct Call {
  const std::function<void()>& work;
  bool has_to_enter;  ///< whether it is an error if the thread cannot enter `place`
  NetNamespace place{};
  std::exception_ptr failure{};
  bool done = false;
};

class Service {
 public:
  Service() {
    // Block all signals in the service thread. The kernel then delivers them to the program's threads, and so ends
    // their waits.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread([this] { serve(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    thread_ = thread.get_id();
    thread.detach();
  }

  [[nodiscard]] bool is_here() const { return std::this_thread::get_id() == thread_; }
  [[nodiscard]] bool is_of_parent() const { return process_ != getpid(); }

  void run(Call& call) {
    std::unique_lock lock(mutex_);
    calls_.push_back(&call);
    changed_.notify_all();
    changed_.wait(lock, [&] { return call.done; });
  }

 private:
  [[noreturn]] void serve() {
    pthread_setname_np(pthread_self(), "mltcp-dpdk");
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !calls_.empty(); });
      Call& call = *calls_.front();
      calls_.pop_front();
      lock.unlock();
      try {
        if (!call.place.enter() && call.has_to_enter)
          throw RunError(
              fmt::format("DPDK's thread can't enter the network namespace of the thread that opens this port ({}); "
                          "run it as root, or open all ports of a process in one namespace",
                          std::strerror(errno)));
        call.work();
      } catch (...) {
        call.failure = std::current_exception();
      }
      lock.lock();
      call.done = true;
      changed_.notify_all();
    }
  }

  const pid_t process_ = getpid();
  std::thread::id thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call*> calls_;
};

/// Returns the service of this process; null if the parent process started DPDK before the fork. The service is never
/// destroyed, because ports may be closed while the process ends.
Service* service() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): DPDK exists once in a process
  static Service* current = nullptr;
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): guards `current`
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (current != nullptr && current->is_of_parent()) {
    if (Eal::was_started()) return nullptr;
    current = nullptr;
  }
  if (current == nullptr) current = new Service;
  return current;
}

/// Registers the calling thread with DPDK during the object's lifetime.
class ThreadPlace {
 public:
  ThreadPlace() {
    if (rte_lcore_id() == LCORE_ID_ANY) is_ours_ = rte_thread_register() == 0;
  }
  ~ThreadPlace() {
    if (is_ours_ && process_ == getpid()) rte_thread_unregister();
  }
  ThreadPlace(const ThreadPlace&) = delete;
  ThreadPlace& operator=(const ThreadPlace&) = delete;

 private:
  const pid_t process_ = getpid();
  bool is_ours_ = false;
};

}  // namespace

void run_on_service(const std::function<void()>& work) {
  Service* const here = service();
  if (here == nullptr)
    throw RunError(
        "DPDK was started before this process was forked, and belongs to the parent; open ports in the child before "
        "the parent does, or start another program in the child (exec)");
  if (here->is_here()) {
    work();
    return;
  }
  Call call{.work = work, .has_to_enter = true};
  here->run(call);
  if (call.failure) std::rethrow_exception(call.failure);
}

void end_on_service(const std::function<void()>& work) noexcept {
  Service* const here = service();
  if (here == nullptr) return;
  if (here->is_here()) {
    work();
    return;
  }
  Call call{.work = work, .has_to_enter = false};
  here->run(call);
}

void join_dpdk() noexcept { static thread_local const ThreadPlace place; }

}  // namespace mltcp::dpdk
