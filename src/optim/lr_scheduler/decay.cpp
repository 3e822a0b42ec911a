// Schedules that scale the rate by a function, by steps or along a curve.
#include <rushlight/optim/lr_scheduler.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rushlight::optim::lr_scheduler {
namespace {

// As Python's //, which rounds down.
int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

void check_period(const char* name, int64_t value) {
  if (value == 0) {
    fail(ErrorKind::ZeroDivision, "", "integer modulo by zero: ", name, " is 0");
  }
}

std::vector<Lambda> one_for_each(std::vector<Lambda> lambdas, size_t groups) {
  if (lambdas.size() != groups) {
    fail(ErrorKind::Value, "", "Expected ", groups, " lr_lambdas, but got ", lambdas.size());
  }
  return lambdas;
}

// The share of `total` that has passed at `epoch`.
double passed(int64_t total, int64_t epoch) {
  if (total == 0) {
    fail(ErrorKind::ZeroDivision, "", "division by zero: total_iters is 0");
  }
  return static_cast<double>(std::min(total, epoch)) / static_cast<double>(total);
}

}  // namespace

LambdaLR::LambdaLR(Optimizer& optimizer, const Lambda& lr_lambda, int64_t last_epoch)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.group_count(), lr_lambda), last_epoch) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambda, int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch), lambdas_(one_for_each(std::move(lr_lambda), groups())) {
  begin();
}

std::vector<double> LambdaLR::get_lr() {
  std::vector<double> values = base_lrs_;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] *= lambdas_[i](last_epoch_);
  }
  return values;
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, const Lambda& lr_lambda,
                                   int64_t last_epoch)
    : MultiplicativeLR(optimizer, std::vector<Lambda>(optimizer.group_count(), lr_lambda),
                       last_epoch) {}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<Lambda> lr_lambda,
                                   int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch), lambdas_(one_for_each(std::move(lr_lambda), groups())) {
  begin();
}

std::vector<double> MultiplicativeLR::get_lr() {
  std::vector<double> values = rates();
  for (size_t i = 0; !initial_ && i < lambdas_.size(); ++i) {
    values[i] *= lambdas_[i](last_epoch_);
  }
  return values;
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma, int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch), step_size_(step_size), gamma_(gamma) {
  begin();
}

std::vector<double> StepLR::get_lr() {
  if (last_epoch_ == 0) {
    return rates();
  }
  check_period("step_size", step_size_);
  return last_epoch_ % step_size_ != 0 ? rates() : scaled(gamma_);
}

std::optional<std::vector<double>> StepLR::closed_form() {
  check_period("step_size", step_size_);
  const int64_t times = floor_divide(last_epoch_, step_size_);
  return scaled_base(std::pow(gamma_, static_cast<double>(times)));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma,
                         int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  begin();
}

std::vector<double> MultiStepLR::get_lr() {
  const auto times = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return times == 0 ? rates() : scaled(std::pow(gamma_, static_cast<double>(times)));
}

std::optional<std::vector<double>> MultiStepLR::closed_form() {
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  return scaled_base(std::pow(gamma_, static_cast<double>(next - milestones_.begin())));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters, int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch), factor_(factor), total_iters_(total_iters) {
  if (factor > 1.0 || factor < 0) {
    fail(ErrorKind::Value, "", "Constant multiplicative factor expected to be between 0 and 1.");
  }
  begin();
}

std::vector<double> ConstantLR::get_lr() {
  if (last_epoch_ == 0) {
    return scaled(factor_);
  }
  return last_epoch_ != total_iters_ ? rates() : scaled(1.0 / factor_);
}

std::optional<std::vector<double>> ConstantLR::closed_form() {
  return scaled_base(factor_ + (last_epoch_ >= total_iters_ ? 1 : 0) * (1 - factor_));
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor,
                   int64_t total_iters, int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch),
      start_factor_(start_factor),
      end_factor_(end_factor),
      total_iters_(total_iters) {
  if (start_factor > 1.0 || start_factor <= 0) {
    fail(ErrorKind::Value, "",
         "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
  }
  if (end_factor > 1.0 || end_factor < 0) {
    fail(ErrorKind::Value, "", "Ending multiplicative factor expected to be between 0 and 1.");
  }
  begin();
}

std::vector<double> LinearLR::get_lr() {
  if (last_epoch_ == 0) {
    return scaled(start_factor_);
  }
  if (initial_ || last_epoch_ > total_iters_) {
    return rates();
  }
  const double change = end_factor_ - start_factor_;
  const double before = static_cast<double>(total_iters_) * start_factor_ + (epoch() - 1) * change;
  return scaled(1.0 + change / before);
}

std::optional<std::vector<double>> LinearLR::closed_form() {
  const double share = passed(total_iters_, last_epoch_);
  return scaled_base(start_factor_ + (end_factor_ - start_factor_) * share);
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma, int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch), gamma_(gamma) {
  begin();
}

std::vector<double> ExponentialLR::get_lr() {
  return initial_ ? rates() : scaled(gamma_);
}

std::optional<std::vector<double>> ExponentialLR::closed_form() {
  return scaled_base(std::pow(gamma_, epoch()));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power,
                           int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch), total_iters_(total_iters), power_(power) {
  begin();
}

std::vector<double> PolynomialLR::get_lr() {
  if (initial_ || last_epoch_ > total_iters_) {
    return rates();
  }
  const double total = static_cast<double>(total_iters_);
  const double now = 1.0 - epoch() / total;
  const double before = 1.0 - (epoch() - 1) / total;
  return scaled(std::pow(now / before, power_));
}

std::optional<std::vector<double>> PolynomialLR::closed_form() {
  return scaled_base(std::pow(1.0 - passed(total_iters_, last_epoch_), power_));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min,
                                     int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch), period_(T_max), eta_min_(eta_min) {
  begin();
}

std::vector<double> CosineAnnealingLR::get_lr() {
  constexpr double pi = std::numbers::pi;
  std::vector<double> values = rates();
  if (last_epoch_ == 0 || initial_) {
    return values;
  }
  check_period("T_max", period_);
  const double period = static_cast<double>(period_);
  if ((last_epoch_ - 1 - period_) % (2 * period_) == 0) {
    const double rise = (1 - std::cos(pi / period)) / 2;
    for (size_t i = 0; i < base_lrs_.size(); ++i) {
      values[i] += (base_lrs_[i] - eta_min_) * rise;
    }
    return values;
  }
  const double ratio =
      (1 + std::cos(pi * epoch() / period)) / (1 + std::cos(pi * (epoch() - 1) / period));
  for (double& value : values) {
    value = ratio * (value - eta_min_) + eta_min_;
  }
  return values;
}

std::optional<std::vector<double>> CosineAnnealingLR::closed_form() {
  check_period("T_max", period_);
  const double turn = std::numbers::pi * epoch() / static_cast<double>(period_);
  const double share = (1 + std::cos(turn)) / 2;
  std::vector<double> values = base_lrs_;
  for (double& value : values) {
    value = eta_min_ + (value - eta_min_) * share;
  }
  return values;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0,
                                                         int64_t T_mult, double eta_min,
                                                         int64_t last_epoch)
    : LRScheduler(optimizer, last_epoch),
      first_period_(T_0),
      growth_(T_mult),
      eta_min_(eta_min),
      period_(static_cast<double>(T_0)),
      place_(static_cast<double>(last_epoch)) {
  if (T_0 <= 0) {
    fail(ErrorKind::Value, "", "Expected positive integer T_0, but got ", T_0);
  }
  if (T_mult < 1) {
    fail(ErrorKind::Value, "", "Expected integer T_mult >= 1, but got ", T_mult);
  }
  begin();
}

std::vector<double> CosineAnnealingWarmRestarts::get_lr() {
  const double share = (1 + std::cos(std::numbers::pi * place_ / period_)) / 2;
  std::vector<double> values = base_lrs_;
  for (double& value : values) {
    value = eta_min_ + (value - eta_min_) * share;
  }
  return values;
}

void CosineAnnealingWarmRestarts::step(std::optional<double> epoch) {
  double to = epoch.value_or(0);
  if (!epoch && last_epoch_ >= 0) {
    to = static_cast<double>(last_epoch_ + 1);
    place_ += 1;
    if (place_ >= period_) {
      place_ = std::fmod(place_, period_);
      period_ *= static_cast<double>(growth_);
    }
  } else {
    if (to < 0) {
      fail(ErrorKind::Value, "", "Expected non-negative epoch, but got ", to);
    }
    go_to(to);
  }
  last_epoch_ = static_cast<int64_t>(std::floor(to));
  set_rates(get_lr());
}

void CosineAnnealingWarmRestarts::go_to(double epoch) {
  const double first = static_cast<double>(first_period_);
  const double growth = static_cast<double>(growth_);
  period_ = first;
  if (epoch < first) {
    place_ = epoch;
  } else if (growth_ == 1) {
    place_ = std::fmod(epoch, first);
  } else {
    const double grown = epoch / first * (growth - 1) + 1;
    const double cycle = std::trunc(std::log(grown) / std::log(growth));
    const double power = std::pow(growth, cycle);
    place_ = epoch - first * (power - 1) / (growth - 1);
    period_ = first * power;
  }
}

void CosineAnnealingWarmRestarts::visit_state(StateVisitor& visitor) {
  LRScheduler::visit_state(visitor);
  visitor.visit("T_i", period_);
  visitor.visit("T_cur", place_);
}

}  // namespace rushlight::optim::lr_scheduler
