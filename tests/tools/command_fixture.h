// Test fixture with an experiment and a trace in a temporary folder, as input of commands.
#pragma once

#include "program_test.h"

namespace mltcp::tools {

class Command : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    put("e.toml",
        "iterations = 2\npolicies = [\"fair\"]\n[bottleneck]\nrate = \"1 Gbps\"\n"
        "[[job]]\nname = \"a\"\ncompute = \"1 ms\"\ncommunicate = \"100 kB\"\n");
    put("t.txt", "DATA\n1\na -1 100 NONE 0 0 NONE 0 500 ALLREDUCE 13500 0\n");
  }
};

}  // namespace mltcp::tools
