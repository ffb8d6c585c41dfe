// The text of the exception that a call throws, for tests of messages.
#pragma once

#include <string>

#include "matchers.h"
#include "mltcp/base/error.h"

namespace mltcp {

/// "no error" if the call throws none.
template <typename Error, typename Call>
std::string message_of(Call call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The message with which the call refuses its input. Expects one line that begins with `where` and has a cure.
template <typename Error = InputError, typename Call>
std::string refusal_of(Call call, const std::string& where = "") {
  std::string message = message_of<Error>(call);
  if (message == "no error") return message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_THAT(message, AllOf(StartsWith(where), HasSubstr("; ")));
  return message;
}

}  // namespace mltcp
