// Schedules of the learning rate, with Python's names, settings, defaults and sequences.
//
// A schedule sets the rates of the first epoch when it is made, those of the next at each step(),
// which comes after the optimizer's. It refers to the optimizer, which must outlive it.
#pragma once

#include <rushlight/optim/optimizer.h>

#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rushlight::optim::lr_scheduler {

// A setting of all groups, or one for each.
class PerGroup {
 public:
  PerGroup(double value) : values_{value}, for_all_(true) {}
  PerGroup(std::vector<double> values) : values_(std::move(values)) {}
  PerGroup(std::initializer_list<double> values) : values_(values) {}
  // One for each; Error(Value) naming `name` where their number is not that of the groups.
  std::vector<double> values(const char* name, size_t groups) const;
  bool for_all() const { return for_all_; }
  size_t size() const { return values_.size(); }

 private:
  std::vector<double> values_;
  bool for_all_ = false;
};

// Names the state of a schedule, to save it or to take it back.
class RUSHLIGHT_API StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual void visit(const std::string& name, int64_t& value) = 0;
  virtual void visit(const std::string& name, double& value) = 0;
  virtual void visit(const std::string& name, std::vector<double>& values) = 0;
  std::string prefix;  // of the names, within a schedule of schedules
};

class RUSHLIGHT_API LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer, int64_t last_epoch = -1);
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  // Goes on to the next epoch; to `epoch`, by the closed form where there is one, which warns.
  virtual void step(std::optional<double> epoch = {});
  // The rates that the last step set, one a group.
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  int64_t last_epoch() const { return last_epoch_; }
  Optimizer& optimizer() const { return optimizer_; }
  // By name: numbers, and vectors of a number a group. Loading also gives the groups their rates.
  nn::NamedTensors state_dict();
  // Error(Key) where a name is missing, Error(Value) on one that is not of this schedule.
  void load_state_dict(const nn::NamedTensors& state);

  virtual void visit_state(StateVisitor& visitor);
  // Sets the rates of the first epoch: the last act of a schedule's constructor.
  virtual void begin();
  // Takes back the first step, for a schedule that begins later; see SequentialLR.
  virtual void undo() { --last_epoch_; }
  // Sets the rates of the next epoch, or of `epoch`.
  virtual void update(std::optional<double> epoch = {});
  virtual bool needs_metrics() const { return false; }

 protected:
  // The rates for last_epoch(), from the present ones or from base_lrs().
  virtual std::vector<double> get_lr() = 0;
  // The rates for last_epoch() as a formula of it; none where there is no other than get_lr.
  virtual std::optional<std::vector<double>> closed_form() { return std::nullopt; }

  std::vector<double> rates() const;  // the present ones
  // Each of the present or of the first rates, times or by a function.
  std::vector<double> scaled(double factor) const;
  std::vector<double> scaled_base(double factor) const;
  void set_rates(const std::vector<double>& values);
  void set_momenta(const std::vector<double>& values);
  void check_momentum() const;  // Error(Value) where the optimizer has none
  size_t groups() const { return optimizer_.group_count(); }
  double epoch() const { return static_cast<double>(last_epoch_); }

  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
  std::vector<double> last_lr_;
  int64_t last_epoch_;
  int64_t step_count_ = 0;
  bool initial_ = false;  // while the rates of the first epoch are set
};

using Lambda = std::function<double(int64_t epoch)>;

// The first rate times a function of the epoch.
class RUSHLIGHT_API LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, const Lambda& lr_lambda, int64_t last_epoch = -1);
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambda, int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;

 private:
  std::vector<Lambda> lambdas_;
};

// The last rate times a function of the epoch.
class RUSHLIGHT_API MultiplicativeLR : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, const Lambda& lr_lambda, int64_t last_epoch = -1);
  MultiplicativeLR(Optimizer& optimizer, std::vector<Lambda> lr_lambda, int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;

 private:
  std::vector<Lambda> lambdas_;
};

// Times `gamma` every `step_size` epochs.
class RUSHLIGHT_API StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1, int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;
  std::optional<std::vector<double>> closed_form() override;

 private:
  int64_t step_size_;
  double gamma_;
};

// Times `gamma` at each milestone.
class RUSHLIGHT_API MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1,
              int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;
  std::optional<std::vector<double>> closed_form() override;

 private:
  std::vector<int64_t> milestones_;  // sorted
  double gamma_;
};

// Times `factor` for the first `total_iters` epochs.
class RUSHLIGHT_API ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5,
                      int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;
  std::optional<std::vector<double>> closed_form() override;

 private:
  double factor_;
  int64_t total_iters_;
};

// Times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs.
class RUSHLIGHT_API LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0,
                    int64_t total_iters = 5, int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;
  std::optional<std::vector<double>> closed_form() override;

 private:
  double start_factor_;
  double end_factor_;
  int64_t total_iters_;
};

// Times `gamma` every epoch.
class RUSHLIGHT_API ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma, int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;
  std::optional<std::vector<double>> closed_form() override;

 private:
  double gamma_;
};

// Times (1 - epoch / total_iters) to the `power`.
class RUSHLIGHT_API PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1.0,
                        int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;
  std::optional<std::vector<double>> closed_form() override;

 private:
  int64_t total_iters_;
  double power_;
};

// From the first rate to `eta_min` in `T_max` epochs, and back (Loshchilov & Hutter, 2016).
class RUSHLIGHT_API CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0.0,
                    int64_t last_epoch = -1);

 protected:
  std::vector<double> get_lr() override;
  std::optional<std::vector<double>> closed_form() override;

 private:
  int64_t period_;
  double eta_min_;
};

// Half a cosine again and again, each `T_mult` times as long as the one before.
class RUSHLIGHT_API CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1,
                              double eta_min = 0.0, int64_t last_epoch = -1);
  // By one epoch, or to `epoch`, which may be fractional; Error(Value) below 0.
  void step(std::optional<double> epoch = {}) override;
  void visit_state(StateVisitor& visitor) override;

 protected:
  std::vector<double> get_lr() override;

 private:
  void go_to(double epoch);
  int64_t first_period_;
  int64_t growth_;
  double eta_min_;
  double period_;
  double place_;  // within the period
};

// Up and down between `base_lr` and `max_lr` (Smith, 2017). `mode` is "triangular", "triangular2"
// (half the height each cycle) or "exp_range" (times gamma each step); `scale_fn` scales the height
// by the cycle or the iteration instead ("cycle" or "iterations").
class RUSHLIGHT_API CyclicLR : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, const PerGroup& base_lr, const PerGroup& max_lr,
           int64_t step_size_up = 2000, std::optional<int64_t> step_size_down = {},
           std::string mode = "triangular", double gamma = 1.0,
           std::function<double(double)> scale_fn = {}, std::string scale_mode = "cycle",
           bool cycle_momentum = true, const PerGroup& base_momentum = 0.8,
           const PerGroup& max_momentum = 0.9, int64_t last_epoch = -1);
  void visit_state(StateVisitor& visitor) override;

 protected:
  std::vector<double> get_lr() override;

 private:
  double total_size_ = 0;
  double step_ratio_ = 0;
  bool by_cycle_ = true;
  bool cycle_momentum_;
  std::function<double(double)> scale_;
  std::vector<double> max_lrs_;
  std::vector<double> base_momenta_;
  std::vector<double> max_momenta_;
};

// Up to `max_lr` and down again, far below the start, once (Smith & Topin, 2018); its step comes
// after every batch. Momentum moves the other way. `anneal_strategy` is "cos" or "linear".
class RUSHLIGHT_API OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const PerGroup& max_lr, std::optional<int64_t> total_steps = {},
             std::optional<int64_t> epochs = {}, std::optional<int64_t> steps_per_epoch = {},
             double pct_start = 0.3, std::string anneal_strategy = "cos",
             bool cycle_momentum = true, const PerGroup& base_momentum = 0.85,
             const PerGroup& max_momentum = 0.95, double div_factor = 25.0,
             double final_div_factor = 1e4, bool three_phase = false, int64_t last_epoch = -1);
  void visit_state(StateVisitor& visitor) override;

 protected:
  std::vector<double> get_lr() override;

 private:
  using Bound = std::vector<double> OneCycleLR::*;
  struct Phase {
    double end;
    Bound start_lr, end_lr, start_momentum, end_momentum;
  };
  double anneal(double start, double end, double share) const;
  int64_t total_steps_;
  bool cosine_;
  bool cycle_momentum_;
  std::vector<Phase> phases_;
  std::vector<double> first_lrs_, max_lrs_, min_lrs_;
  std::vector<double> base_momenta_, max_momenta_;
};

using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;

// One schedule after the other, changing at the milestones.
class RUSHLIGHT_API SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, Schedulers schedulers, std::vector<int64_t> milestones,
               int64_t last_epoch = -1);
  void step(std::optional<double> epoch = {}) override;
  void visit_state(StateVisitor& visitor) override;
  void undo() override;

 protected:
  std::vector<double> get_lr() override { return rates(); }

 private:
  Schedulers schedulers_;
  std::vector<int64_t> milestones_;
};

// All schedules at every step, each on the rates that the one before has set.
class RUSHLIGHT_API ChainedScheduler : public LRScheduler {
 public:
  explicit ChainedScheduler(Schedulers schedulers, Optimizer* optimizer = nullptr);
  void step(std::optional<double> epoch = {}) override;
  void visit_state(StateVisitor& visitor) override;
  void undo() override;

 protected:
  std::vector<double> get_lr() override { return rates(); }

 private:
  Schedulers schedulers_;
};

// Times `factor` when a quantity has not improved for more than `patience` epochs. `mode` says
// whether less ("min") or more ("max") is better, `threshold` by how much, relative ("rel") or
// absolute ("abs"). After a reduction, `cooldown` epochs do not count.
class RUSHLIGHT_API ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, std::string mode = "min", double factor = 0.1,
                             int64_t patience = 10, double threshold = 1e-4,
                             std::string threshold_mode = "rel", int64_t cooldown = 0,
                             const PerGroup& min_lr = 0, double eps = 1e-8);
  // Takes the quantity measured in this epoch; Error(Type) without one.
  void step(std::optional<double> metrics = {}) override;
  void visit_state(StateVisitor& visitor) override;
  bool needs_metrics() const override { return true; }
  bool in_cooldown() const { return cooldown_counter_ > 0; }

 protected:
  std::vector<double> get_lr() override { return rates(); }

 private:
  bool is_better(double value) const;
  void reduce();
  bool less_is_better_;
  bool relative_;
  double factor_;
  int64_t patience_;
  double threshold_;
  int64_t cooldown_;
  std::vector<double> min_lrs_;
  bool same_min_lr_;
  double eps_;
  double best_;
  int64_t bad_epochs_ = 0;
  int64_t cooldown_counter_ = 0;
};

}  // namespace rushlight::optim::lr_scheduler
