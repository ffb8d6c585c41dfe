// The two kinds of failure that set-up code throws. The data path never throws.
//
// InputError: the user's input is invalid; the program exits with 2. The message is one line with file, line and key
// (if they apply), cause and cure.
// RunError: the work failed although the input was valid; the program exits with 1.
#pragma once

#include <stdexcept>
#include <string>

namespace mltcp {

struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace mltcp
