// Optimizers with Python's names, settings and defaults, and schedules of the learning rate.
#pragma once

#include <rushlight/optim/adam.h>
#include <rushlight/optim/descent.h>
#include <rushlight/optim/lbfgs.h>
#include <rushlight/optim/lr_scheduler.h>
#include <rushlight/optim/mean_square.h>
