// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// How long passes of a decoder take in bfloat16 under h100-fa3, as multiples of what their
// multiply-adds take on the unit, or of reading the weights, whichever is longer: one thread, one
// run.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model_places.h"
#include "model/checkpoint.h"
#include "model/model_store.h"
#include "run/model_shape.h"
#include "run/model_weights.h"
#include "sim/decoder/incremental.h"
#include "sim/engine/matrix.h"
#include "softfloat/formats.h"
#include "tests/bench/bench_line.h"

namespace kvsim::bench {
namespace {

constexpr const char* unit_name = "h100.wgmma.bf16.f32";
constexpr std::int64_t prompt_rows = 256;

/// A decoder with a prompt in its cache, and what its passes read and multiply.
struct Model {
  std::optional<Checkpoint> checkpoint;
  std::deque<std::vector<std::uint16_t>> codes;  ///< of weights that are made here
  DecoderShape shape;
  std::optional<IncrementalDecoder> decoder;
  KvCache cache;
  std::vector<std::int32_t> tokens;
  double weights = 0;  ///< numbers of the matrices that a pass reads

  Result<DecoderPassResult> pass(std::int64_t first, std::int64_t rows) {
    DecoderPass pass;
    pass.tokens =
        std::span(tokens).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows));
    pass.first_row = first;
    return decoder->pass(cache, pass);
  }

  bool open(const DecoderWeights& from) {
    for (const DecoderLayerWeights& layer : from.layers) {
      for (const WeightView& matrix :
           {layer.query, layer.key, layer.value, layer.output, layer.gate, layer.up, layer.down}) {
        weights += static_cast<double>(matrix.rows * matrix.columns);
      }
    }
    weights += static_cast<double>(shape.vocabulary * shape.hidden);
    DecoderArmOptions options{.dispatch = DispatchChoice::named("h100-fa3").value()};
    options.engine.threads = 1;
    auto made = IncrementalDecoder::make(shape, from, options);
    if (!made) return false;
    decoder.emplace(std::move(*made));
    cache = decoder->new_cache();
    for (std::int64_t i = 0; i < prompt_rows + 1; ++i) {
      tokens.push_back(static_cast<std::int32_t>((i * i * 31 + 17 * i + 3) % shape.vocabulary));
    }
    return true;
  }
};

/// A model that the user has; null where it was not fetched.
std::shared_ptr<Model> stored_model(std::string_view name) {
  const auto folder = find_model(name, model_places());
  if (!folder) return nullptr;
  auto checkpoint = load_checkpoint(*folder);
  if (!checkpoint) return nullptr;
  auto model = std::make_shared<Model>();
  model->checkpoint.emplace(std::move(*checkpoint));
  auto shape = decoder_shape(model->checkpoint->config());
  auto weights = decoder_weights(*model->checkpoint);
  if (!shape || !weights) return nullptr;
  model->shape = std::move(*shape);
  return model->open(*weights) ? model : nullptr;
}

/// One layer with the shape of Llama-2-7B and a small vocabulary; numbers that repeat.
std::shared_ptr<Model> llama_layer() {
  auto model = std::make_shared<Model>();
  DecoderShape& shape = model->shape;
  shape.layers = 1;
  shape.hidden = 4096;
  shape.ffn = 11008;
  shape.query_heads = shape.kv_heads = 32;
  shape.head_dim = 128;
  shape.vocabulary = 256;
  const std::vector<float> few = numbers(99991, 6, 64);
  const auto make = [&](std::int64_t rows, std::int64_t columns, bool ones) -> WeightView {
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(rows * columns));
    std::size_t at = static_cast<std::size_t>(rows) % few.size();
    for (std::uint16_t& code : codes) {
      // Powers of two keep the numbers exact in bfloat16 and states of ordinary size.
      const auto bits = std::bit_cast<std::uint32_t>(few[at] / 64);
      code = ones ? std::uint16_t{0x3f80} : static_cast<std::uint16_t>(bits >> 16U);
      if (++at == few.size()) at = 0;
    }
    model->codes.push_back(std::move(codes));
    return {model->codes.back().data(), softfloat::bfloat16, rows, columns};
  };
  DecoderWeights weights;
  weights.embedding = make(shape.vocabulary, shape.hidden, false);
  weights.final_norm = make(1, shape.hidden, true);
  DecoderLayerWeights layer;
  layer.attention_norm = make(1, shape.hidden, true);
  layer.mlp_norm = make(1, shape.hidden, true);
  for (WeightView* each : {&layer.query, &layer.key, &layer.value, &layer.output}) {
    *each = make(shape.hidden, shape.hidden, false);
  }
  layer.gate = make(shape.ffn, shape.hidden, false);
  layer.up = make(shape.ffn, shape.hidden, false);
  layer.down = make(shape.hidden, shape.ffn, false);
  weights.layers.push_back(layer);
  return model->open(weights) ? model : nullptr;
}

/// Peak memory of this process so far, bytes; 0 where the system does not say.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const std::size_t at = line.find_first_of("0123456789");
    if (!line.starts_with("VmHWM:") || at == std::string::npos) continue;
    std::int64_t kilobytes = 0;
    std::from_chars(line.data() + at, line.data() + line.size(), kilobytes);
    return 1024 * static_cast<double>(kilobytes);
  }
  return 0;
}

Line unit_line() {
  constexpr std::int64_t rows = 64;
  constexpr std::int64_t columns = 64;
  constexpr std::int64_t terms = 1024;
  struct Operands {
    std::vector<float> a = numbers(rows * terms, 1, 64);
    std::vector<float> b = numbers(terms * columns, 2, 64);
    std::vector<float> out = std::vector<float>(rows * columns);
  };
  auto data = std::make_shared<Operands>();
  return {
      .name = unit_name, .level = "", .operations = double{rows} * columns * terms, .run = [data] {
        const UnitProblem problem{.unit = find_matrix_unit(unit_name),
                                  .rows = rows,
                                  .terms = terms,
                                  .columns = columns,
                                  .a = data->a.data(),
                                  .a_stride = terms,
                                  .b = data->b.data(),
                                  .b_stride = columns};
        return multiply_on_unit(problem, data->out.data(), columns, {}).has_value();
      }};
}

/// Reading twice the bytes of a large last cache.
Line memory_line() {
  auto words = std::make_shared<std::vector<std::uint64_t>>(std::size_t{1} << 25U, 1);
  return {.name = "reading memory",
          .level = "",
          .operations = static_cast<double>(words->size() * 8),
          .run = [words] {
            std::uint64_t sums[16] = {};
            for (std::size_t i = 0; i + 16 <= words->size(); i += 16) {
              for (std::size_t j = 0; j < 16; ++j) sums[j] += (*words)[i + j];
            }
            std::uint64_t sum = 0;
            for (const std::uint64_t each : sums) sum += each;
            return sum != 1;  // never; keeps the loop
          }};
}

/// A pass over rows first … first + rows − 1. `reads` whether its weights come from memory.
Line pass_line(const std::string& name, const std::shared_ptr<Model>& model, std::int64_t first,
               std::int64_t rows, bool reads, double at_most) {
  if (first > 0 && !model->pass(0, first)) return {};
  const auto once = model->pass(first, rows);
  const double operations = once ? static_cast<double>(once->multiply_adds) : 1;
  return {.name = name,
          .level = "",
          .operations = operations,
          .at_most = at_most,
          .run = [=] { return model->pass(first, rows).has_value(); },
          .base = unit_name,
          .bytes = reads ? 2 * model->weights / operations : 0};
}

void add_model(std::vector<Line>& lines, const std::string& name,
               const std::shared_ptr<Model>& model, double decode, double prefill) {
  // The prompt first: decoding it needs the cache that it leaves, and keeps it.
  if (prefill > 0) {
    lines.push_back(pass_line(fmt::format("{}, prompt of {}", name, prompt_rows), model, 0,
                              prompt_rows, true, prefill));
  }
  lines.push_back(pass_line(fmt::format("{}, token behind {}", name, prompt_rows), model,
                            prompt_rows, 1, prefill > 0, decode));
}

bool measure(std::vector<Line>& lines, int repetitions) {
  constexpr double shortest = 2e7;
  for (int i = 0; i < repetitions; ++i) {
    for (Line& line : lines) {
      const int runs = std::max(1, static_cast<int>(shortest / line.operations));
      const std::clock_t begin = std::clock();
      for (int run = 0; run < runs; ++run) {
        if (!line.run || !line.run()) {
          fmt::print(stderr, "{}: refused\n", line.name);
          return false;
        }
      }
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      line.nanoseconds.push_back(1e9 * seconds / runs / line.operations);
    }
  }
  return true;
}

void print(const std::vector<Line>& lines) {
  const double unit = lines[0].median();
  const double read = lines[1].median();
  fmt::print("| {:39} | {:>10} | {:>8} | {:>9} | {:>6} | {:>7} |\n", "", "ms", "ns each",
             "passes/s", "ratio", "at most");
  fmt::print("|{:-<41}|{:->12}|{:->10}|{:->11}|{:->8}|{:->9}|\n", "", ":", ":", ":", ":", ":");
  for (const Line& line : lines) {
    const bool is_pass = !line.base.empty();
    const double yardstick = std::max(unit, line.bytes * read);
    const double seconds = 1e-9 * line.median() * line.operations;
    fmt::print("| {:39} | {:10.3f} | {:8.4f} | {:>9} | {:>6} | {:>7} |\n", line.name, 1e3 * seconds,
               line.median(), is_pass ? fmt::format("{:.3g}", 1 / seconds) : "",
               is_pass ? fmt::format("{:.2f}", line.median() / yardstick) : "",
               line.at_most == 0 ? "" : fmt::format("{}", line.at_most));
  }
}

int run(bool quick) {
  std::vector<Line> lines{unit_line(), memory_line()};
  const double before = peak_memory();
  std::string memory;
  if (const auto smollm = quick ? nullptr : stored_model("smollm2-135m")) {
    add_model(lines, "SmolLM2-135M", smollm, 1.7, 1.5);
    const double grown = peak_memory() - before;
    memory = fmt::format(
        "Peak memory of SmolLM2-135M: {:.0f} MB, {:.2f} times its weights in "
        "float32 (at most 2).\n",
        grown / 1e6, grown / (4 * smollm->weights));
  } else if (!quick) {
    fmt::print("SmolLM2-135M is missing: kvsim fetch smollm2-135m\n");
  }
  if (const auto tiny = stored_model("kv-tiny")) add_model(lines, "kv-tiny", tiny, 4, 0);
  if (!quick) {
    const auto layer = llama_layer();
    if (layer == nullptr) return 1;
    add_model(lines, "a layer of Llama-2-7B", layer, 1.7, 1.5);
  }
  if (!measure(lines, quick ? 1 : 7)) return 1;
  fmt::print(
      "One thread, median; ratio to the multiply-adds at the first line's time each, or to reading "
      "the weights\nat the second line's time for a byte\n\n");
  print(lines);
  fmt::print("\n{}", memory);
  return 0;
}

}  // namespace
}  // namespace kvsim::bench

int main(int argc, char** argv) {
  const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
  if (argc > 1 && !quick) {
    fmt::print(stderr, "{}: accepted is --quick\n", argv[0]);
    return 2;
  }
  return kvsim::bench::run(quick);
}
