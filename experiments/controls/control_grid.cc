// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/cells.h"
#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/controls/predicted.h"

/// Controls of other arithmetic: formats, orders of sums, TF32, kinds of attention.
namespace kvsim::experiments {
namespace {

constexpr std::string_view own_sums = "own sums";
constexpr std::string_view exact = "exact sums";

constexpr std::array storage_cells{
    CellRow{"bfloat16 with own sums", own_sums, 8, {"storage=bfloat16"}},
    CellRow{"binary16 with own sums", own_sums, 11, {"storage=binary16"}},
    CellRow{"binary32 with own sums",
            own_sums,
            24,
            {"storage=binary32", "dispatch=fp32,storage=binary32"}},
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
    OrderRow{
        {"sums in binary16",
         "order of sums",
         11,
         {"dispatch=fp32,storage=binary32,format.accumulator=binary16,linear=h100-gemv."
          "sequential"}},
        {"dispatch=fp32,storage=binary32,format.accumulator=binary16,linear=h100-gemv.reverse"}},
    OrderRow{{"sums in binary32",
              "order of sums",
              24,
              {"dispatch=fp32,storage=binary32,linear=h100-gemv.sequential"}},
             {"dispatch=fp32,storage=binary32,linear=h100-gemv.reverse"}},
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
    CellRow{"products in TF32", tf32, 11, {"dispatch=fp32,storage=binary32,linear=h100-gemm-tf32"}},
    CellRow{"products in binary32", tf32, 24, {"dispatch=fp32,storage=binary32"}},
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

/// The distance of the cell's arm from the reference.
Result<CellDistance> cell_distance(const StudySetup& setup, std::int64_t prompt, const CellRow& row,
                                   const StudyArm& text, const StudyArm& reference) {
  const Result<StudyArm> arm = first_accepted(*setup.engine, text.arm, settings_of(row));
  if (!arm) return arm.error();
  return distance_of(setup, prompt, {.text = &text, .first = &*arm, .second = &reference});
}

/// How far two orders of a row are apart.
Result<CellDistance> order_distance(const StudySetup& setup, std::int64_t prompt,
                                    const OrderRow& row, const StudyArm& text) {
  const Result<StudyArm> first = first_accepted(*setup.engine, text.arm, settings_of(row.first));
  if (!first) return first.error();
  const Result<StudyArm> second = first_accepted(*setup.engine, text.arm, row.second);
  if (!second) return second.error();
  return distance_of(setup, prompt,
                     {.text = &text, .first = &*first, .second = &*second, .second_rounds = true});
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
  check_scaling(cells, own_sums, verdict);
  check_scaling(cells, exact, verdict);
  return verdict;
}

Result<Json> measure_order(const StudySetup& setup, std::int64_t prompt) {
  const Result<StudyArm> text = text_arm(setup);
  if (!text) return text.error();
  Json cells = Json::array();
  for (const OrderRow& row : order_cells) {
    add_cell(cells, row.first, order_distance(setup, prompt, row, *text));
  }
  return Json{{"cells", std::move(cells)}};
}

ControlVerdict judge_order(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto cells = cells_of(records, 6, Missing::if_all_are, verdict);
  for (const OrderRow& row : order_cells) {
    if (&row == &order_cells.front() || row.first.family != (&row - 1)->first.family) {
      check_scaling(cells, row.first.family, verdict);
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
  const auto as_it_is = std::ranges::find(cells, other_cells[2].name, &CellFigures::name);
  for (const CellFigures& cell : cells) {
    const std::optional<Distance>& predicted = cell.predicted;
    if (cell.family != attention || !predicted) continue;
    ControlCheck check{.what = cell.name + " attention: rms error (logits)",
                       .measured = std::sqrt(cell.measured.square),
                       .low = 0,
                       .high = arm_allowance().factor * std::sqrt(predicted->square),
                       .predicted = std::sqrt(predicted->square)};
    if (as_it_is != cells.end()) check.floor = std::sqrt(as_it_is->measured.square);
    verdict.checks.push_back(std::move(check));
  }
  check_scaling(cells, tf32, verdict);
  return verdict;
}

}  // namespace kvsim::experiments
