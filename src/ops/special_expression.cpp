#include "ops/special_expression.h"

#include <cmath>
#include <limits>
#include <span>

namespace rushlight::special {
namespace {

using loop::Expr;

// Chebyshev series of exp(-x) I_n(x), of order 1 over x, on [0, 8] in t = x / 4 - 1 (Near), and of
// exp(-x) sqrt(x) I_n(x) from 8 on in t = 16 / x - 1 (Far), written as polynomials in t: on
// [-1, 1] their terms stay near the size of their sum. Cut at 2e-17 (Fine) and 3e-9 (Short).
constexpr double kI0NearFine[] = {
    0.207001921223986698,    -0.113004326886205486,    0.0945156285399510293,
    -0.0890434413607596224,  0.0873434161755231249,    -0.0849633809161630495,
    0.0792752259071634677,   -0.0695411956171938065,   0.0567770320199169499,
    -0.0429859494547961169,  0.030177912022978356,     -0.0196826546905923394,
    0.0119600779070262215,   -0.0067923998730731696,   0.003617126448897043,
    -0.00181188679393772389, 0.000856315274827230595,  -0.000382902095500659771,
    0.000162405421628781069, -0.000065508613896208514, 0.0000252023272710769198,
    -9.25168058443265429e-6, 3.22933908264049277e-6,   -1.08833939700725182e-6,
    3.67584292655542929e-7,  -1.13841146417472559e-7,  2.62653631519701112e-8,
    -7.72309455684633221e-9, 4.47051672751174033e-9,   -1.18523424826847226e-9};
constexpr double kI0FarFine[] = {
    0.402176509445008084,     0.00336055198366775045,   0.000136216074389847352,
    0.0000111430338007089789, 1.48384766512502658e-6,   2.97359604656271172e-7,
    8.87203438331414372e-8,   3.93288937511463381e-8,   2.15662514531043547e-8,
    7.53435584380334219e-9,   -6.84933818828676967e-9,  -1.33260944057663869e-8,
    -5.03810648790328409e-9,  7.33596871081615393e-9,   6.56013874691705721e-9,
    -3.1346276429240789e-9,   -4.57555342453497361e-9,  1.10505587944243464e-9,
    2.19689213788290046e-9,   -2.80338199788699974e-10, -6.63328711254708348e-10,
    3.62935522971873296e-11,  9.36508689281819083e-11};
constexpr double kI0NearShort[] = {
    0.20700192113,     -0.113004326534,   0.094515647198,     -0.0890434670005,  0.0873428051549,
    -0.0849628311534,  0.0792829727721,   -0.0695465912494,   0.0567272883019,   -0.0429569157438,
    0.0303606371398,   -0.0197762060715,  0.0115540655981,    -0.00660461949716, 0.00416927365813,
    -0.00204734507977, 0.000412651460399, -0.000205759345902, 0.000348628415242, -0.00013604737782};
constexpr double kI0FarShort[] = {0.402176509419,   0.00336055570014, 0.000136217164243,
                                  1.11121482852e-5, 1.47611573434e-6, 3.6266703848e-7,
                                  1.08679424823e-7};
constexpr double kI1NearFine[] = {
    0.0446877098756088318,    -0.0611243380296662928,  0.0680575999095115995,
    -0.0684826062058254746,   0.0637674037134072102,   -0.0552800392270514606,
    0.0446745726212546706,    -0.0336713555199232267,  0.0236860169577295336,
    -0.0155713092567635639,   0.0095839621507315771,   -0.00553456775924122978,
    0.0030057624197775294,    -0.00153887496967245856, 0.000744512344506115739,
    -0.000341174724452713787, 0.000148421243347585204, -0.0000614265571970476122,
    0.000024233753149624309,  -9.13177573056857046e-6, 3.2938991390037488e-6,
    -1.13815663237854465e-6,  3.75936730640411825e-7,  -1.19939802854861875e-7,
    3.80298478513828298e-8,   -1.12244751261355947e-8, 2.6032065423311571e-9,
    -7.27703355607383603e-10, 3.72845320793923451e-10, -9.50686118073636611e-11};
constexpr double kI1FarFine[] = {
    0.389398459025872321,      -0.00974957719323563467, -0.000219235763831724302,
    -0.0000150385472095018577, -1.83491023589553846e-6, -3.48385343803763318e-7,
    -1.00010956596365404e-7,   -4.31319648997773319e-8, -2.33925037480185823e-8,
    -8.40918204044291807e-9,   6.84013899770695821e-9,  1.39585510013859545e-8,
    5.59337010179061008e-9,    -7.44444147719727005e-9, -6.9838396248958659e-9,
    3.08688673672272531e-9,    4.81059740508994403e-9,  -1.05945441604431661e-9,
    -2.29700416188520092e-9,   2.6340771095136485e-10,  6.91708929419380704e-10,
    -3.36543185318017652e-11,  -9.75239720413819479e-11};
constexpr double kI1NearShort[] = {
    0.0446877098642,    -0.0611243379891,  0.0680576021809,   -0.0684826091619,  0.0637673292737,
    -0.0552799757994,   0.0446755172973,   -0.0336719785674,  0.0236799437716,   -0.0155679529543,
    0.00960630645217,   -0.00554539814391, 0.00295600396695,  -0.00151709151619, 0.000812403474205,
    -0.000368572004572, 9.35682008581e-5,  -4.07100918502e-5, 4.75213369384e-5,  -1.74679385008e-5};
constexpr double kI1FarShort[] = {0.38939845906,     -0.00974958137038, -0.000219237125382,
                                  -1.50039654661e-5, -1.82569073177e-6, -4.21035015502e-7,
                                  -1.22732172351e-7};

// Wichura, Algorithm AS 241 (Applied Statistics 37, 1988), PPND16: numerators and denominators of
// the quantile in the middle, in the tails, and far out in them.
constexpr double kMiddleOver[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                  1.9715909503065514427e3, 1.3731693765509461125e4,
                                  4.5921953931549871457e4, 6.7265770927008700853e4,
                                  3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr double kMiddleUnder[] = {1,
                                   4.2313330701600911252e1,
                                   6.8718700749205790830e2,
                                   5.3941960214247511077e3,
                                   2.1213794301586595867e4,
                                   3.9307895800092710610e4,
                                   2.8729085735721942674e4,
                                   5.2264952788528545610e3};
constexpr double kTailOver[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                5.76949722146069140550e0,  3.64784832476320460504e0,
                                1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kTailUnder[] = {1,
                                 2.05319162663775882187e0,
                                 1.67638483018380384940e0,
                                 6.89767334985100004550e-1,
                                 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2,
                                 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9};
constexpr double kFarOver[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                               1.78482653991729133580e0,  2.96560571828504891230e-1,
                               2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kFarUnder[] = {1,
                                5.99832206555887937690e-1,
                                1.36929880922735805310e-1,
                                1.48753612908506148525e-2,
                                7.86869131145613259100e-4,
                                1.84631831751005468180e-5,
                                1.42151175831644588870e-7,
                                2.04426310338993978564e-15};

// Lowest power first.
Expr polynomial(std::span<const double> coefficients, Expr t) {
  Expr sum = loop::constant(coefficients.back(), DType::Float64);
  for (size_t i = coefficients.size() - 1; i-- > 0;) {
    sum = loop::fma(sum, t, loop::constant(coefficients[i], DType::Float64));
  }
  return sum;
}

struct Series {
  std::span<const double> near;
  std::span<const double> far;
};

Series series_of(int order, bool fine) {
  if (order == 0) {
    return fine ? Series{kI0NearFine, kI0FarFine} : Series{kI0NearShort, kI0FarShort};
  }
  return fine ? Series{kI1NearFine, kI1FarFine} : Series{kI1NearShort, kI1FarShort};
}

// In f64, of an f64; `fine` says how exact.
Expr scaled(int order, Expr x, bool fine) {
  const auto [near, far] = series_of(order, fine);
  const Expr size = loop::abs(x);
  // Odd functions by a factor x, which gives zeros and halves their signs.
  const Expr low =
      polynomial(near, loop::min(size, loop::constant(8, DType::Float64)) * 0.25 - 1.0);
  const Expr t = 16.0 / loop::max(size, loop::constant(8, DType::Float64)) - 1.0;
  const Expr high = polynomial(far, t) / loop::sqrt(size);
  if (order == 0) {
    return loop::select(size > 8.0, high, low);
  }
  return loop::select(size > 8.0, loop::binary(loop::Op::CopySign, high, x), low * x);
}

}  // namespace

Expr bessel_scaled(int order, Expr x) {
  const Expr wide = loop::cast(x, DType::Float64);
  return loop::cast(scaled(order, wide, x.dtype() == DType::Float64), x.dtype());
}

Expr bessel(int order, Expr x) {
  const Expr wide = loop::cast(x, DType::Float64);
  const bool fine = x.dtype() == DType::Float64;
  const Expr value = scaled(order, wide, fine);
  if (!fine) {  // exp(x) overflows in f64 only where the result does in f32
    return loop::cast(value * loop::exp(loop::abs(wide)), x.dtype());
  }
  const Expr half = loop::exp(loop::abs(wide) * 0.5);  // where exp(x) would overflow too early
  return value * half * half;
}

Expr normal_quantile(Expr p) {
  const Expr wide = loop::cast(p, DType::Float64);
  const Expr middle = wide - 0.5;
  const Expr inside = loop::abs(middle) <= 0.425;
  const Expr square = 0.180625 - middle * middle;
  const Expr distance = loop::sqrt(-loop::log(loop::min(wide, 1.0 - wide)));
  const Expr far = distance > 5.0;
  const Expr near_at = distance - 1.6;
  const Expr far_at = distance - 5.0;
  const Expr over =
      loop::select(inside, polynomial(kMiddleOver, square) * middle,
                   loop::select(far, polynomial(kFarOver, far_at), polynomial(kTailOver, near_at)));
  const Expr under = loop::select(
      inside, polynomial(kMiddleUnder, square),
      loop::select(far, polynomial(kFarUnder, far_at), polynomial(kTailUnder, near_at)));
  const Expr value = over / under;
  const Expr tail = loop::where(distance == HUGE_VAL, HUGE_VAL, value);
  return loop::cast(loop::select(inside, value, loop::select(middle < 0.0, -tail, tail)),
                    p.dtype());
}

}  // namespace rushlight::special
