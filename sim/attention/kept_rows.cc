// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/kept_rows.h"

#include <algorithm>
#include <string_view>

#include "sim/attention/families.h"
#include "sim/attention/product_sum.h"
#include "sim/attention/splits.h"
#include "sim/attention/torch_cpu_rules.h"
#include "sim/integers.h"
#include "sim/linear.h"
#include "sim/order.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

using attention::ProductSum;

/// Terms before and after zeros were appended.
struct Lengths {
  std::int64_t shorter = 0;
  std::int64_t longer = 0;
};

/// Whether one more instruction whose products are all zero gives c back: a fused multiply-add
/// does; a sum that is truncated below its largest exponent does, unless the exponent that zeros
/// take part with cuts off bits of c. Other units are not looked into.
bool instruction_of_zeros_keeps(const MatrixUnit& unit) {
  if (unit.operation == UnitOperation::fma) return true;
  const int lowest_bit = unit.output.emin() - (unit.output.precision - 1);
  return unit.operation == UnitOperation::t_fdpa &&
         unit.fraction_bits >= unit.output.precision - 1 &&
         unit.zero_exponent - unit.fraction_bits <= lowest_bit;
}

/// Whether the place of a term in the tree does not depend on how many follow it.
bool grows_at_its_end(const Order& order) {
  if (order.items.empty()) return true;
  if (order.items.size() > 1) return false;
  const OrderItem& item = order.items.front();
  switch (item.kind) {
    case OrderKind::sequential:
    case OrderKind::exact:
      return true;
    case OrderKind::lanes:
      // By halves, which lanes join depends on how many hold a sum.
      return item.tail == LaneTail::masked && item.join != LaneJoin::halving;
    default:
      return false;
  }
}

/// Whether zeros behind the terms of a sum leave its bits.
bool zeros_may_follow(const ProductSum& sum, const Lengths& terms) {
  if (sum.unit() == nullptr) return grows_at_its_end(sum.order());
  const std::int64_t k = std::int64_t{sum.unit()->blocks} * sum.unit()->fan_in;
  return divide_up(terms.shorter, k) == divide_up(terms.longer, k) ||
         instruction_of_zeros_keeps(*sum.unit());
}

bool zeros_may_follow(std::string_view order, Product product, const softfloat::Format& storage,
                      const Lengths& terms) {
  const Result<ProductSum> sum = ProductSum::parse(order, product, storage);
  return sum && zeros_may_follow(*sum, terms);
}

/// Rows of a tile are independent of each other, and a block in which a row sees no key is passed
/// over. So what counts are where blocks begin, which is a matter of their size as long as nothing
/// is split, and that the last block becomes longer by keys that the row does not see.
bool keeps_rows_in_tiles(const AttentionKernel& kernel, const AttentionProblem& shorter,
                         const AttentionProblem& longer) {
  const SplitPlan before = plan_splits(kernel, shorter.shape, shorter.mask, shorter.launch);
  const SplitPlan after = plan_splits(kernel, longer.shape, longer.mask, longer.launch);
  if (before.splits != 1 || after.splits != 1 || before.block_columns != after.block_columns) {
    return false;
  }
  // Masked keys have a finite score, which counts where every other score is as low.
  if (kernel.tiles->unrisen == UnrisenMaximum::finite_mask) return false;
  const std::int64_t columns = after.block_columns;
  const std::int64_t begin = (shorter.shape.kv_len - 1) / columns * columns;  // of the last block
  const StorageSums* const sums = find_storage(kernel, shorter.storage);
  return sums != nullptr && zeros_may_follow(sums->values, sums->product, sums->storage,
                                             {shorter.shape.kv_len - begin,
                                              std::min(longer.shape.kv_len - begin, columns)});
}

/// Every row goes over all keys, those that it does not see with a score of −∞: more of them are
/// zeros behind its sums.
bool keeps_rows_eagerly(const AttentionKernel& kernel, const AttentionProblem& shorter,
                        const AttentionProblem& longer) {
  if (!kernel.eager->scores_kernel.empty()) return false;  // kernels that are chosen by the length
  const Lengths keys{shorter.shape.kv_len, longer.shape.kv_len};
  const StorageSums* const sums = find_storage(kernel, shorter.storage);
  const Result<Order> row_sum = parse_order(kernel.eager->row_sum);
  return sums != nullptr && row_sum && grows_at_its_end(*row_sum) &&
         zeros_may_follow(sums->values, sums->product, sums->storage, keys);
}

/// Whether a kernel sums each output of the smaller shape as it does in the larger one.
bool keeps_outputs(const LinearKernel& kernel, const LinearShape& smaller,
                   const LinearShape& larger) {
  const Result<LinearPlan> before = plan_linear(kernel, smaller);
  const Result<LinearPlan> after = plan_linear(kernel, larger);
  if (!before || !after || before->rule->exchanged || after->rule->exchanged ||
      before->rule->product != after->rule->product) {
    return false;
  }
  for (const LinearColumns& columns : before->columns) {
    for (const LinearColumns& others : after->columns) {
      const bool overlap = columns.first < others.first + others.count &&
                           others.first < columns.first + columns.count;
      if (overlap && columns.order != others.order) return false;
    }
  }
  return true;
}

/// Tiles of queries, how a block's keys are shared among vectors and passes, and whether products
/// run in passes at all depend on the length.
bool keeps_rows_in_torch_cpu(const AttentionKernel& kernel, const AttentionProblem& short_problem,
                             const AttentionProblem& long_problem) {
  using namespace attention::torch_cpu;  // NOLINT: the rules of this one family
  const AttentionShape& shorter = short_problem.shape;
  const AttentionShape& longer = long_problem.shape;
  const std::int64_t vector_lanes = kernel.torch_cpu->lanes;
  const LinearKernel* const scores = find_linear_kernel(kernel.torch_cpu->scores_kernel);
  if (scores == nullptr) return false;
  const std::int64_t queries = queries_of_a_block(shorter.query_len);
  if (queries_of_a_block(longer.query_len) != queries) return false;
  for (std::int64_t first = 0; first < shorter.query_len; first += queries) {
    const std::int64_t rows = std::min(queries, shorter.query_len - first);
    const std::int64_t rows_after = std::min(queries, longer.query_len - first);
    if (in_passes(rows, shorter.head_dim) != in_passes(rows_after, shorter.head_dim)) return false;
    if (in_fours(rows, short_problem.storage) != in_fours(rows_after, short_problem.storage)) {
      return false;
    }
    for (std::int64_t begin = 0; begin < first + rows; begin += keys_of_a_block) {
      const std::int64_t keys = std::min(keys_of_a_block, shorter.kv_len - begin);
      const std::int64_t keys_after = std::min(keys_of_a_block, longer.kv_len - begin);
      const std::int64_t in_vectors = keys / vector_lanes * vector_lanes;
      const std::int64_t in_vectors_after = keys_after / vector_lanes * vector_lanes;
      // Keys that come into vectors may only be new ones.
      if (std::min(in_vectors_after, keys) != in_vectors) return false;
      const LinearShape products{.rows = rows,
                                 .outputs = keys,
                                 .terms = shorter.head_dim,
                                 .storage = short_problem.storage};
      LinearShape products_after = products;
      products_after.rows = rows_after;
      products_after.outputs = keys_after;
      if (!keeps_outputs(*scores, products, products_after)) return false;
      if (pass_length(keys) != pass_length(keys_after)) return false;
    }
  }
  return true;
}

}  // namespace

bool keeps_rows(const AttentionKernel& kernel, const AttentionProblem& shorter,
                const AttentionProblem& longer) {
  const auto comparable = [](const AttentionProblem& problem) {
    return problem.shape.query_len == problem.shape.kv_len && problem.mask.causal &&
           problem.mask.first_key == 0 && problem.launch.batch == 1 &&
           problem.launch.kv_lens.empty() && problem.launch.longest_kv_len == 0;
  };
  if (!comparable(shorter) || !comparable(longer)) return false;
  if (mutant_is_on(Mutant::rows_always_kept)) return true;
  if (shorter.shape.kv_len > longer.shape.kv_len) return false;
  switch (kernel.family) {
    case AttentionFamily::online_tiles:
      return keeps_rows_in_tiles(kernel, shorter, longer);
    case AttentionFamily::eager:
      return keeps_rows_eagerly(kernel, shorter, longer);
    case AttentionFamily::torch_cpu:
      return keeps_rows_in_torch_cpu(kernel, shorter, longer);
    case AttentionFamily::llama_cpu:
      // Key by key, only those that the row sees; one chunk, as nothing splits several queries.
      return attention::keys_of_chunk(shorter) == shorter.shape.kv_len &&
             attention::keys_of_chunk(longer) == longer.shape.kv_len;
    case AttentionFamily::paged:
      break;  // takes one query
  }
  return false;
}

}  // namespace kvsim
