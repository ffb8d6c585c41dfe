// Tests names of ports, and the errors for invalid names.
#include "mltcp/dpdk/port_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "mltcp/base/error.h"

namespace mltcp::dpdk {
namespace {

using testing::HasSubstr;
using Kind = PortName::Kind;

std::string error_of(const std::string& text) {
  try {
    parse_port_name(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParsePortName, ReadsEveryKind) {
  EXPECT_EQ(parse_port_name("af_packet:eth0"), (PortName{Kind::af_packet, "eth0", "", false, 0}));
  EXPECT_EQ(parse_port_name("af_xdp:ens1f0np0.100"), (PortName{Kind::af_xdp, "ens1f0np0.100", "", false, 0}));
  EXPECT_EQ(parse_port_name("tap:mltcp0"), (PortName{Kind::tap, "mltcp0", "", false, 0}));
  EXPECT_EQ(parse_port_name("ring:loop"), (PortName{Kind::ring, "loop", "", false, 0}));
  EXPECT_EQ(parse_port_name("ring:left,to=right"), (PortName{Kind::ring, "left", "right", false, 0}));
  EXPECT_EQ(parse_port_name("net_null0,size=64,copy=1"),
            (PortName{Kind::driver, "net_null0", "size=64,copy=1", false, 0}));
}

TEST(ParsePortName, ReadsPciAddressesWithAndWithoutPrefixAndDomain) {
  for (const char* text : {"0000:3b:00.1", "pci:0000:3b:00.1", "3b:00.1", "pci:3B:00.1"}) {
    EXPECT_EQ(parse_port_name(text), (PortName{Kind::pci, "0000:3b:00.1", "", false, 0})) << text;
  }
  EXPECT_THAT(error_of("10000:3b:00.1"), HasSubstr("is no kind of port"));
}

TEST(ParsePortName, ReadsMemifsRoleAndNumber) {
  EXPECT_EQ(parse_port_name("memif:/run/m.sock"), (PortName{Kind::memif, "/run/m.sock", "", false, 0}));
  EXPECT_EQ(parse_port_name("memif:/run/m.sock,role=server,id=7"), (PortName{Kind::memif, "/run/m.sock", "", true, 7}));
  EXPECT_EQ(parse_port_name("memif:/m,id=4294967295,role=client").id, 4294967295u);
}

TEST(ParsePortName, TellsWhatIsWrongAndWhatToWrite) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "it is empty"},
      {"eth0", "\"eth0\" is no kind of port"},
      {"af_packt:eth0", "\"af_packt\" is no kind of port"},
      {"verbs:rxe0", "\"verbs\" carries messages between hosts, but Ethernet frames are needed here; write af_packet:"},
      {"udp:", "\"udp\" carries messages between hosts, but Ethernet frames are needed"},
      {"af_packet", "is no kind of port"},
      {"af_packet:", "names no interface"},
      {"af_packet:an-interface-with", "17 characters, more than 15"},
      {"af_packet:eth0,qpairs=2", "no interface may contain the character \",\""},
      {"af_xdp:eth 0", "no interface may contain the character"},
      {"tap:a/b", "no interface may contain the character"},
      {"ring:", "names no name"},
      {"memif:", "its socket is no path"},
      {"memif:relative", "its socket is no path"},
      {"memif:/m,role=boss", "\"role=boss\" is neither"},
      {"memif:/m,id=", "\"id=\" is neither"},
      {"memif:/m,id=-1", "\"id=-1\" is neither"},
      {"memif:/m,id=4294967296", "is neither"},
      {"memif:/m,", "\"\" is neither"},
      {"ring:a,b", "\"b\" is not to=NAME"},
      {"ring:a,to=", "it names no name"},
      {"pci:3b:00", "\"3b:00\" is no PCI address"},
      {"pci:0000:3b:00.8", "is no PCI address"},
      {"net_null0,size=6 4", "no spaces"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string error = error_of(text);
    EXPECT_THAT(error, HasSubstr(expected)) << text;
    EXPECT_THAT(error, HasSubstr("; write ")) << text;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_THAT(error_of("memif:/" + std::string(107, 'x')), HasSubstr("108 characters, and a socket's has 107"));
  EXPECT_EQ(error_of("memif:/" + std::string(106, 'x')), "no error");
  EXPECT_EQ(error_of("tap:a\nb").find('\n'), std::string::npos);
}

}  // namespace
}  // namespace mltcp::dpdk
