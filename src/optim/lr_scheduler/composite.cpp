// Schedules made of other schedules, and one that follows a measured quantity.
#include <rushlight/optim/lr_scheduler.h>

#include <algorithm>
#include <limits>

namespace rushlight::optim::lr_scheduler {
namespace {

// Error(Value) unless all are schedules of this optimizer that step alone.
Schedulers checked(const char* name, const char* purpose, Schedulers schedulers,
                   const Optimizer* optimizer) {
  if (schedulers.empty()) {
    fail(ErrorKind::Value, "", name, " expects at least one scheduler", purpose,
         ", but got no scheduler.");
  }
  for (size_t index = 0; index < schedulers.size(); ++index) {
    if (schedulers[index] == nullptr) {
      fail(ErrorKind::Type, "", name, " at index ", index,
           " should have `optimizer` as its attribute.");
    }
    if (schedulers[index]->needs_metrics()) {
      fail(ErrorKind::Value, "", name,
           " does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
           "specified when calling `step`, but got one at index ",
           index, " in the given schedulers sequence.");
    }
    if (optimizer != nullptr && &schedulers[index]->optimizer() != optimizer) {
      fail(ErrorKind::Value, "", name,
           " expects all schedulers to belong to the same optimizer, but got a scheduler of "
           "another at index ",
           index, ".");
    }
  }
  return schedulers;
}

void visit_all(Schedulers& schedulers, StateVisitor& visitor) {
  const std::string prefix = visitor.prefix;
  for (size_t index = 0; index < schedulers.size(); ++index) {
    visitor.prefix = cat(prefix, "_schedulers.", index, ".");
    schedulers[index]->visit_state(visitor);
  }
  visitor.prefix = prefix;
}

}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, Schedulers schedulers,
                           std::vector<int64_t> milestones, int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch),
      schedulers_(checked("SequentialLR", "", std::move(schedulers), &optimizer)),
      milestones_(std::move(milestones)) {
  if (milestones_.size() + 1 != schedulers_.size()) {
    fail(ErrorKind::Value, "",
         "Sequential Schedulers expects number of schedulers provided to be one more than the "
         "number of milestone points, but got number of schedulers ",
         schedulers_.size(), " and the number of milestones to be equal to ", milestones_.size());
  }
  last_epoch_ = last_epoch + 1;
  // Every schedule has set its first rates; only the first one's count.
  set_rates(base_lrs_);
  for (const auto& scheduler : schedulers_) {
    scheduler->undo();
  }
  schedulers_[0]->begin();
  last_lr_ = schedulers_[0]->get_last_lr();
}

void SequentialLR::undo() {
  for (const auto& scheduler : schedulers_) {
    scheduler->undo();
  }
}

void SequentialLR::step(std::optional<double>) {
  ++last_epoch_;
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  const size_t index = static_cast<size_t>(next - milestones_.begin());
  LRScheduler& scheduler = *schedulers_[index];
  if (index > 0 && milestones_[index - 1] == last_epoch_) {
    scheduler.update(0);
  } else {
    scheduler.step();
  }
  last_lr_ = scheduler.get_last_lr();
}

void SequentialLR::visit_state(StateVisitor& visitor) {
  LRScheduler::visit_state(visitor);
  visit_all(schedulers_, visitor);
}

ChainedScheduler::ChainedScheduler(Schedulers schedulers, Optimizer* optimizer)
    : LRScheduler(
          optimizer != nullptr
              ? *optimizer
              : checked("ChainedScheduler", " to be chained", schedulers, nullptr)[0]->optimizer()),
      schedulers_(
          checked("ChainedScheduler", " to be chained", std::move(schedulers), &optimizer_)) {}

void ChainedScheduler::undo() {
  for (const auto& scheduler : schedulers_) {
    scheduler->undo();
  }
}

void ChainedScheduler::step(std::optional<double>) {
  for (const auto& scheduler : schedulers_) {
    scheduler->step();
  }
  last_lr_ = rates();
}

void ChainedScheduler::visit_state(StateVisitor& visitor) {
  LRScheduler::visit_state(visitor);
  visit_all(schedulers_, visitor);
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, std::string mode, double factor,
                                     int64_t patience, double threshold, std::string threshold_mode,
                                     int64_t cooldown, const PerGroup& min_lr, double eps)
    : LRScheduler(optimizer),
      less_is_better_(mode == "min"),
      relative_(threshold_mode == "rel"),
      factor_(factor),
      patience_(patience),
      threshold_(threshold),
      cooldown_(cooldown),
      same_min_lr_(min_lr.for_all()),
      eps_(eps) {
  if (factor >= 1.0) {
    fail(ErrorKind::Value, "", "Factor should be < 1.0.");
  }
  if (!same_min_lr_ && min_lr.size() != groups()) {
    fail(ErrorKind::Value, "", "expected ", groups(), " min_lrs, got ", min_lr.size());
  }
  if (!less_is_better_ && mode != "max") {
    fail(ErrorKind::Value, "", "mode ", mode, " is unknown!");
  }
  if (!relative_ && threshold_mode != "abs") {
    fail(ErrorKind::Value, "", "threshold mode ", threshold_mode, " is unknown!");
  }
  min_lrs_ = min_lr.values("min_lr", groups());
  const double infinity = std::numeric_limits<double>::infinity();
  best_ = less_is_better_ ? infinity : -infinity;
  last_epoch_ = 0;
}

bool ReduceLROnPlateau::is_better(double value) const {
  const double sign = less_is_better_ ? -1.0 : 1.0;
  const double bound = relative_ ? best_ * (1.0 + sign * threshold_) : best_ + sign * threshold_;
  return less_is_better_ ? value < bound : value > bound;
}

void ReduceLROnPlateau::step(std::optional<double> metrics) {
  if (!metrics) {
    fail(ErrorKind::Type, "",
         "ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'");
  }
  ++last_epoch_;
  if (is_better(*metrics)) {
    best_ = *metrics;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (in_cooldown()) {
    --cooldown_counter_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ > patience_) {
    reduce();
    cooldown_counter_ = cooldown_;
    bad_epochs_ = 0;
  }
  last_lr_ = rates();
}

void ReduceLROnPlateau::reduce() {
  if (groups() != min_lrs_.size()) {
    if (!same_min_lr_) {
      fail(ErrorKind::Runtime, "", "The number of param groups in the `optimizer` (", groups(),
           ") differs from when `ReduceLROnPlateau` was initialized (", min_lrs_.size(),
           "), usually due to a new param group being added to the optimizer. Please give one "
           "`min_lr` for all groups, or make the schedule after the last group.");
    }
    min_lrs_.resize(groups(), min_lrs_.at(0));
  }
  for (size_t group = 0; group < groups(); ++group) {
    const double old = optimizer_.group_lr(group);
    const double now = std::max(old * factor_, min_lrs_[group]);
    if (old - now > eps_) {
      optimizer_.set_group_lr(group, now);
    }
  }
}

void ReduceLROnPlateau::visit_state(StateVisitor& visitor) {
  LRScheduler::visit_state(visitor);
  visitor.visit("best", best_);
  visitor.visit("num_bad_epochs", bad_epochs_);
  visitor.visit("cooldown_counter", cooldown_counter_);
}

}  // namespace rushlight::optim::lr_scheduler
