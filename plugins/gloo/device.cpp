#include "mltcp/plugins/gloo/device.h"

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
    const auto environment = ::mltcp::endpoint::read_environment(&::mltcp::endpoint::process_variable);
    return std::make_shared<OpenDevice>(with_environment(attributes, environment), environment.plan);
  } catch (const ::gloo::Exception&) {
    throw;
  } catch (const ::mltcp::InputError& error) {
    throw InvalidOperationException(std::string("MLTCP: ") + error.what());
  } catch (const std::exception& error) {
    throw IoException(std::string("MLTCP: ") + error.what());
  }
}

}  // namespace gloo::transport::mltcp
