// Tests memory that is registered with devices.
#include "mltcp/transport/registered_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp {
namespace {

using testing::HasSubstr;

class TestDevice final : public DmaDevice {
 public:
  explicit TestDevice(bool reads_by_dma = true) : reads_by_dma_(reads_by_dma) {}
  [[nodiscard]] bool needs_mapping() const override { return reads_by_dma_; }
  std::uint64_t map(std::span<std::byte> /*memory*/) override {
    if (refuses) throw RunError("no room");
    ++mapped;
    return ++key;
  }
  void unmap(std::span<std::byte> /*memory*/, std::uint64_t gone) noexcept override {
    EXPECT_LE(gone, key);
    --mapped;
  }
  bool refuses = false;
  int mapped = 0;
  std::uint64_t key = 100;

 private:
  bool reads_by_dma_;
};

class RegisteredMemoryTest : public testing::Test {
 protected:
  RegisteredMemoryTest()
      : bytes(
            static_cast<std::byte*>(mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
            1 << 16) {}
  ~RegisteredMemoryTest() override { munmap(bytes.data(), bytes.size()); }
  const std::span<std::byte> bytes;
  TestDevice nic;
  TestDevice other;
  TestDevice shared{false};
};

TEST_F(RegisteredMemoryTest, find__knows_what_lies_in_one_piece_by_its_key) {
  RegisteredRanges ranges(nic);
  RegisteredRanges elsewhere(other);
  EXPECT_FALSE(ranges.find(bytes.first(10)));
  {
    const std::array<DmaDevice*, 2> devices{&nic, &shared};
    const RegisteredMemory memory(bytes.first(8192), devices);
    EXPECT_EQ(nic.mapped, 1);
    EXPECT_EQ(shared.mapped, 0) << "it reads as the CPU does";
    EXPECT_EQ(ranges.find(bytes.first(8192)), nic.key);
    EXPECT_EQ(ranges.find(bytes.subspan(8000, 192)), nic.key);
    EXPECT_FALSE(ranges.find(bytes.subspan(8000, 193))) << "its end is beyond";
    EXPECT_FALSE(elsewhere.find(bytes.first(10))) << "another device's";
  }
  EXPECT_EQ(nic.mapped, 0);
  EXPECT_FALSE(ranges.find(bytes.first(10))) << "not any more";
}

TEST_F(RegisteredMemoryTest, registered__is_all_or_nothing) {
  other.refuses = true;
  const std::array<DmaDevice*, 2> devices{&nic, &other};
  EXPECT_EQ(message_of<RunError>([&] { const RegisteredMemory memory(bytes.first(4096), devices); }), "no room");
  EXPECT_EQ(nic.mapped, 0);
  other.refuses = false;
  const RegisteredMemory memory(bytes.first(4096), devices);
  EXPECT_EQ(nic.mapped + other.mapped, 2);
  const auto error_of = [&](std::span<std::byte> piece) {
    return message_of<InputError>([&] { const RegisteredMemory again(piece, devices); });
  };
  EXPECT_THAT(error_of(bytes.first(8192)), HasSubstr("are registered already"));
  EXPECT_THAT(error_of(bytes.subspan(4097, 4096)), HasSubstr("whole pages"));
  EXPECT_THAT(error_of({}), HasSubstr("whole pages"));
}

}  // namespace
}  // namespace mltcp
