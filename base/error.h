// The two kinds of failure that set-up code throws. Nothing on the data path throws.
//
// InputError: what the user wrote can't be used; the program exits with 2. Its message names file, line and key
// where there are any, the cause and the cure, in one line.
// RunError: the work failed although the input was good; the program exits with 1.
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
