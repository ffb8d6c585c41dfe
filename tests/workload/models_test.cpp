// Tests the jobs that are made from published models.
#include "mltcp/lab/workload/models.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/collective.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::workload {
namespace {

constexpr Rate kLink(50'000'000'000);

// ---- Numbers of parameters, computed independently from the architectures in the papers ----

double vgg(const std::vector<int>& convolutions) {  // number of channels of each 3x3 convolution
  double sum = 0;
  int before = 3;
  for (const int channels : convolutions) {
    sum += 9.0 * before * channels + channels;
    before = channels;
  }
  return sum + (512.0 * 7 * 7 + 1) * 4096 + (4096.0 + 1) * 4096 + (4096.0 + 1) * 1000;
}

double resnet(const std::vector<int>& blocks, int widening) {  // bottleneck blocks with batch normalisation
  const auto convolution = [](int size, int in, int out) { return 1.0 * size * size * in * out + 2.0 * out; };
  double sum = convolution(7, 3, 64);
  int in = 64;
  int base = 64;
  for (const int count : blocks) {
    const int inner = base * widening;
    const int out = base * 4;
    for (int block = 0; block < count; ++block) {
      sum += convolution(1, in, inner) + convolution(3, inner, inner) + convolution(1, inner, out);
      if (block == 0) sum += convolution(1, in, out);
      in = out;
    }
    base *= 2;
  }
  return sum + 2048.0 * 1000 + 1000;
}

double transformer(int layers, double width, double vocabulary, double positions) {
  return layers * (12 * width * width + 13 * width) + (vocabulary + positions) * width;
}

TEST(Models, parameters__as_counted_from_the_architectures) {
  const std::map<std::string, double> counted{
      {"VGG11", vgg({64, 128, 256, 256, 512, 512, 512, 512})},
      {"VGG16", vgg({64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512})},
      {"VGG19", vgg({64, 64, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512, 512, 512, 512, 512})},
      {"ResNet50", resnet({3, 4, 6, 3}, 1)},
      {"WideResNet101", resnet({3, 4, 23, 3}, 2)},
      {"BERT", transformer(12, 768, 30522, 512)},
      {"RoBERTa", transformer(24, 1024, 50265, 514)},
      {"CamemBERT", transformer(12, 768, 32005, 514)},
      {"XLM", transformer(12, 1024, 95000, 512)},
      {"GPT-1", transformer(12, 768, 40478, 512)},
      {"GPT-2", transformer(24, 1024, 50257, 1024)},
      {"GPT-3", transformer(24, 2048, 50257, 2048)},
  };
  for (const auto& [name, parameters] : counted)
    EXPECT_NEAR(static_cast<double>(find_model(name).parameters) / parameters, 1, 0.03) << name;
}

TEST(Models, models__thirteen_with_their_sources) {
  EXPECT_EQ(models().size(), 13U);
  for (const Model& model : models()) {
    EXPECT_GT(model.parameters, 0U) << model.name;
    EXPECT_NE(model.source.find("20"), std::string_view::npos) << model.name;  // the source contains a year
    EXPECT_EQ(&find_model(model.name), &model);
  }
}

TEST(Models, make_job__of_data_parallelism_sends_a_ring_all_reduce_of_fp32) {
  for (const Model& model : models()) {
    if (model.strategy != Strategy::data) continue;
    for (const std::uint32_t workers : {2U, 3U, 8U}) {
      ModelOptions options;
      options.workers = workers;
      const Job job = make_job(model, options);
      ASSERT_EQ(job.phases.size(), 2U) << model.name;
      EXPECT_EQ(job.phases[0].kind, Phase::Kind::compute);
      EXPECT_EQ(job.phases[1].bytes, bytes_sent(Collective::all_reduce, 4 * model.parameters, workers)) << model.name;
      EXPECT_EQ(job.bytes_per_iteration(), job.phases[1].bytes);
    }
  }
}

// The expected time is 3 * 30.6 GFLOP * 128 / (156 TFLOPS * 0.4).
TEST(Models, make_job__computes_as_long_as_the_formula_says) {
  EXPECT_NEAR(make_job(find_model("VGG16")).compute_per_iteration().millis(), 188.3, 0.1);
  ModelOptions options;
  options.batch = 64;
  options.peak_flops = 312e12;
  EXPECT_NEAR(make_job(find_model("VGG16"), options).compute_per_iteration().millis(), 188.3 / 4, 0.1);
  options.utilisation = 0.8;
  options.bytes_per_parameter = 2;
  const Job half = make_job(find_model("VGG16"), options);
  EXPECT_NEAR(half.compute_per_iteration().millis(), 188.3 / 8, 0.1);
  EXPECT_EQ(half.bytes_per_iteration(), *bytes_sent(Collective::all_reduce, 276'000'000, 8));
}

TEST(Models, make_job__iterations_are_of_the_order_that_papers_measure) {
  for (const Model& model : models()) {
    const IdealIteration iteration = ideal_iteration(make_job(model), kLink);
    EXPECT_GT(iteration.length.millis(), 80) << model.name;
    EXPECT_LT(iteration.length.millis(), 1500) << model.name;
    EXPECT_GT(iteration.duty_cycle(), 0.15) << model.name;
    EXPECT_LT(iteration.duty_cycle(), 0.65) << model.name;
  }
}

TEST(Models, make_job__pipeline_of_stages_and_replicas) {
  const Model& gpt3 = find_model("gpt-3");
  ModelOptions options;
  options.workers = 8;  // 4 pipeline stages with 2 replicas each
  const Job job = make_job(gpt3, options);
  ASSERT_EQ(job.phases.size(), 5U);
  EXPECT_EQ(job.phases[1].bytes, Bytes{2048} * 2048 * 4 * 4);
  EXPECT_EQ(job.phases[3].bytes, job.phases[1].bytes);
  EXPECT_EQ(job.phases[4].bytes, gpt3.parameters / 4 * 4);
  EXPECT_NEAR(job.phases[2].compute.seconds(), 2 * job.phases[0].compute.seconds(), 1e-6);
  // With 4 stages and 4 micro-batches, the pipeline bubble adds 3/4 of the computation time.
  const double operations = 3 * gpt3.forward_operations * 4 / 4;
  EXPECT_NEAR(job.compute_per_iteration().seconds(), operations / (156e12 * 0.4) * 1.75, 1e-6);

  options.workers = 2;  // one stage, so only data parallelism remains
  EXPECT_EQ(make_job(gpt3, options).phases.size(), 3U);
  EXPECT_EQ(make_job(gpt3, options).bytes_per_iteration(), gpt3.parameters * 4);
  options.workers = 3;  // 3 stages with one replica each, so there are no gradients to reduce
  EXPECT_EQ(make_job(gpt3, options).phases.size(), 4U);
}

TEST(Models, make_job__embeddings_are_exchanged_twice) {
  const Job job = make_job(find_model("DLRM"));
  ASSERT_EQ(job.phases.size(), 4U);
  EXPECT_EQ(job.phases[0].bytes, *bytes_sent(Collective::all_to_all, Bytes{16384} * 64 * 128 * 4, 8));
  EXPECT_EQ(job.phases[2].bytes, job.phases[0].bytes);
  EXPECT_EQ(job.phases[3].bytes, *bytes_sent(Collective::all_reduce, find_model("DLRM").parameters * 4, 8));
}

TEST(Models, find_model__of_an_unknown_name_lists_the_known) {
  const std::string refused = refusal_of([&] { return find_model("VGG13"); });
  EXPECT_NE(refused.find("VGG11, VGG16"), std::string::npos) << refused;
  EXPECT_EQ(find_model("resnet50").name, "ResNet50");
}

TEST(Models, make_job__refuses_options_out_of_range) {
  const auto refused = [](auto&& change) {
    ModelOptions options;
    change(options);
    try {
      static_cast<void>(make_job(find_model("VGG16"), options));
    } catch (const InputError&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused([](ModelOptions&) {}));
  EXPECT_TRUE(refused([](ModelOptions& o) { o.workers = 1; }));
  EXPECT_TRUE(refused([](ModelOptions& o) { o.batch = 2'000'000; }));
  EXPECT_TRUE(refused([](ModelOptions& o) { o.peak_flops = std::nan(""); }));
  EXPECT_TRUE(refused([](ModelOptions& o) { o.utilisation = 0; }));
  EXPECT_TRUE(refused([](ModelOptions& o) { o.bytes_per_parameter = 0; }));
  EXPECT_TRUE(refused([](ModelOptions& o) { o.replicas = 0; }));
}

}  // namespace
}  // namespace mltcp::workload
