// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/attention_numbers.h"

#include <cstddef>

#include "softfloat/host.h"

namespace kvsim {
namespace {

std::ptrdiff_t offset(std::int64_t i) { return static_cast<std::ptrdiff_t>(i); }

void append(std::vector<float>& to, const std::vector<float>& from, std::int64_t first,
            std::int64_t count) {
  const auto begin = from.begin() + offset(first);
  to.insert(to.end(), begin, begin + offset(count));
}

std::vector<float> as_floats(const softfloat::Format& format,
                             const std::vector<softfloat::Bits>& codes) {
  std::vector<float> values;
  values.reserve(codes.size());
  for (const softfloat::Bits code : codes) values.push_back(softfloat::to_float(format, code));
  return values;
}

}  // namespace

AttentionNumbers make_attention_numbers(InputKind kind, std::uint64_t seed,
                                        const AttentionShape& shape,
                                        const softfloat::Format& format) {
  const AttentionInputs inputs = generate_attention(kind, seed, shape, format);
  return {shape, as_floats(format, inputs.q), as_floats(format, inputs.k),
          as_floats(format, inputs.v)};
}

AttentionNumbers part_of_sequence(const AttentionNumbers& numbers, std::int64_t first,
                                  std::int64_t last) {
  const AttentionShape& shape = numbers.shape;
  AttentionNumbers part{shape, {}, {}, {}};
  part.shape.query_len = last - first + 1;
  part.shape.kv_len = shape.visible_keys(last);
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    append(part.q, numbers.q, (head * shape.query_len + first) * shape.head_dim,
           part.shape.query_len * shape.head_dim);
  }
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    const std::int64_t begin = head * shape.kv_len * shape.head_dim;
    append(part.k, numbers.k, begin, part.shape.kv_len * shape.head_dim);
    append(part.v, numbers.v, begin, part.shape.kv_len * shape.head_dim);
  }
  return part;
}

AttentionNumbers last_queries(const AttentionNumbers& numbers, std::int64_t queries) {
  const AttentionShape& shape = numbers.shape;
  AttentionNumbers part{shape, {}, numbers.k, numbers.v};
  part.shape.query_len = queries;
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    append(part.q, numbers.q, ((head + 1) * shape.query_len - queries) * shape.head_dim,
           queries * shape.head_dim);
  }
  return part;
}

AttentionNumbers repeat_heads(const AttentionNumbers& numbers) {
  const AttentionShape& shape = numbers.shape;
  AttentionNumbers repeated{shape, numbers.q, {}, {}};
  repeated.shape.kv_heads = shape.query_heads;
  const std::int64_t size = shape.kv_len * shape.head_dim;
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    append(repeated.k, numbers.k, head / shape.group() * size, size);
    append(repeated.v, numbers.v, head / shape.group() * size, size);
  }
  return repeated;
}

AttentionProblem attention_problem(const AttentionNumbers& numbers, const AttentionLayer& layer,
                                   const AttentionLaunch& launch) {
  AttentionProblem problem;
  problem.shape = numbers.shape;
  problem.mask = layer.mask;
  problem.storage = layer.storage;
  problem.scale = layer.scale;
  problem.q = numbers.q.data();
  problem.k = numbers.k.data();
  problem.v = numbers.v.data();
  problem.launch = launch;
  return problem;
}

}  // namespace kvsim
