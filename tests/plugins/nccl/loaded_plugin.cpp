#include "loaded_plugin.h"

#include <chrono>
#include <cstdarg>
#include <thread>
#include <utility>

namespace mltcp::nccl::harness {
namespace {

std::mutex guard;
std::vector<Line> all_lines;

/// Calls `done` until it returns true. Yields between calls, as NCCL's proxy thread does.
template <typename Done>
void repeat(const char* what, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error(std::string(what) + " takes over 20 s");
    std::this_thread::yield();
  }
}

void check(const char* what, Result result) {
  if (result != Result::success)
    throw std::runtime_error(std::string(what) + " returns " + std::to_string(static_cast<int>(result)));
}

}  // namespace

std::vector<Line> take_lines() {
  const std::lock_guard lock(guard);
  return std::exchange(all_lines, {});
}

void log(LogLevel level, unsigned long /*flags*/, const char* /*where*/, int /*line*/, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(guard);
  all_lines.push_back({level, text});
}

Result finish(Net& net, void* request, int* size) {
  Result result = Result::success;
  repeat("a request", [&] {
    int done = 0;
    result = net.test(request, &done, size);
    return done != 0 || result != Result::success;
  });
  return result;
}

void* send(Net& net, void* comm, void* data, std::size_t size) {
  void* request = nullptr;
  repeat("isend", [&] {
    check("isend", net.send(comm, data, size, &request));
    return request != nullptr;
  });
  return request;
}

void* receive(Net& net, void* comm, void* data, std::size_t size) {
  void* request = nullptr;
  repeat("irecv", [&] {
    check("irecv", net.receive(comm, data, size, &request));
    return request != nullptr;
  });
  return request;
}

void connect_again(Net& from, Net& to, Handle handle, Pair& pair) {
  pair.send_comm = nullptr;
  pair.receive_comm = nullptr;
  repeat("to connect", [&] {
    if (pair.send_comm == nullptr) check("connect", from.connect(0, handle, &pair.send_comm));
    if (pair.receive_comm == nullptr) check("accept", to.accept(pair.listen_comm, &pair.receive_comm));
    return pair.send_comm != nullptr && pair.receive_comm != nullptr;
  });
}

Pair connect(Net& from, Net& to) {
  Pair pair;
  Handle handle;
  check("listen", to.listen(0, handle, &pair.listen_comm));
  connect_again(from, to, handle, pair);
  return pair;
}

void close(Net& from, Net& to, const Pair& pair) {
  check("closeSend", from.close_send(pair.send_comm));
  check("closeRecv", to.close_receive(pair.receive_comm));
  if (pair.listen_comm != nullptr) check("closeListen", to.close_listen(pair.listen_comm));
}

}  // namespace mltcp::nccl::harness
