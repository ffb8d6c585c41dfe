// Returns the text of the exception that a call throws, for tests of error messages.
#pragma once

#include <string>

#include "matchers.h"
#include "mltcp/base/error.h"

namespace mltcp {

/// Returns the text of the `Error` that `call` throws, or "no error" if it throws none.
template <typename Error, typename Call>
std::string message_of(Call call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Returns the text of the error with which `call` refuses its input. Expects one line that begins with `where` and
/// contains a cure after "; ".
template <typename Error = InputError, typename Call>
std::string refusal_of(Call call, const std::string& where = "") {
  std::string message = message_of<Error>(call);
  if (message == "no error") return message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_THAT(message, AllOf(StartsWith(where), HasSubstr("; ")));
  return message;
}

}  // namespace mltcp
