// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/engine/simd_level.h"
#include "softfloat/evidence.h"
#include "softfloat/result.h"

namespace kvsim {

/// How a kernel computes the exponential function of a binary32.
enum class ExpModel : std::uint8_t {
  correctly_rounded,  ///< e^x and 2^x rounded once, ties to even
  torch_exp_u20,      ///< PyTorch on a CPU, Vectorized<float>::exp_u20: degree 5
  torch_fexp_u20,     ///< PyTorch on a CPU, Vectorized<float>::fexp_u20: a cubic
  sleef_u10,          ///< SLEEF expf, 1 ulp: PyTorch's softmax and silu on a CPU
  libm_expf,          ///< glibc's expf where the CPU has fused multiply-adds, 0.502 ulp
  fa4_polynomial,     ///< FlashAttention-4's emulation of ex2: a cubic
  cuda_expf,          ///< expf of CUDA's math library: bounded
  ex2_approx,         ///< NVIDIA's ex2.approx.ftz.f32: bounded, unless a captured table is given
};

/// The base of which a model computes powers by itself.
enum class ExpBase : std::uint8_t { e, two };

/// One row of the table of exp models.
struct ExpModelRow {
  std::string_view name = {};  ///< as printed and parsed: "torch-exp-u20"
  ExpModel model = ExpModel::correctly_rounded;
  ExpBase base = ExpBase::e;
  bool bounded = false;          ///< results stand for a set of possible ones, not for exact bits
  std::string_view source = {};  ///< document or file
  std::string_view date = {};    ///< of the source: a year, a month, or a version
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
  std::string_view note = {};  ///< accuracy and what is special
};

/// Every model, in the order in which they are listed to the user.
[[nodiscard]] std::span<const ExpModelRow> exp_models();

/// The row of a model.
[[nodiscard]] const ExpModelRow& exp_model_row(ExpModel model);

/// The name of a model, as printed.
[[nodiscard]] std::string_view to_string(ExpModel model);

/// The results of ex2.approx captured on a device: values[i] = ex2(i / 2^fraction_bits) as
/// binary32, 2^fraction_bits of them. 2^x is then values[i] · 2^n with n + i/2^fraction_bits = x
/// cut down to that many fraction bits (toward −infinity); an x with more of them than the table
/// has must be cut somehow, and a fixed-point unit drops the rest. Results below 2^−126 become +0.
struct ExpTable {
  int fraction_bits = 0;               ///< 1 … 24
  std::span<const float> values = {};  ///< not owned
};

/// Makes a table of the values that a file holds and checks them: their number is a power of two
/// between 2 and 2^24 (that gives fraction_bits), values[0] = 1, every value lies in [1, 2] and
/// within 2^−20 of 2^(i / n), ten times what is documented for the unit. An error names the first
/// entry that breaks this.
[[nodiscard]] Result<ExpTable> make_exp_table(std::span<const float> values);

/// What a model may be given besides its argument.
struct ExpOptions {
  /// ex2_approx: captured results; the model is then exact. Must outlive the function. Null: the
  /// correctly rounded 2^x with subnormal results flushed to +0 stands for the unit.
  const ExpTable* table = nullptr;
  /// Bounded models, without a table: every result is moved by a whole number of units in the last
  /// place, one of −⌊ulp⌋ … ⌊ulp⌋ with equal chances, which depends on the bits of x and on `seed`
  /// alone. What stays: results of infinities and NaN; e^0; for ex2_approx the powers of two of all
  /// integers, from which the unit's interpolation starts (assumed; documented is 2^±0 = 1).
  /// 0 … max_exp_ulp.
  double ulp = 0;
  std::uint64_t seed = 0;
};

inline constexpr double max_exp_ulp = 1024;

/// Whether the options suit the model: a table only with ex2_approx, an ulp only with a bounded
/// model and without a table, and ulp between 0 and max_exp_ulp. Holds true, or an error that names
/// the option.
[[nodiscard]] Result<bool> check_exp_options(ExpModel model, const ExpOptions& options);

/// An exp model with its options: a function of binary32 that gives the same bits at every SIMD
/// level. Cheap to copy.
class ExpFunction {
 public:
  /// Requires check_exp_options(model, options).
  explicit ExpFunction(ExpModel model = ExpModel::correctly_rounded, ExpOptions options = {});

  [[nodiscard]] ExpModel model() const { return model_; }

  /// True where the results are not bit-exact: the model is bounded and there is no table.
  [[nodiscard]] bool bounded() const;

  /// out[i] = e^in[i]; of a model of base 2: exp2(in[i] × log2 e), the factor and the product
  /// rounded to binary32. `out` may be `in`; equal lengths.
  void exp(std::span<const float> in, std::span<float> out,
           SimdLevel level = best_simd_level()) const;

  /// out[i] = 2^in[i]; of a model of base e: exp(in[i] × ln 2), rounded likewise. `out` may be
  /// `in`; equal lengths.
  void exp2(std::span<const float> in, std::span<float> out,
            SimdLevel level = best_simd_level()) const;

  /// The same for one number.
  [[nodiscard]] float exp(float x) const;
  [[nodiscard]] float exp2(float x) const;

 private:
  ExpModel model_;
  ExpOptions options_;
};

}  // namespace kvsim
