// Functions that the C++ library lacks.
#pragma once

namespace rushlight::loop {

double erfinv_f64(double x);
double digamma_f64(double x);
double lgamma_f64(double x);  // std::lgamma without the global sign it writes

}  // namespace rushlight::loop
