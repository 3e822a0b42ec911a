// A = Z T Z^-1 of a general real matrix, T upper quasi-triangular: 1 x 1 and 2 x 2 blocks on its
// diagonal, the latter with complex eigenvalues.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace rushlight::kernels {

struct Schur {
  int64_t n;
  std::vector<double> t;  // column-major
  std::vector<double> z;  // empty where not wanted
  std::vector<std::complex<double>> values;
  int32_t failed;

  // Balances (so Z is not orthogonal), reduces to Hessenberg form, then Francis' double shifts.
  Schur(int64_t size, std::vector<double> a, bool vectors);
  double& at(int64_t i, int64_t j) { return t[static_cast<size_t>(i + j * n)]; }
  double at(int64_t i, int64_t j) const { return t[static_cast<size_t>(i + j * n)]; }

 private:
  void exchange(int64_t i, int64_t j);
  void isolate();
  void scale();
  void undo_balance();
  void reduce();
  void iterate();
  bool split(int64_t& last);
  // Two shifts that a double step takes: a conjugate pair, or one real number twice.
  struct Shifts {
    double real;
    double imaginary;
  };
  bool negligible(int64_t k) const;
  Shifts choose_shifts(int64_t first, int64_t last, int iteration) const;
  int64_t first_column(int64_t first, int64_t last, Shifts shifts, double* v) const;
  void sweep(int64_t first, int64_t last, Shifts shifts);
  void reflect(int64_t k, int64_t count, const double* v, double tau, int64_t low, int64_t high);

  int64_t low_;  // what is before and from `high_` on was isolated
  int64_t high_;
  std::vector<double> scales_;
  std::vector<std::pair<int64_t, int64_t>> exchanges_;
};

}  // namespace rushlight::kernels
