// Tests fingerprints against the published values of FNV-1a with 128 bits.
#include "mltcp/base/fingerprint.h"

#include <gtest/gtest.h>

namespace mltcp {
namespace {

TEST(Fingerprint, text__published_vectors) {
  EXPECT_EQ(Fingerprint().text(), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(Fingerprint().add("a").text(), "d228cb696f1a8caf78912b704e4a8964");
  EXPECT_EQ(Fingerprint().add("foobar").text(), "343e1662793c64bf6f0d3597ba446f18");
}

TEST(Fingerprint, add__texts_are_joined) {
  EXPECT_EQ(Fingerprint().add("foo").add("").add("bar").text(), Fingerprint().add("foobar").text());
}

}  // namespace
}  // namespace mltcp
