// A ring all-reduce in C++, as data-parallel training sums its gradients: each rank sends to the next rank and receives
// from the previous one (Patarasu and Yuan, J. Parallel Distrib. Comput. 69, 2009). Start the program once for each
// rank, on one machine or several:
//
//   ring RANK RANKS OWN-IP FOLDER
//
// FOLDER is a new folder that all ranks share, for the exchange of their addresses. The program announces each
// iteration to MLTCP, so that jobs that share a link separate. ring.c and ring.py do the same.
#include <fmt/format.h>
#include <mltcp/endpoint/endpoint.h>
#include <mltcp/socket/register_datapath.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace mltcp::endpoint;
using namespace mltcp::literals;

namespace {

constexpr std::size_t kCount = 1 << 20;
constexpr std::size_t kIterations = 3;
constexpr mltcp::Nanos kPatience = 30_s;  // time limit of each wait for another rank

void must(const char* what, Code code) {
  if (code != Code::ok) throw std::runtime_error(fmt::format("{}: {}", what, to_text(code)));
}

/// Returns the number that the whole text represents; SIZE_MAX if the text is not a number.
std::size_t number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() ? value : SIZE_MAX;
}

/// Waits for the file in which a rank has stored its address, and returns the address.
std::vector<std::byte> address_in(const std::filesystem::path& file) {
  const auto begun = std::chrono::steady_clock::now();
  while (!std::filesystem::exists(file)) {
    if (std::chrono::steady_clock::now() - begun > std::chrono::nanoseconds(kPatience.count))
      throw std::runtime_error(fmt::format("{} does not come; start all ranks", file.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Ring {
 public:
  Ring(std::size_t rank, std::size_t ranks, const char* ip, const std::filesystem::path& folder)
      : rank_(rank),
        ranks_(ranks),
        endpoint_({.datapath = {.device = "udp:"}, .address = mltcp::Address::parse(ip)}),
        spare_(kCount) {
    // Write the address under a temporary name first, so that other ranks never read an incomplete file.
    const auto own = folder / std::to_string(rank);
    const auto blob = endpoint_.address().bytes();
    std::error_code problem;
    std::filesystem::remove(own.string() + ".tmp", problem);  // left by an aborted run, or a link
    std::ofstream(own.string() + ".tmp", std::ios::binary)
        .write(reinterpret_cast<const char*>(blob.data()), static_cast<std::streamsize>(blob.size()));
    std::filesystem::rename(own.string() + ".tmp", own, problem);
    if (problem) throw std::runtime_error(own.string() + " can't be written; give a folder that all ranks share");
    OperationHandle operation = 0;
    must("connect", endpoint_.connect(address_in(folder / std::to_string((rank + 1) % ranks)), {}, next_, &operation));
    must_end(operation);
    previous_ = event(Completion::Kind::accepted);
    must("job", endpoint_.create_job({.augmentation = mltcp::cc::Augmentation::mltcp({})}, job_));
    must("attach", endpoint_.attach(next_, job_));
  }
  /// The sender closes the connection, so that no data in flight is lost.
  void leave() {
    must("close", endpoint_.close(next_));
    for (int i = 0; i < 2; ++i) event(Completion::Kind::closed);
  }

  void all_reduce(std::vector<float>& data) {
    must("iteration", endpoint_.begin_iteration(job_, kCount * sizeof(float) * 2 * (ranks_ - 1) / ranks_));
    // Each rank adds its data to a part, until one rank has the complete sum of this part.
    for (std::size_t step = 0; step + 1 < ranks_; ++step) {
      const std::span<float> in = part(data, rank_ + 2 * ranks_ - step - 1);
      exchange(part(data, rank_ + ranks_ - step), std::span(spare_).first(in.size()));
      for (std::size_t i = 0; i < in.size(); ++i) in[i] += spare_[i];
    }
    // The complete sum of each part goes around the ring to all ranks.
    for (std::size_t step = 0; step + 1 < ranks_; ++step)
      exchange(part(data, rank_ + ranks_ - step + 1), part(data, rank_ + ranks_ - step));
    must("iteration", endpoint_.end_iteration(job_));
  }

 private:
  [[nodiscard]] std::span<float> part(std::vector<float>& data, std::size_t number) const {
    const std::size_t i = number % ranks_;
    return std::span(data).subspan(kCount * i / ranks_, kCount * (i + 1) / ranks_ - kCount * i / ranks_);
  }
  void exchange(std::span<const float> out, std::span<float> in) {
    OperationHandle receiving = 0;
    OperationHandle sending = 0;
    must("receive", endpoint_.receive(previous_, std::as_writable_bytes(in), 0, {}, receiving));
    must("send", endpoint_.send(next_, std::as_bytes(out), 0, {}, sending));
    must_end(receiving);
    must_end(sending);
  }
  void must_end(OperationHandle operation) {
    Completion end;
    must("wait", endpoint_.wait(operation, end, kPatience));
    if (end.code != Code::ok) throw std::runtime_error(to_text(end));
  }
  ConnectionHandle event(Completion::Kind kind) {
    for (;;) {
      Completion event;
      std::size_t got = 0;
      must("a neighbour", endpoint_.events().wait({&event, 1}, got, kPatience));
      if (event.kind == kind) return event.connection;
    }
  }

  const std::size_t rank_;
  const std::size_t ranks_;
  Endpoint endpoint_;
  ConnectionHandle next_ = 0;
  ConnectionHandle previous_ = 0;
  JobHandle job_ = 0;
  std::vector<float> spare_;
};

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t rank = argc == 5 ? number(argv[1]) : 0;
  const std::size_t ranks = argc == 5 ? number(argv[2]) : 0;
  if (rank >= ranks || ranks < 2 || ranks > 1000) {
    fmt::print(stderr, "write ring RANK RANKS OWN-IP FOLDER, with 2 to 1000 ranks and their numbers from 0 on\n");
    return 2;
  }
  mltcp::socket::register_datapath();
  Ring ring(rank, ranks, argv[3], argv[4]);
  std::vector<float> data(kCount);
  for (std::size_t iteration = 0; iteration < kIterations; ++iteration) {
    for (std::size_t i = 0; i < kCount; ++i) data[i] = static_cast<float>(rank + i % 7 + iteration);
    ring.all_reduce(data);
    for (std::size_t i = 0; i < kCount; ++i)
      if (data[i] != static_cast<float>(ranks * (ranks - 1) / 2 + ranks * (i % 7 + iteration)))
        throw std::runtime_error("a sum is wrong, which should not be");
  }
  ring.leave();
  fmt::print("rank {} of {}: {} iterations, all sums right\n", rank, ranks, kIterations);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "ring: {}\n", error.what());
  return 1;
}
