// A rank of Gloo over MLTCP in a guest, on the port that the environment names. Checks the sums of all-reduces of
// several lengths. Usage: `guest_gloo_rank FOLDER RANK SIZE`. Ranks find each other through FOLDER.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "mltcp/plugins/gloo/device.h"

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const auto rank = static_cast<std::size_t>(std::atoi(arguments[2]));
  const auto size = static_cast<std::size_t>(std::atoi(arguments[3]));
  try {
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::mltcp::CreateDevice();
    gloo::rendezvous::FileStore store(arguments[1]);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), static_cast<int>(size));
    context->setTimeout(std::chrono::seconds(20));
    context->connectFullMesh(store, device);
    for (const std::size_t length : {std::size_t{1}, std::size_t{1000}, std::size_t{300'000}}) {
      // Element i of rank r is (r + 1) (i + 1), so that a sum is right only if all data is at the right position.
      std::vector<std::uint64_t> data(length);
      for (std::size_t i = 0; i < length; ++i) data[i] = (rank + 1) * (i + 1);
      gloo::AllreduceOptions options(context);
      options.setOutput(data.data(), data.size());
      options.setReduceFunction(
          [](void* out, const void* a, const void* b, std::size_t n) { gloo::sum<std::uint64_t>(out, a, b, n); });
      gloo::allreduce(options);
      for (std::size_t i = 0; i < length; ++i) {
        const std::size_t wanted = size * (size + 1) / 2 * (i + 1);
        if (data[i] == wanted) continue;
        std::printf("FAILED: sum %zu of %zu is %zu instead of %zu\n", i, length, static_cast<std::size_t>(data[i]),
                    wanted);
        return 1;
      }
    }
    std::printf("rank %zu: 3 all-reduces over %s\n", rank, device->str().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
    return 1;
  }
}
