// Runs ranks as threads of a test on the loopback, over Gloo's own TCP or over MLTCP.
#pragma once

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/plugins/gloo/device.h"

namespace mltcp::gloo_testing {

namespace tcp = ::gloo::transport::tcp;
namespace over_mltcp = ::gloo::transport::mltcp;
using namespace std::chrono_literals;

enum class Transport { tcp, mltcp };

inline over_mltcp::attr loopback() {
  over_mltcp::attr attributes;
  attributes.device = "udp:";
  attributes.hostname = "127.0.0.1";
  attributes.peer_timeout = 2s;
  return attributes;
}

inline std::shared_ptr<::gloo::transport::Device> open_device(Transport transport) {
  if (transport == Transport::tcp) return tcp::CreateDevice(tcp::attr("127.0.0.1"));
  return over_mltcp::CreateDevice(loopback());
}

using ContextPointer = std::shared_ptr<::gloo::rendezvous::Context>;

/// Returns the connected context of a group of `size` ranks. All ranks must call this function at the same time.
inline ContextPointer connect(std::shared_ptr<::gloo::transport::Device> device, ::gloo::rendezvous::Store& store,
                              int rank, int size, std::chrono::milliseconds timeout = 30s) {
  auto context = std::make_shared<::gloo::rendezvous::Context>(rank, size);
  context->setTimeout(timeout);
  context->connectFullMesh(store, device);
  return context;
}

/// Runs `what` once per rank, each time in a new thread. If `shared` is given, all ranks use this device. If not, each
/// rank opens a separate device. `what` must not throw.
inline void run_ranks(int size, Transport transport, const std::function<void(ContextPointer, int)>& what,
                      std::shared_ptr<::gloo::transport::Device> shared = nullptr,
                      std::chrono::milliseconds timeout = 30s) {
  ::gloo::rendezvous::HashStore store;
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      what(connect(shared ? shared : open_device(transport), store, rank, size, timeout), rank);
    }));
  std::string failures;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    try {
      ranks[rank].get();
    } catch (const std::exception& error) {
      failures += "rank " + std::to_string(rank) + ": " + error.what() + "\n";
    }
  }
  EXPECT_EQ(failures, "");
}

/// Type and text of an exception. Both are empty if there was none.
struct Thrown {
  std::string type;
  std::string text;
};
inline Thrown thrown_by(const std::function<void()>& what) {
  try {
    what();
  } catch (const ::gloo::IoException& error) {
    return {"IoException", error.what()};
  } catch (const ::gloo::InvalidOperationException& error) {
    return {"InvalidOperationException", error.what()};
  } catch (const ::gloo::EnforceNotMet& error) {
    return {"EnforceNotMet", error.what()};
  } catch (const std::exception& error) {
    return {"exception", error.what()};
  }
  return {};
}

}  // namespace mltcp::gloo_testing
