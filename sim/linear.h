// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/engine/columns.h"
#include "sim/engine/numbers.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Linear layers, y = x · w (+ bias), as rows of data: which order each library and device sums in,
/// and how that depends on the number of rows, outputs and terms.
namespace kvsim {

/// Numbers from `least` to `most`, both included.
struct SizeRange {
  std::int64_t least = 1;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] constexpr bool contains(std::int64_t n) const { return least <= n && n <= most; }
};

/// The arithmetic of a linear kernel for one storage format and one range of sizes.
struct LinearRule {
  softfloat::Format storage;  ///< of x and w
  SizeRange rows;             ///< M
  SizeRange outputs;          ///< N
  SizeRange terms;            ///< K
  SizeRange multiply_adds;    ///< M · N · K
  /// M · N · K of all products of a batch together, where that decides.
  SizeRange batch_multiply_adds = {};
  /// The order of one output's sum within a split, in the grammar of parse_order(); "K/2" stands
  /// for ⌊K ÷ 2⌋.
  std::string_view order;
  Product product = Product::fused;
  softfloat::Format accumulator = {8, 24, 127};
  softfloat::Format output;  ///< of the result; all zero: as `storage`
  /// The order of the last N mod `edge_outputs` outputs, where it differs.
  std::string_view edge_order;
  int edge_outputs = 0;
  /// The order of the second of these, where it differs from the others'; may be empty.
  std::string_view second_edge_order = {};
  /// Before the order begins, K mod this many terms (this many where that is 0, and always in the
  /// outputs of edge_order) go to lane 0, one after the other. 0: none.
  int leading_modulus = 0;
  /// Rows and outputs change places: `order` and the edge orders are those of the rows.
  bool exchanged = false;
  /// A bias is not added to the sum: it is what the sums of the blocks of the order are added to,
  /// one after the other.
  bool starts_from_bias = false;
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
  std::string_view note;  ///< what the evidence leaves open; may be empty
};

/// How the terms of one sum are shared among thread blocks.
enum class SplitKind : std::uint8_t {
  none,
  fixed,  ///< into LinearSplit::splits
  /// Into as many as fill the multiprocessors best: 1 where the tiles alone keep 4 of 5 of them
  /// busy; otherwise the smallest number whose share of busy multiprocessors over all waves is at
  /// least 85 % of the best, among those that change the tiles of a split.
  waves,
};

/// How the sums of the splits are joined, always first + second + ….
enum class SplitReduction : std::uint8_t {
  parallel,  ///< in the accumulator format
  rounded,   ///< each split's sum is rounded to the output's format before it is added
  serial,    ///< each split adds to the output, which is rounded to the output's format every time
};

struct LinearSplit {
  SplitKind kind = SplitKind::none;
  std::int64_t splits = 1;          ///< fixed: how many; waves: at most
  std::int64_t smallest_tiles = 1;  ///< waves: tiles of K that a split has at least
  SplitReduction reduction = SplitReduction::parallel;
};

/// One row: how a linear layer is computed.
struct LinearKernel {
  std::string_view name;              ///< "h100-gemm"
  std::string_view device;            ///< device class: "H100 (sm90)", "CPU", "any"
  std::int64_t multiprocessors = 0;   ///< of the device; 0: they decide nothing
  std::span<const LinearRule> rules;  ///< the first one that fits holds
  std::int64_t tile_rows = 128;       ///< output tile of one thread block
  std::int64_t tile_outputs = 128;
  std::int64_t tile_terms = 64;  ///< K of one step of the main loop; splits are multiples of it
  LinearSplit split;
  /// The bias is added to the rounded result and the sum rounded again; otherwise it is added in
  /// binary32 before the one rounding.
  bool bias_after_rounding = false;
  std::string_view source;  ///< document and date
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
};

/// Every linear kernel, device by device, in the order in which they are listed to the user.
[[nodiscard]] std::span<const LinearKernel> linear_kernels();

/// The row of that name; nullptr if there is none.
[[nodiscard]] const LinearKernel* find_linear_kernel(std::string_view name);

/// What decides how a linear layer is computed.
struct LinearShape {
  std::int64_t rows = 1;     ///< M
  std::int64_t outputs = 1;  ///< N
  std::int64_t terms = 1;    ///< K
  softfloat::Format storage;
  std::int64_t multiprocessors = 1;
  std::int64_t batch = 1;  ///< products of this shape in one call
};

/// Neighbouring outputs, or rows where LinearRule::exchanged, that are summed in the same order.
struct LinearColumns {
  std::int64_t first = 0;
  std::int64_t count = 0;
  Order order;
};

/// What a kernel does with one shape.
struct LinearPlan {
  const LinearRule* rule = nullptr;
  std::int64_t splits = 1;
  softfloat::Format output;
  std::vector<LinearColumns> columns;  ///< together all outputs (or rows), in increasing order
};

/// Errors (usage): a size below 1 or above 2^40, a storage format that no rule of the kernel has.
[[nodiscard]] Result<LinearPlan> plan_linear(const LinearKernel& kernel, const LinearShape& shape);

/// The order in which the kernel sums the first outputs: LinearPlan::columns[0].order.
[[nodiscard]] Result<Order> linear_order(const LinearKernel& kernel, const LinearShape& shape);

/// How many splits LinearSplit makes: exposed because it decides at which sizes the order changes.
[[nodiscard]] std::int64_t split_count(const LinearKernel& kernel, std::int64_t rows,
                                       std::int64_t outputs, std::int64_t terms,
                                       std::int64_t multiprocessors);

/// One linear layer: out[i][j] = alpha · Σ_k x[i][k] w[k][j] + beta · c[i][j] + bias[j]. The
/// epilogue is binary32: fma(alpha, sum, beta · c) where c is given, alpha · sum otherwise, then
/// the bias as the kernel says.
struct LinearProblem {
  std::int64_t rows = 0;
  std::int64_t outputs = 0;
  std::int64_t terms = 0;
  softfloat::Format storage;
  std::int64_t multiprocessors = 1;
  /// What the kernel is chosen for, where it is not `rows` and `outputs`: rows and outputs of the
  /// launch that each computed row is taken from, of which the first `outputs` are computed. 0: as
  /// many as are computed.
  std::int64_t launch_rows = 0;
  std::int64_t launch_outputs = 0;
  const float* x = nullptr;  ///< [rows][terms], numbers of `storage`
  std::int64_t x_stride = 0;
  /// w[k × w_stride + j], [terms][outputs]: numbers of `storage`, as floats or codes.
  NumberPointer w;
  std::int64_t w_stride = 0;
  /// w is stored as checkpoints have it instead: w[j × w_stride + k], [outputs][terms].
  bool w_by_outputs = false;
  const float* bias = nullptr;  ///< [outputs] or null
  float alpha = 1;
  float beta = 0;
  const float* c = nullptr;  ///< [rows][outputs] or null
  std::int64_t c_stride = 0;
  /// Format of the results instead of the kernel's, for example binary32 for an output head that
  /// leaves its sums unrounded.
  std::optional<softfloat::Format> output = {};
  /// Format of rounded products and partial sums instead of the kernel's.
  std::optional<softfloat::Format> accumulator = {};
  std::int64_t batch = 1;  ///< products like this one in the call, itself included
};

/// Computes the layer as the kernel does; out[i × out_stride + j] are numbers of the plan's output
/// format, a NaN is 0x7fc00000. The kernel is chosen for all rows of the launch together. Errors as
/// plan_linear() and sum_matrix(). Nothing in `options` changes a bit.
[[nodiscard]] Result<bool> apply_linear(const LinearKernel& kernel, const LinearProblem& problem,
                                        float* out, std::int64_t out_stride,
                                        const EngineOptions& options = {});

}  // namespace kvsim
