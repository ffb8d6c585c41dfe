// A rank of gloo_processes_test.cpp. Repeats all-reduces until one fails, and prints the error. Usage: `gloo_rank
// FOLDER RANK SIZE`. Ranks find each other through FOLDER.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "mltcp/plugins/gloo/device.h"

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const int rank = std::atoi(arguments[2]);
  try {
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::mltcp::CreateDevice();
    gloo::rendezvous::FileStore store(arguments[1]);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, std::atoi(arguments[3]));
    context->setTimeout(std::chrono::seconds(20));
    context->connectFullMesh(store, device);
    std::vector<float> data(300'000, 1.0F);
    for (int round = 0;; ++round) {
      gloo::AllreduceOptions options(context);
      options.setOutput(data.data(), data.size());
      options.setReduceFunction(
          [](void* out, const void* a, const void* b, std::size_t n) { gloo::max<float>(out, a, b, n); });
      gloo::allreduce(options);
      if (round == 3) {
        std::puts("running");
        std::fflush(stdout);
      }
    }
  } catch (const gloo::IoException& error) {
    std::printf("IoException: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::printf("exception: %s\n", error.what());
    return 4;
  }
}
