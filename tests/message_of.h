// What an exception says that a call throws, for tests of messages.
#pragma once

#include <exception>
#include <string>

namespace mltcp {

template <typename Error, typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no such exception";
}

}  // namespace mltcp
