#include "mltcp/plugins/gloo/device.h"

#include <cstdlib>
#include <exception>

#include "gloo/common/error.h"
#include "mltcp/base/error.h"
#include "mltcp/plugins/gloo/internal/layout.h"
#include "mltcp/plugins/gloo/internal/open_device.h"

namespace gloo::transport::mltcp {

Device::~Device() = default;

std::shared_ptr<Device> CreateDeviceFor(const GlooLayout& caller, const attr& attributes) {
  check_layout(caller);
  check_loaded_gloo();
  try {
    return std::make_shared<OpenDevice>(
        with_environment(attributes, [](const char* name) -> const char* { return std::getenv(name); }));
  } catch (const ::gloo::Exception&) {
    throw;
  } catch (const ::mltcp::InputError& error) {
    throw InvalidOperationException(std::string("MLTCP: ") + error.what());
  } catch (const std::exception& error) {
    throw IoException(std::string("MLTCP: ") + error.what());
  }
}

}  // namespace gloo::transport::mltcp
