// Further names of operators. An alias has every overload of its operator and the same functions,
// methods and in-place forms; names that begin with a submodule (special_, linalg_) have functions
// only.
#pragma once

#include <span>

namespace rushlight {

struct Alias {
  const char* alias;
  const char* name;
};

std::span<const Alias> operator_aliases();

}  // namespace rushlight
