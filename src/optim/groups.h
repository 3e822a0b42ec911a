// What every optimizer does with its groups of parameters and their state.
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/optim.h>

#include <string>
#include <utility>
#include <vector>

namespace rushlight::optim {

// Error(Value): "Invalid momentum value: -1.0".
void check_nonnegative(const char* name, double value);

// "12.exp_avg" as 12 and "exp_avg"; Error(Value) where it is no such name.
std::pair<size_t, std::string> state_name(const std::string& name);

// Makes `target` a copy of `value`, in place where there is one; Error(Value) naming `name` where
// the shape is not `sizes`.
void take_state(Tensor& target, const Tensor& value, IntArrayRef sizes, const std::string& name);

[[noreturn]] void unknown_state(const std::string& name);

template <typename Options>
std::vector<Group<Options>> one_group(std::vector<Tensor> params, const Options& options) {
  std::vector<Group<Options>> groups;
  groups.push_back({std::move(params), options});
  return groups;
}

template <typename Options>
std::vector<Tensor> all_parameters(const std::vector<Group<Options>>& groups) {
  std::vector<Tensor> found;
  for (const Group<Options>& group : groups) {
    found.insert(found.end(), group.params.begin(), group.params.end());
  }
  return found;
}

// Parameter `number` counted over all groups, as (group, place); Error(Value) past the last.
template <typename Options>
std::pair<size_t, size_t> place_of(const std::vector<Group<Options>>& groups, size_t number,
                                   const std::string& name) {
  size_t rest = number;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (rest < groups[g].params.size()) {
      return {g, rest};
    }
    rest -= groups[g].params.size();
  }
  fail(ErrorKind::Value, "load_state_dict", "'", name, "' is the state of parameter ", number,
       ", but the optimizer has ", number - rest);
}

}  // namespace rushlight::optim
