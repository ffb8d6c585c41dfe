// CPU time withheld by a hypervisor (see cpu_time.h).
#include "mltcp/lab/testbed/cpu_time.h"

#include <fstream>
#include <istream>
#include <string>

namespace mltcp::testbed {

CpuTime CpuTime::now() {
  std::ifstream file("/proc/stat");
  return from(file);
}

CpuTime CpuTime::from(std::istream& stat) {
  CpuTime time;
  std::string word;
  // Skips the word "cpu". The next eight fields are user, nice, system, idle, iowait, irq, softirq and steal. The
  // fields after these are ignored, because their time is included in user and nice.
  stat >> word;
  std::uint64_t ticks = 0;
  for (int field = 1; field <= 8 && stat >> ticks; ++field) {
    time.all += ticks;
    if (field == 8) time.stolen = ticks;
  }
  return time;
}

double CpuTime::stolen_since(const CpuTime& before) const {
  return all > before.all && stolen > before.stolen
             ? static_cast<double>(stolen - before.stolen) / static_cast<double>(all - before.all)
             : 0;
}

}  // namespace mltcp::testbed
