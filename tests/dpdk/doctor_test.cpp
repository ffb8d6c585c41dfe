// Tests the form of the doctor's findings on this machine. The findings themselves depend on the machine.
#include "mltcp/dpdk/doctor.h"
#include "../temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "mltcp/dpdk/doctor_checks.h"
#include "mltcp/dpdk/eal.h"

namespace mltcp::dpdk {
namespace {

TEST(Doctor, EveryLackHasACureAndEverythingIsOneLine) {
  const auto checks = examine_machine();
  EXPECT_GE(checks.size(), 13u);
  for (const auto& check : checks) {
    EXPECT_FALSE(check.name.empty());
    EXPECT_FALSE(check.detail.empty()) << check.name;
    EXPECT_EQ(check.cure.empty(), check.status == CheckStatus::ok) << check.name;
    EXPECT_EQ((check.name + check.detail + check.cure).find('\n'), std::string::npos) << check.name;
    std::printf("%-18s %-8s %s%s%s\n", check.name.c_str(), std::string(to_text(check.status)).c_str(),
                check.detail.c_str(),
                check.cure.empty() ? "" : "\n                            cure: ", check.cure.c_str());
  }
  EXPECT_FALSE(Eal::was_started()) << "DPDK is tried in a child only";
}

TEST(Doctor, RoceIsToldWithItsUdpPort) {
  const TemporaryFolder folder;
  const auto add = [&](const std::string& device, const std::string& layer) {
    std::filesystem::create_directories(folder / device / "ports" / "1");
    std::ofstream(folder / device / "ports" / "1" / "link_layer") << layer << '\n';
  };
  EXPECT_EQ(check_rdma(folder).status, CheckStatus::warn);
  EXPECT_EQ(check_rdma(folder / "none").status, CheckStatus::warn);
  add("mlx5_0", "InfiniBand");
  EXPECT_EQ(check_rdma(folder).status, CheckStatus::ok);
  EXPECT_EQ(check_rdma(folder).detail, "mlx5_0");
  add("mlx5_1", "Ethernet");
  EXPECT_EQ(check_rdma(folder).detail,
            "mlx5_0, mlx5_1 (RoCE); RoCE uses UDP port 4791 itself: give mltcp gen --udp-port another one");
}

TEST(Doctor, TheTrialAgreesWithTheRealThing) {
  const auto checks = examine_machine();
  const auto dpdk = std::find_if(checks.begin(), checks.end(), [](const Check& check) { return check.name == "DPDK"; });
  ASSERT_NE(dpdk, checks.end());
  bool starts = true;
  try {
    const Eal eal(EalOptions{});
    const auto again = examine_machine();
    EXPECT_TRUE(std::any_of(again.begin(), again.end(), [](const Check& check) {
      return check.name == "DPDK" && check.detail.find("in this process") != std::string::npos;
    }));
  } catch (const std::exception&) {
    starts = false;
  }
  EXPECT_EQ(dpdk->status == CheckStatus::ok, starts) << dpdk->detail;
}

}  // namespace
}  // namespace mltcp::dpdk
