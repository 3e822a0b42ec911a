#include <rushlight/generated/functions.h>
#include <rushlight/optim/lr_scheduler.h>

#include <algorithm>

namespace rushlight::optim::lr_scheduler {
namespace {

class Saver : public StateVisitor {
 public:
  void visit(const std::string& name, int64_t& value) override {
    add(name, full({}, value, TensorOptions(DType::Int64)));
  }
  void visit(const std::string& name, double& value) override {
    add(name, full({}, value, TensorOptions(DType::Float64)));
  }
  void visit(const std::string& name, std::vector<double>& values) override {
    const Tensor row = empty({static_cast<int64_t>(values.size())}, TensorOptions(DType::Float64));
    std::copy(values.begin(), values.end(), row.data_ptr<double>());
    add(name, row);
  }
  nn::NamedTensors saved;

 private:
  void add(const std::string& name, const Tensor& value) {
    saved.emplace_back(prefix + name, value);
  }
};

class Loader : public StateVisitor {
 public:
  explicit Loader(const nn::NamedTensors& state) : state_(state) {}
  void visit(const std::string& name, int64_t& value) override {
    value = find(name, 0).item().to_int();
  }
  void visit(const std::string& name, double& value) override {
    value = find(name, 0).item().to_double();
  }
  void visit(const std::string& name, std::vector<double>& values) override {
    const Tensor row = contiguous(to(find(name, 1), DType::Float64));
    values.assign(row.data_ptr<double>(), row.data_ptr<double>() + row.numel());
  }
  size_t found = 0;

 private:
  const Tensor& find(const std::string& name, int64_t rank) {
    for (const auto& [own, tensor] : state_) {
      if (own != prefix + name) {
        continue;
      }
      ++found;
      if (!tensor.defined() || tensor.dim() != rank) {
        fail(ErrorKind::Value, "load_state_dict", "expected '", own, "' to have ", rank,
             " dimensions, got ", tensor.defined() ? cat(tensor.sizes()) : "nothing");
      }
      return tensor;
    }
    fail(ErrorKind::Key, "load_state_dict", "the state has no '", prefix + name, "'");
  }
  const nn::NamedTensors& state_;
};

constexpr const char* kEpochText =
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available.";

constexpr const char* kOrderText =
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
    "schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate";

}  // namespace

std::vector<double> PerGroup::values(const char* name, size_t groups) const {
  if (for_all_) {
    return std::vector<double>(groups, values_[0]);
  }
  if (values_.size() != groups) {
    fail(ErrorKind::Value, "", name, " must have the same length as optimizer.param_groups. ", name,
         " has ", values_.size(), " values, param_groups has ", groups, ".");
  }
  return values_;
}

LRScheduler::LRScheduler(Optimizer& optimizer, int64_t last_epoch)
    : optimizer_(optimizer), last_epoch_(last_epoch) {
  for (size_t group = 0; group < groups(); ++group) {
    std::optional<double>& first = optimizer.initial_lr(group);
    if (last_epoch == -1 && !first) {
      first = optimizer.group_lr(group);
    }
    if (!first) {
      fail(ErrorKind::Key, "", "param 'initial_lr' is not specified in param_groups[", group,
           "] when resuming scheduler with last_epoch >= 0.");
    }
    base_lrs_.push_back(*first);
  }
  last_lr_ = rates();
}

void LRScheduler::begin() {
  step_count_ = 0;
  initial_ = true;
  step();
  initial_ = false;
}

void LRScheduler::step(std::optional<double> epoch) {
  if (step_count_ == 1 && !optimizer_.has_stepped()) {
    warn(kOrderText);
  }
  ++step_count_;
  if (epoch) {
    warn(kEpochText);
  }
  update(epoch);
}

void LRScheduler::update(std::optional<double> epoch) {
  last_epoch_ = epoch ? static_cast<int64_t>(*epoch) : last_epoch_ + 1;
  std::optional<std::vector<double>> values;
  if (epoch) {
    values = closed_form();
  }
  set_rates(values ? *values : get_lr());
}

std::vector<double> LRScheduler::rates() const {
  std::vector<double> values;
  for (size_t group = 0; group < groups(); ++group) {
    values.push_back(optimizer_.group_lr(group));
  }
  return values;
}

std::vector<double> LRScheduler::scaled(double factor) const {
  std::vector<double> values = rates();
  for (double& value : values) {
    value *= factor;
  }
  return values;
}

std::vector<double> LRScheduler::scaled_base(double factor) const {
  std::vector<double> values = base_lrs_;
  for (double& value : values) {
    value *= factor;
  }
  return values;
}

void LRScheduler::set_rates(const std::vector<double>& values) {
  for (size_t group = 0; group < std::min(groups(), values.size()); ++group) {
    optimizer_.set_group_lr(group, values[group]);
  }
  last_lr_ = rates();
}

void LRScheduler::set_momenta(const std::vector<double>& values) {
  for (size_t group = 0; group < std::min(groups(), values.size()); ++group) {
    optimizer_.set_group_momentum(group, values[group]);
  }
}

void LRScheduler::check_momentum() const {
  if (!optimizer_.group_momentum(0)) {
    fail(ErrorKind::Value, "",
         "optimizer must support momentum or beta1 with `cycle_momentum` option enabled");
  }
}

void LRScheduler::visit_state(StateVisitor& visitor) {
  visitor.visit("last_epoch", last_epoch_);
  visitor.visit("_step_count", step_count_);
  visitor.visit("base_lrs", base_lrs_);
  visitor.visit("_last_lr", last_lr_);
}

nn::NamedTensors LRScheduler::state_dict() {
  Saver saver;
  visit_state(saver);
  return saver.saved;
}

void LRScheduler::load_state_dict(const nn::NamedTensors& state) {
  Saver old;
  visit_state(old);
  Loader loader(state);
  try {
    visit_state(loader);
    if (loader.found != state.size()) {
      fail(ErrorKind::Value, "load_state_dict", "expected the ", loader.found,
           " names of this schedule, got ", state.size());
    }
  } catch (...) {
    Loader back(old.saved);
    visit_state(back);
    throw;
  }
  set_rates(last_lr_);
}

}  // namespace rushlight::optim::lr_scheduler
