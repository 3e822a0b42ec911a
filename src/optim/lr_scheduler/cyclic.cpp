// Schedules that cycle rate and momentum between two bounds.
#include <rushlight/optim/lr_scheduler.h>

#include <cmath>
#include <numbers>

namespace rushlight::optim::lr_scheduler {
namespace {

int64_t count_steps(std::optional<int64_t> total_steps, std::optional<int64_t> epochs,
                    std::optional<int64_t> steps_per_epoch) {
  const auto positive = [](const char* name, int64_t value) {
    if (value <= 0) {
      fail(ErrorKind::Value, "", "Expected positive integer ", name, ", but got ", value);
    }
    return value;
  };
  if (total_steps) {
    return positive("total_steps", *total_steps);
  }
  if (!epochs || !steps_per_epoch) {
    fail(ErrorKind::Value, "",
         "You must define either total_steps OR (epochs AND steps_per_epoch)");
  }
  return positive("epochs", *epochs) * positive("steps_per_epoch", *steps_per_epoch);
}

// Gives the groups their first rates before the schedule notes them.
Optimizer& with_rates(Optimizer& optimizer, const PerGroup& rates, int64_t last_epoch) {
  if (last_epoch == -1) {
    const std::vector<double> values = rates.values("base_lr", optimizer.group_count());
    for (size_t group = 0; group < values.size(); ++group) {
      optimizer.set_group_lr(group, values[group]);
    }
  }
  return optimizer;
}

Optimizer& with_first_rates(Optimizer& optimizer, const PerGroup& max_lr, double div_factor,
                            int64_t last_epoch) {
  const std::vector<double> values = max_lr.values("max_lr", optimizer.group_count());
  for (size_t group = 0; last_epoch == -1 && group < values.size(); ++group) {
    optimizer.initial_lr(group) = values[group] / div_factor;
  }
  return optimizer;
}

}  // namespace

CyclicLR::CyclicLR(Optimizer& optimizer, const PerGroup& base_lr, const PerGroup& max_lr,
                   int64_t step_size_up, std::optional<int64_t> step_size_down, std::string mode,
                   double gamma, std::function<double(double)> scale_fn, std::string scale_mode,
                   bool cycle_momentum, const PerGroup& base_momentum, const PerGroup& max_momentum,
                   int64_t last_epoch)
    : LRScheduler(with_rates(optimizer, base_lr, last_epoch), last_epoch),
      cycle_momentum_(cycle_momentum) {
  max_lrs_ = max_lr.values("max_lr", groups());
  const double up = static_cast<double>(step_size_up);
  total_size_ = up + static_cast<double>(step_size_down.value_or(step_size_up));
  step_ratio_ = up / total_size_;
  if (scale_fn) {
    scale_ = std::move(scale_fn);
    by_cycle_ = scale_mode == "cycle";
  } else if (mode == "triangular") {
    scale_ = [](double) { return 1.0; };
  } else if (mode == "triangular2") {
    scale_ = [](double x) { return 1 / std::pow(2.0, x - 1); };
  } else if (mode == "exp_range") {
    scale_ = [gamma](double x) { return std::pow(gamma, x); };
    by_cycle_ = false;
  } else {
    fail(ErrorKind::Value, "", "mode is invalid and scale_fn is None");
  }
  if (cycle_momentum) {
    check_momentum();
    base_momenta_ = base_momentum.values("base_momentum", groups());
    max_momenta_ = max_momentum.values("max_momentum", groups());
  }
  begin();
  base_lrs_ = base_lr.values("base_lr", groups());
}

std::vector<double> CyclicLR::get_lr() {
  const double cycle = std::floor(1 + epoch() / total_size_);
  const double x = 1.0 + epoch() / total_size_ - cycle;
  const double share = x <= step_ratio_ ? x / step_ratio_ : (x - 1) / (step_ratio_ - 1);
  const double scale = scale_(by_cycle_ ? cycle : epoch());
  std::vector<double> values = base_lrs_;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = values[i] + (max_lrs_[i] - values[i]) * share * scale;
  }
  if (cycle_momentum_) {
    std::vector<double> momenta = max_momenta_;
    for (size_t i = 0; i < momenta.size(); ++i) {
      momenta[i] = momenta[i] - (momenta[i] - base_momenta_[i]) * share * scale;
    }
    set_momenta(momenta);
  }
  return values;
}

void CyclicLR::visit_state(StateVisitor& visitor) {
  LRScheduler::visit_state(visitor);
  visitor.visit("max_lrs", max_lrs_);
  visitor.visit("total_size", total_size_);
  visitor.visit("step_ratio", step_ratio_);
  visitor.visit("base_momentums", base_momenta_);
  visitor.visit("max_momentums", max_momenta_);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const PerGroup& max_lr,
                       std::optional<int64_t> total_steps, std::optional<int64_t> epochs,
                       std::optional<int64_t> steps_per_epoch, double pct_start,
                       std::string anneal_strategy, bool cycle_momentum,
                       const PerGroup& base_momentum, const PerGroup& max_momentum,
                       double div_factor, double final_div_factor, bool three_phase,
                       int64_t last_epoch)
    : LRScheduler(with_first_rates(optimizer, max_lr, div_factor, last_epoch), last_epoch),
      total_steps_(count_steps(total_steps, epochs, steps_per_epoch)),
      cosine_(anneal_strategy == "cos"),
      cycle_momentum_(cycle_momentum) {
  if (!(pct_start >= 0 && pct_start <= 1)) {
    fail(ErrorKind::Value, "", "Expected float between 0 and 1 pct_start, but got ", pct_start);
  }
  if (!cosine_ && anneal_strategy != "linear") {
    fail(ErrorKind::Value, "", "anneal_strategy must be one of 'cos' or 'linear', instead got ",
         anneal_strategy);
  }
  using One = OneCycleLR;
  const double total = static_cast<double>(total_steps_);
  phases_.push_back({pct_start * total - 1, &One::first_lrs_, &One::max_lrs_, &One::max_momenta_,
                     &One::base_momenta_});
  if (three_phase) {
    phases_.push_back({2 * pct_start * total - 2, &One::max_lrs_, &One::first_lrs_,
                       &One::base_momenta_, &One::max_momenta_});
    phases_.push_back(
        {total - 1, &One::first_lrs_, &One::min_lrs_, &One::max_momenta_, &One::max_momenta_});
  } else {
    phases_.push_back(
        {total - 1, &One::max_lrs_, &One::min_lrs_, &One::base_momenta_, &One::max_momenta_});
  }
  max_lrs_ = max_lr.values("max_lr", groups());
  for (const double rate : max_lrs_) {
    first_lrs_.push_back(rate / div_factor);
    min_lrs_.push_back(rate / div_factor / final_div_factor);
  }
  if (cycle_momentum) {
    check_momentum();
    max_momenta_ = max_momentum.values("max_momentum", groups());
    base_momenta_ = base_momentum.values("base_momentum", groups());
  }
  begin();
}

double OneCycleLR::anneal(double start, double end, double share) const {
  if (cosine_) {
    return end + (start - end) / 2.0 * (std::cos(std::numbers::pi * share) + 1);
  }
  return (end - start) * share + start;
}

std::vector<double> OneCycleLR::get_lr() {
  if (last_epoch_ > total_steps_) {
    fail(ErrorKind::Value, "", "Tried to step ", last_epoch_,
         " times. The specified number of total steps is ", total_steps_);
  }
  double start = 0;
  size_t now = 0;
  while (epoch() > phases_[now].end && now + 1 < phases_.size()) {
    start = phases_[now++].end;
  }
  const Phase& phase = phases_[now];
  const double share = (epoch() - start) / (phase.end - start);
  std::vector<double> values;
  std::vector<double> momenta;
  for (size_t i = 0; i < max_lrs_.size(); ++i) {
    values.push_back(anneal((this->*phase.start_lr)[i], (this->*phase.end_lr)[i], share));
    if (cycle_momentum_) {
      momenta.push_back(
          anneal((this->*phase.start_momentum)[i], (this->*phase.end_momentum)[i], share));
    }
  }
  set_momenta(momenta);
  return values;
}

void OneCycleLR::visit_state(StateVisitor& visitor) {
  LRScheduler::visit_state(visitor);
  visitor.visit("total_steps", total_steps_);
  visitor.visit("initial_lr", first_lrs_);
  visitor.visit("max_lr", max_lrs_);
  visitor.visit("min_lr", min_lrs_);
  visitor.visit("base_momentum", base_momenta_);
  visitor.visit("max_momentum", max_momenta_);
}

}  // namespace rushlight::optim::lr_scheduler
