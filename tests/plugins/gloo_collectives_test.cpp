// Tests that Gloo's collectives give the same bytes at every rank over MLTCP and over Gloo's own TCP. Leaves out the
// class AllreduceBcube: even over Gloo's own TCP, its results differ between runs, and not only because of the order of
// additions. Includes the function allreduce() with the algorithm BCUBE.
#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include <cstring>

#include "gloo_group.h"

namespace mltcp::gloo_testing {
namespace {

using Floats = std::vector<float>;
using Collective = std::function<Floats(const ContextPointer&, int rank, std::size_t count)>;

/// Returns numbers whose sum depends on the order of the additions.
Floats values(int rank, std::size_t count) {
  Floats out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = 1.0F / (static_cast<float>(i % 997) + 3.0F * static_cast<float>(rank) + 1.5F);
  return out;
}

void add(void* out, const void* a, const void* b, std::size_t count) { ::gloo::sum<float>(out, a, b, count); }

Floats allreduce(const ContextPointer& context, int rank, std::size_t count,
                 ::gloo::AllreduceOptions::Algorithm algorithm) {
  Floats data = values(rank, count);
  ::gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm);
  options.setOutput(data.data(), data.size());
  options.setReduceFunction(add);
  ::gloo::allreduce(options);
  return data;
}

template <typename Algorithm>
Floats by_class(const ContextPointer& context, int rank, std::size_t count) {
  Floats data = values(rank, count);
  Algorithm algorithm(context, std::vector<float*>{data.data()}, static_cast<int>(count));
  for (int round = 0; round < 2; ++round) algorithm.run();
  return data;
}

struct Named {
  const char* name;
  Collective run;
};

const std::vector<Named>& reductions() {
  using Options = ::gloo::detail::AllreduceOptionsImpl;
  static const std::vector<Named> all{
      {"allreduce ring", [](auto& c, int r, std::size_t n) { return allreduce(c, r, n, Options::RING); }},
      {"allreduce bcube", [](auto& c, int r, std::size_t n) { return allreduce(c, r, n, Options::BCUBE); }},
      {"class ring", [](auto& c, int r, std::size_t n) { return by_class<::gloo::AllreduceRing<float>>(c, r, n); }},
      {"class ring chunked",
       [](auto& c, int r, std::size_t n) { return by_class<::gloo::AllreduceRingChunked<float>>(c, r, n); }},
      {"class halving doubling",
       [](auto& c, int r, std::size_t n) { return by_class<::gloo::AllreduceHalvingDoubling<float>>(c, r, n); }},
      {"reduce", [](auto& c, int r, std::size_t n) {
         Floats in = values(r, n);
         Floats out(n);
         ::gloo::ReduceOptions options(c);
         options.setInput(in.data(), n);
         options.setOutput(out.data(), n);
         options.setRoot(c->size - 1);
         options.setReduceFunction(add);
         ::gloo::reduce(options);
         return r == c->size - 1 ? out : Floats();
       }}};
  return all;
}

const std::vector<Named>& exchanges() {
  static const std::vector<Named> all{{"allgather",
                                       [](auto& c, int r, std::size_t n) {
                                         Floats in = values(r, n);
                                         Floats out(n * static_cast<std::size_t>(c->size));
                                         ::gloo::AllgatherOptions options(c);
                                         options.setInput(in.data(), n);
                                         options.setOutput(out.data(), out.size());
                                         ::gloo::allgather(options);
                                         return out;
                                       }},
                                      {"allgatherv",
                                       [](auto& c, int r, std::size_t n) {
                                         std::vector<std::size_t> counts;
                                         std::size_t all_counts = 0;
                                         for (int i = 0; i < c->size; ++i)
                                           all_counts += counts.emplace_back(n + static_cast<std::size_t>(i));
                                         Floats in = values(r, counts[static_cast<std::size_t>(r)]);
                                         Floats out(all_counts);
                                         ::gloo::AllgathervOptions options(c);
                                         options.setInput(in.data(), in.size());
                                         options.setOutput(out.data(), counts);
                                         ::gloo::allgatherv(options);
                                         return out;
                                       }},
                                      {"class allgather ring",
                                       [](auto& c, int r, std::size_t n) {
                                         Floats in = values(r, n);
                                         Floats out(n * static_cast<std::size_t>(c->size));
                                         ::gloo::AllgatherRing<float> algorithm(c, {in.data()}, out.data(),
                                                                                static_cast<int>(n));
                                         algorithm.run();
                                         return out;
                                       }},
                                      {"alltoall", [](auto& c, int r, std::size_t n) {
                                         Floats in = values(r, n * static_cast<std::size_t>(c->size));
                                         Floats out(in.size());
                                         ::gloo::AlltoallOptions options(c);
                                         options.setInput(in.data(), in.size());
                                         options.setOutput(out.data(), out.size());
                                         ::gloo::alltoall(options);
                                         return out;
                                       }}};
  return all;
}

const std::vector<Named>& rooted() {
  static const std::vector<Named> all{{"broadcast",
                                       [](auto& c, int r, std::size_t n) {
                                         Floats data = values(r, n);
                                         ::gloo::BroadcastOptions options(c);
                                         options.setRoot(c->size / 2);
                                         options.setOutput(data.data(), n);
                                         ::gloo::broadcast(options);
                                         return data;
                                       }},
                                      {"class broadcast",
                                       [](auto& c, int r, std::size_t n) {
                                         Floats data = values(r, n);
                                         ::gloo::BroadcastOneToAll<float> algorithm(c, {data.data()}, n, 1);
                                         algorithm.run();
                                         return data;
                                       }},
                                      {"gather",
                                       [](auto& c, int r, std::size_t n) {
                                         Floats in = values(r, n);
                                         Floats out(r == 0 ? n * static_cast<std::size_t>(c->size) : 0);
                                         ::gloo::GatherOptions options(c);
                                         options.setInput(in.data(), n);
                                         if (r == 0) options.setOutput(out.data(), out.size());
                                         options.setRoot(0);
                                         ::gloo::gather(options);
                                         return out;
                                       }},
                                      {"scatter",
                                       [](auto& c, int r, std::size_t n) {
                                         std::vector<Floats> in;
                                         std::vector<float*> pointers;
                                         for (int i = 0; i < c->size; ++i) in.push_back(values(10 * r + i, n));
                                         for (Floats& each : in) pointers.push_back(each.data());
                                         Floats out(n);
                                         ::gloo::ScatterOptions options(c);
                                         if (r == 1) options.setInputs(pointers, n);
                                         options.setOutput(out.data(), n);
                                         options.setRoot(1);
                                         ::gloo::scatter(options);
                                         return out;
                                       }},
                                      {"barriers", [](auto& c, int, std::size_t) {
                                         ::gloo::BarrierOptions options(c);
                                         ::gloo::barrier(options);
                                         ::gloo::BarrierAllToAll all_to_all(c);
                                         all_to_all.run();
                                         ::gloo::BarrierAllToOne all_to_one(c);
                                         all_to_one.run();
                                         return Floats();
                                       }}};
  return all;
}

/// The final data of one rank after one collective.
struct Outcome {
  std::string what;
  std::string bytes;
};
using Outcomes = std::vector<std::vector<Outcome>>;
Outcomes outcomes_of(Transport transport, int size, const std::vector<Named>& collectives) {
  Outcomes outcomes(static_cast<std::size_t>(size));
  run_ranks(size, transport, [&](const ContextPointer& context, int rank) {
    for (const Named& collective : collectives) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1001}, std::size_t{262'144}}) {
        // Gloo cannot run these collectives with 0 elements: allgather() divides by the number of elements, and classes
        // do not accept 0.
        const std::string name = collective.name;
        if (count == 0 && (name == "allgather" || name.starts_with("class"))) continue;
        const Floats data = collective.run(context, rank, count);
        std::string bytes(data.size() * sizeof(float), '\0');
        if (!data.empty()) std::memcpy(bytes.data(), data.data(), bytes.size());
        outcomes[static_cast<std::size_t>(rank)].push_back({name + " of " + std::to_string(count), std::move(bytes)});
      }
    }
    ::gloo::BarrierOptions options(context);
    ::gloo::barrier(options);  // so that no rank ends while other ranks wait for it
  });
  return outcomes;
}

void expect_same(const Outcomes& ours, const Outcomes& tcp) {
  ASSERT_EQ(ours.size(), tcp.size());
  for (std::size_t rank = 0; rank < ours.size(); ++rank) {
    ASSERT_EQ(ours[rank].size(), tcp[rank].size());
    for (std::size_t i = 0; i < ours[rank].size(); ++i)
      EXPECT_TRUE(ours[rank][i].bytes == tcp[rank][i].bytes) << ours[rank][i].what << ", rank " << rank;
  }
}

class GlooCollectives : public testing::TestWithParam<int> {};

TEST_P(GlooCollectives, reductions__yield_the_bits_of_gloos_tcp) {
  const Outcomes ours = outcomes_of(Transport::mltcp, GetParam(), reductions());
  expect_same(ours, outcomes_of(Transport::tcp, GetParam(), reductions()));
}

TEST_P(GlooCollectives, exchanges__yield_the_bytes_of_gloos_tcp) {
  const Outcomes ours = outcomes_of(Transport::mltcp, GetParam(), exchanges());
  expect_same(ours, outcomes_of(Transport::tcp, GetParam(), exchanges()));
}

TEST_P(GlooCollectives, rooted_ones__yield_the_bytes_of_gloos_tcp) {
  const Outcomes ours = outcomes_of(Transport::mltcp, GetParam(), rooted());
  expect_same(ours, outcomes_of(Transport::tcp, GetParam(), rooted()));
}

INSTANTIATE_TEST_SUITE_P(ranks, GlooCollectives, testing::Values(2, 3, 4, 8));

}  // namespace
}  // namespace mltcp::gloo_testing
