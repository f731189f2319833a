// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/protocol/along_text.h"
#include "experiments/tables.h"
#include "run/divergence.h"
#include "sim/elementary_double.h"

/// Controls of other arithmetic: formats, orders of sums, TF32, kinds of attention.
namespace kvsim::experiments {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// How far one arm is from another along a text.
struct Distance {
  double square = 0;  ///< mean over steps and tokens of |difference|²
  double kl = 0;      ///< mean over steps, KL(first ‖ second)
};

/// The distance of the first arm from the second, both along the text of `text`. Errors also where
/// an arm computes something that is no number.
Result<Distance> distance_of(const StudyArm& text, const StudyArm& first, const StudyArm& second,
                             std::span<const TokenId> ids, std::int64_t new_tokens) {
  const std::array arms{AlongArm{&text, ids}, AlongArm{&first, ids}, AlongArm{&second, ids}};
  Distance sum;
  const auto add = [&](const AlongStep& step) -> Result<bool> {
    const std::vector<double>& one = step.passes[1].logits;
    const std::vector<double>& two = step.passes[2].logits;
    const auto apart = divergence(one, two);
    if (!apart) return apart.error();
    sum.kl += apart->kl / static_cast<double>(new_tokens);
    double square = 0;
    for (std::size_t i = 0; i < one.size(); ++i) square += (one[i] - two[i]) * (one[i] - two[i]);
    sum.square += square / static_cast<double>(one.size()) / static_cast<double>(new_tokens);
    return true;
  };
  const auto done = along_text(arms, {.new_tokens = new_tokens}, add);
  if (!done) return done.error();
  return sum;
}

/// An arithmetic: the first of the settings that the engine accepts, for the arm with the cache.
struct CellRow {
  std::string_view name;
  std::string_view family;  ///< cells of one are compared with each other
  int precision;            ///< p of the unit roundoff 2^−p that its error grows with; 0: any
  std::array<std::string_view, 2> settings;
};

/// Adds a cell: its distance from the other arm, or why there is none.
void add_cell(Json& cells, const CellRow& row, const Result<Distance>& distance) {
  Json cell = {{"name", row.name}, {"family", row.family}, {"precision", row.precision}};
  if (distance) {
    cell["square"] = json_of(distance->square);
    cell["kl"] = json_of(distance->kl);
  } else {
    cell.update(not_applicable(distance.error().message));
  }
  cells.push_back(std::move(cell));
}

/// The mean distances of a cell over the prompts.
struct CellFigures {
  std::string name;
  std::string family;
  int precision = 0;
  double square = 0;
  double kl = 0;
  double prompts = 0;
};

/// What becomes of the reasons of cells that could not be measured.
enum class Missing : std::uint8_t {
  said,        ///< every one goes to the verdict
  if_all_are,  ///< only where no cell of the family was measured: engines have different ones
};

/// The cells of the records.
std::vector<CellFigures> cells_of(const ControlRecords& records, int number, Missing missing,
                                  ControlVerdict& verdict) {
  std::vector<CellFigures> cells;
  std::vector<const Json*> others;
  for (const Json* const values : measured_values(records, number, verdict)) {
    for (const Json& cell : values->at("cells")) {
      if (reason_of(cell)) {
        others.push_back(&cell);
        continue;
      }
      const auto name = cell.at("name").get<std::string>();
      auto found = std::ranges::find(cells, name, &CellFigures::name);
      if (found == cells.end()) {
        found = cells.insert(
            found, {name, cell.at("family").get<std::string>(), cell.at("precision").get<int>()});
      }
      found->square += number_of(cell.at("square")).value_or(infinity);
      found->kl += number_of(cell.at("kl")).value_or(infinity);
      found->prompts += 1;
    }
  }
  for (const Json* const cell : others) {
    const bool has_other = std::ranges::find(cells, cell->at("family").get<std::string>(),
                                             &CellFigures::family) != cells.end();
    if (missing == Missing::if_all_are && has_other) continue;
    add_reason(verdict, cell->at("name").get<std::string>(), reason_of(*cell).value_or(""));
  }
  return cells;
}

/// Checks that errors grow with the unit roundoff and KL with its square, between the coarsest and
/// the finest cell of a family. The power of u that is measured may be a quarter off: formats are
/// 13 bits apart and more where float32 is one of them, and a factor of 2^3 is what few texts
/// scatter. `least` is the smallest power that is allowed.
void check_scaling(const std::vector<CellFigures>& cells, std::string_view family, double least,
                   ControlVerdict& verdict) {
  constexpr double most = 1.25;
  std::vector<CellFigures> own;
  std::ranges::copy_if(cells, std::back_inserter(own), [&](const CellFigures& cell) {
    return cell.family == family && cell.precision > 0 && cell.square > 0 && cell.kl > 0;
  });
  std::ranges::sort(own, {}, &CellFigures::precision);
  if (own.size() < 2 || own.front().precision == own.back().precision) return;
  const CellFigures& coarse = own.front();
  const CellFigures& fine = own.back();
  const double bits = fine.precision - coarse.precision;
  const double error =
      elementary::log2_double(coarse.square * fine.prompts / fine.square / coarse.prompts) / 2;
  const double kl = elementary::log2_double(coarse.kl * fine.prompts / fine.kl / coarse.prompts);
  verdict.checks.push_back({.what = std::string(family) + ": error as u to the power",
                            .measured = error / bits,
                            .low = least,
                            .high = most});
  verdict.checks.push_back({.what = std::string(family) + ": KL as u to the power",
                            .measured = kl / bits,
                            .low = 2 * least,
                            .high = 2 * most});
}

constexpr double proportional = 0.75;
/// What bfloat16 holds is exact in TF32, too: weights of such models lose nothing there.
constexpr double partly_exact = 0.5;

constexpr std::string_view own_sums = "own sums";
constexpr std::string_view exact = "exact sums";

constexpr std::array storage_cells{
    CellRow{"bfloat16 with own sums", own_sums, 8, {"storage=bfloat16"}},
    CellRow{"binary16 with own sums", own_sums, 11, {"storage=binary16"}},
    CellRow{"binary32 with own sums", own_sums, 24, {"storage=binary32", "dispatch=fp32"}},
    CellRow{"bfloat16 with exact sums", exact, 8, {"dispatch=exact,storage=bfloat16"}},
    CellRow{"binary16 with exact sums", exact, 11, {"dispatch=exact,storage=binary16"}},
    CellRow{"binary32 with exact sums", exact, 24, {"dispatch=exact,storage=binary32"}},
};

/// Two orders of the same sums, and the precision that they add in.
struct OrderRow {
  CellRow first;
  std::array<std::string_view, 1> second;
};

constexpr std::array order_cells{
    OrderRow{{"sums in binary16",
              "order of sums",
              11,
              {"dispatch=fp32,format.accumulator=binary16,linear=h100-gemv.sequential"}},
             {"dispatch=fp32,format.accumulator=binary16,linear=h100-gemv.reverse"}},
    OrderRow{
        {"sums in binary32", "order of sums", 24, {"dispatch=fp32,linear=h100-gemv.sequential"}},
        {"dispatch=fp32,linear=h100-gemv.reverse"}},
    OrderRow{{"eager and math in bfloat16",
              "kind of attention",
              8,
              {"attention=eager,storage=bfloat16"}},
             {"attention=sdpa-math,storage=bfloat16"}},
    OrderRow{{"eager and math in binary32",
              "kind of attention",
              24,
              {"attention=eager,storage=binary32"}},
             {"attention=sdpa-math,storage=binary32"}},
};

constexpr std::string_view tf32 = "TF32";
constexpr std::string_view attention = "attention";

constexpr std::array other_cells{
    CellRow{"products in TF32", tf32, 11, {"dispatch=fp32,linear=h100-gemm-tf32"}},
    CellRow{"products in binary32", tf32, 24, {"dispatch=fp32"}},
    CellRow{"as it is", attention, 0, {""}},
    CellRow{"eager",
            attention,
            0,
            {"attention=eager", "attention.prefill=h100-eager,attention.decode=h100-eager"}},
    CellRow{"sdpa-math", attention, 0, {"attention=sdpa-math"}},
    CellRow{"sdpa-flash",
            attention,
            0,
            {"attention=sdpa-flash", "attention.prefill=h100-fa2,attention.decode=h100-fa2"}},
};

std::span<const std::string_view> settings_of(const CellRow& row) {
  const std::span<const std::string_view> all(row.settings);
  return row.settings[1].empty() ? all.first(1) : all;
}

/// The distance of the cell's arm from another one.
Result<Distance> cell_distance(const StudySetup& setup, std::int64_t prompt, const CellRow& row,
                               const StudyArm& text, const StudyArm& other) {
  const Result<StudyArm> arm = first_accepted(*setup.engine, text.arm, settings_of(row));
  if (!arm) return arm.error();
  return distance_of(text, *arm, other, tokens_of(setup, prompt), setup.new_tokens);
}

/// The arm whose text all cells follow: the cache, built live.
Result<StudyArm> text_arm(const StudySetup& setup) {
  return prepare(*setup.engine, with_constructor(setup.on, CacheConstructor::live));
}

}  // namespace

Result<Json> measure_storage(const StudySetup& setup, std::int64_t prompt) {
  const Result<StudyArm> text = text_arm(setup);
  if (!text) return text.error();
  const Result<StudyArm> reference = reference_arm(setup);
  if (!reference) return not_applicable(reference.error().message);
  Json cells = Json::array();
  for (const CellRow& row : storage_cells) {
    add_cell(cells, row, cell_distance(setup, prompt, row, *text, *reference));
  }
  return Json{{"cells", std::move(cells)}};
}

ControlVerdict judge_storage(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto cells = cells_of(records, 5, Missing::said, verdict);
  check_scaling(cells, own_sums, proportional, verdict);
  check_scaling(cells, exact, proportional, verdict);
  return verdict;
}

Result<Json> measure_order(const StudySetup& setup, std::int64_t prompt) {
  const Result<StudyArm> text = text_arm(setup);
  if (!text) return text.error();
  Json cells = Json::array();
  for (const OrderRow& row : order_cells) {
    const Result<StudyArm> second = first_accepted(*setup.engine, text->arm, row.second);
    add_cell(cells, row.first,
             second ? cell_distance(setup, prompt, row.first, *text, *second)
                    : Result<Distance>(second.error()));
  }
  return Json{{"cells", std::move(cells)}};
}

ControlVerdict judge_order(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto cells = cells_of(records, 6, Missing::if_all_are, verdict);
  for (const OrderRow& row : order_cells) {
    if (&row == &order_cells.front() || row.first.family != (&row - 1)->first.family) {
      check_scaling(cells, row.first.family, proportional, verdict);
    }
  }
  // Engines have one of the families.
  if (!verdict.checks.empty()) verdict.reasons.clear();
  return verdict;
}

Result<Json> measure_cells(const StudySetup& setup, std::int64_t prompt) {
  const Result<StudyArm> text = text_arm(setup);
  if (!text) return text.error();
  const Result<StudyArm> reference = reference_arm(setup);
  if (!reference) return not_applicable(reference.error().message);
  Json cells = Json::array();
  for (const CellRow& row : other_cells) {
    add_cell(cells, row, cell_distance(setup, prompt, row, *text, *reference));
  }
  return Json{{"cells", std::move(cells)}};
}

ControlVerdict judge_cells(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto cells = cells_of(records, 16, Missing::if_all_are, verdict);
  // One step from a 16-bit format to the next: what is farther apart is not of one size.
  constexpr double three_bits = 8;
  const auto as_it_is = std::ranges::find(cells, other_cells[2].name, &CellFigures::name);
  for (const CellFigures& cell : cells) {
    if (cell.family != attention || as_it_is == cells.end() || &cell == &*as_it_is) continue;
    const double square = as_it_is->square / as_it_is->prompts;
    if (square == 0) continue;
    verdict.checks.push_back({.what = cell.name + " attention: error / as it is",
                              .measured = std::sqrt(cell.square / cell.prompts / square),
                              .low = 0,
                              .high = three_bits});
  }
  check_scaling(cells, tf32, partly_exact, verdict);
  return verdict;
}

}  // namespace kvsim::experiments
