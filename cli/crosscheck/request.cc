// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/crosscheck/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "cli/format_option.h"
#include "cli/model_places.h"
#include "cli/number_list.h"
#include "cli/predict/named_shape.h"
#include "cli/printable.h"
#include "cli/replay/tensors.h"
#include "gpu/setting.h"
#include "model/config.h"
#include "run/model_shape.h"
#include "sim/attention/kernel.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

constexpr std::array rows{
    OptionSpec{"--backend", "NAME",
               "what to look at: torch-cpu (default), openblas, blis, sim:KERNEL, plugin:FILE"},
    OptionSpec{
        "--setting", "NAME",
        "environment of libtorch: pinned (default: the same on every AVX2 CPU) or installed"},
    OptionSpec{"--dispatch", "NAME",
               "kernels to simulate (default torch-cpu-avx2; torch-cpu with --setting installed)"},
    OptionSpec{"--set", "LINE=VALUE", "change one line of the dispatch, as kvsim run takes it",
               true},
    OptionSpec{
        "--revealed", "",
        "simulate orders revealed here and now instead (linear, sum, mean, softmax, rms-norm)"},
    OptionSpec{"--model", "M",
               "whose operators: kv-tiny (default), a name that predict or run knows, or a folder"},
    OptionSpec{"--config", "FILE", "config.json of a model instead"},
    OptionSpec{"--head-dim", "N", "sizes instead of a model; also --heads, --kv-heads, --gqa"},
    OptionSpec{"--heads", "N", "query heads (default: as many as K/V heads)"},
    OptionSpec{"--kv-heads", "N", "K/V heads (default 2)"},
    OptionSpec{"--gqa", "N", "query heads for each K/V head"},
    OptionSpec{"--dtype", "FORMAT", "format of the tensors (default fp32)"},
    OptionSpec{"--op", "LIST",
               "operators: linear, sum, mean, softmax, rms-norm, silu, gelu-tanh, rsqrt, residual, "
               "product, sdpa, eager (default: those of the model)"},
    OptionSpec{"--m", "LIST", "rows of linear layers (default 1,2,7,64); the last: of the others"},
    OptionSpec{"--keys", "N", "keys of attention and softmax (default 64)"},
    OptionSpec{"--data", "LIST", "gaussian, cancel (default both)"},
    OptionSpec{"--tensors", "FILE",
               "captured safetensors x (w, y, weight) or q, k, v instead; with one --op"},
    OptionSpec{"--input", "FORMAT", "round the captured tensors to FORMAT first"},
    OptionSpec{"--seed", "S", "of numbers and tokens (default 1)"},
    OptionSpec{"--end-to-end", "", "a prefill and decode steps of the whole model on torch-cpu"},
    OptionSpec{"--attention", "NAME", "with --end-to-end: sdpa (default) or eager"},
    OptionSpec{"--prefill", "N", "with --end-to-end: tokens of the first pass (default 64)"},
    OptionSpec{"--decode", "N", "with --end-to-end: steps of one token (default 16)"},
    OptionSpec{"--rope", "FROM",
               "with --end-to-end: backend (default: its factors as data) or kernel"},
};

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

/// The words of a list, each of which must be among those accepted.
Result<std::vector<std::string>> words_of(const ParsedOptions& options, std::string_view name,
                                          std::span<const std::string_view> accepted) {
  std::vector<std::string> words;
  const auto text = options.value(name);
  if (!text) return words;
  std::string_view left = *text;
  while (true) {
    const std::string_view word = left.substr(0, left.find(','));
    if (std::ranges::find(accepted, word) == accepted.end()) {
      return unknown_word(name, word, accepted);
    }
    words.emplace_back(word);
    if (word.size() == left.size()) return words;
    left.remove_prefix(word.size() + 1);
  }
}

Result<DispatchChoice> dispatch_of(const ParsedOptions& options, std::string_view setting) {
  auto dispatch =
      DispatchChoice::named(options.value("--dispatch")
                                .value_or(setting == "installed" ? "torch-cpu" : "torch-cpu-avx2"));
  if (!dispatch) return dispatch.error();
  for (const std::string& text : options.values("--set")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return usage(fmt::format("--set {}; accepted: LINE=VALUE", in_quotes(text)));
    }
    const auto set = dispatch->set(text.substr(0, equals), text.substr(equals + 1));
    if (!set) return set.error();
  }
  return dispatch;
}

/// Everything but the model.
Result<CrosscheckCommon> common_of(const ParsedOptions& options) {
  if (!options.positionals().empty()) {
    return usage(fmt::format("{} is no option; crosscheck takes nothing else",
                             in_quotes(options.positionals().front())));
  }
  const std::string setting = options.value("--setting").value_or("pinned");
  if (const auto applied = gpu::apply_setting(setting); !applied) return applied.error();
  auto dispatch = dispatch_of(options, setting);
  if (!dispatch) return dispatch.error();
  const auto format = format_named("--dtype", options.value("--dtype").value_or("fp32"));
  if (!format) return format.error();
  const auto seed = integer_option(options, "--seed", 1, 0, std::int64_t{1} << 62);
  if (!seed) return seed.error();
  return CrosscheckCommon{.model = options.value("--model").value_or(std::string(default_model)),
                          .dispatch = std::move(*dispatch),
                          .storage = std::string((*format)->name),
                          .seed = static_cast<std::uint64_t>(*seed)};
}

Result<DecoderShape> shape_of(const ParsedOptions& options, CrosscheckCommon& common) {
  if (options.has("--config") || options.has("--head-dim")) {
    auto named = named_shape(options);
    if (!named) return named.error();
    common.model = named->source.empty() ? "these sizes" : named->source;
    return named->shape;
  }
  const auto is_it = [&](const BuiltInModel& model) { return model.name == common.model; };
  if (std::ranges::any_of(built_in_models(), is_it)) {
    const auto config = built_in_config(common.model);
    if (!config) return config.error();
    return decoder_shape(*config);
  }
  const auto folder = find_model(common.model, model_places());
  if (!folder) return folder.error();
  const auto config = load_config(*folder + "/config.json");
  if (!config) return config.error();
  return decoder_shape(*config);
}

/// The case of --tensors.
Result<CrosscheckCase> captured(const ParsedOptions& options, const std::string& operation) {
  const auto file = ReplayFile::open(options);
  if (!file) return file.error();
  CrosscheckCase one;
  one.data = "captured";
  gpu::Check& check = one.check;
  check.label = one.data;
  check.operation = operation;
  std::vector<std::string> names{"x"};
  if (operation == "linear") names = {"x", "w"};
  if (operation == "residual" || operation == "product") names = {"x", "y"};
  if (operation == "rms-norm") {
    check.has_weight = file->has("weight");
    if (check.has_weight) names.emplace_back("weight");
  }
  if (check.is_attention()) names = {"q", "k", "v"};
  for (const std::string& name : names) {
    std::vector<std::int64_t> shape(check.is_attention() ? 3 : name == "weight" ? 1 : 2, -1);
    const std::string_view axes = check.is_attention() ? "[heads, positions, head_dim]"
                                  : name == "weight"   ? "[terms]"
                                                       : "[rows, terms]";
    auto tensor = file->values(name, shape, axes);
    if (!tensor) return tensor.error();
    one.inputs.push_back(
        {.format = tensor->format, .shape = shape, .values = std::move(tensor->values)});
  }
  check.format = one.inputs[0].format;
  const std::vector<std::int64_t>& first = one.inputs[0].shape;
  if (check.is_attention()) {
    check.heads = first[0];
    check.queries = first[1];
    check.head_dim = first[2];
    check.kv_heads = one.inputs[1].shape[0];
    check.keys = one.inputs[1].shape[1];
  } else {
    check.rows = first[0];
    check.terms = first[1];
    if (operation == "linear") check.outputs = one.inputs[1].shape[0];
  }
  const bool fits = gpu::input_shapes(check) == [&] {
    std::vector<std::vector<std::int64_t>> shapes;
    shapes.reserve(one.inputs.size());
    for (const gpu::Tensor& tensor : one.inputs) shapes.push_back(tensor.shape);
    return shapes;
  }();
  if (!fits || (check.is_attention() && (check.heads % check.kv_heads != 0 ||
                                         (check.queries > 1 && check.queries != check.keys)))) {
    return usage(fmt::format("{}: the shapes of {} do not fit {}{}", printable(file->path(), 4096),
                             fmt::join(names, ", "), operation,
                             check.is_attention() ? "; one query, or as many as keys" : ""));
  }
  return one;
}

Result<gpu::CheckSizes> sizes_of(const ParsedOptions& options) {
  gpu::CheckSizes sizes;
  const auto list = integer_list_option(options, "--m", 1, 1 << 16, 64);
  if (!list) return list.error();
  if (!list->empty()) sizes.rows = *list;
  const auto keys = integer_option(options, "--keys", sizes.keys, 1, 1 << 16);
  if (!keys) return keys.error();
  sizes.keys = *keys;
  return sizes;
}

/// Every check of the model with each of its data.
Result<std::vector<CrosscheckCase>> model_cases(const ParsedOptions& options,
                                                CrosscheckCommon& common,
                                                const std::vector<std::string>& operations) {
  constexpr std::array<std::string_view, 2> kinds{"gaussian", "cancel"};
  auto data = words_of(options, "--data", kinds);
  if (!data) return data.error();
  if (data->empty()) data->assign(kinds.begin(), kinds.end());
  const auto sizes = sizes_of(options);
  if (!sizes) return sizes.error();
  const auto shape = shape_of(options, common);
  if (!shape) return shape.error();
  const softfloat::Format format = softfloat::find_format(common.storage)->format;
  std::vector<CrosscheckCase> cases;
  for (const gpu::Check& check : gpu::model_checks(*shape, format, *sizes)) {
    if (!operations.empty() && std::ranges::find(operations, check.operation) == operations.end()) {
      continue;
    }
    for (const std::string& kind : *data) {
      const bool cancels = kind == "cancel";
      if (cancels && !gpu::has_data(check, gpu::CheckData::cancel)) continue;
      cases.push_back({check, kind});
    }
  }
  if (cases.empty()) {
    return usage(fmt::format("--op {}: {} has no such operator", options.value("--op").value_or(""),
                             printable(common.model, 80)));
  }
  return cases;
}

}  // namespace

std::span<const OptionSpec> crosscheck_option_rows() { return rows; }

Result<CrosscheckRequest> crosscheck_request(const ParsedOptions& options) {
  for (const std::string_view name : {"--attention", "--prefill", "--decode", "--rope"}) {
    if (options.has(name)) return usage(fmt::format("{} is given without --end-to-end", name));
  }
  auto common = common_of(options);
  if (!common) return common.error();
  const auto operations = words_of(options, "--op", gpu::check_operations());
  if (!operations) return operations.error();
  CrosscheckRequest request{.common = std::move(*common),
                            .backend = {},
                            .revealed = options.has("--revealed"),
                            .named_ops = !operations->empty(),
                            .cases = {}};
  if (options.has("--tensors")) {
    if (operations->size() != 1) return usage("--tensors is given without one operator in --op");
    auto one = captured(options, operations->front());
    if (!one) return one.error();
    request.common.model = options.value("--tensors").value_or("");
    request.common.storage = softfloat::format_name(one->check.format);
    request.cases.push_back(std::move(*one));
  } else {
    if (options.has("--input")) return usage("--input is given without --tensors");
    auto cases = model_cases(options, request.common, *operations);
    if (!cases) return cases.error();
    request.cases = std::move(*cases);
  }
  auto backend = gpu::make_backend(options.value("--backend").value_or("torch-cpu"));
  if (!backend) return backend.error();
  request.backend = std::move(*backend);
  return request;
}

Result<EndToEndRequest> end_to_end_request(const ParsedOptions& options) {
  for (const std::string_view name :
       {"--op", "--m", "--keys", "--data", "--tensors", "--input", "--revealed", "--config",
        "--head-dim", "--heads", "--kv-heads", "--gqa"}) {
    if (options.has(name)) {
      return usage(fmt::format("{} is given with --end-to-end; one of them is accepted", name));
    }
  }
  if (options.value("--backend").value_or("torch-cpu") != "torch-cpu") {
    return usage(fmt::format("--end-to-end with --backend {}; accepted: torch-cpu",
                             in_quotes(options.value("--backend").value_or(""))));
  }
  auto common = common_of(options);
  if (!common) return common.error();
  gpu::DecoderCheckOptions check;
  check.storage = softfloat::find_format(common->storage)->format;
  check.seed = common->seed;
  for (const auto& [name, value, least] :
       std::initializer_list<std::tuple<std::string_view, std::int64_t*, std::int64_t>>{
           {"--prefill", &check.prefill, 1}, {"--decode", &check.decode, 0}}) {
    const auto number = integer_option(options, name, *value, least, 1 << 16);
    if (!number) return number.error();
    *value = *number;
  }
  constexpr std::array<std::string_view, 2> attentions{"sdpa", "eager"};
  const std::string attention = options.value("--attention").value_or("sdpa");
  if (std::ranges::find(attentions, attention) == attentions.end()) {
    return unknown_word("--attention", attention, attentions);
  }
  if (attention == "eager") {
    check.attention = gpu::AttentionFunction::eager;
    const std::string kernel =
        fmt::format("{}-eager", common->dispatch.dispatch().attention_prefill);
    if (find_attention_kernel(kernel) == nullptr) {
      return Error{
          ErrorKind::unavailable,
          fmt::format("dispatch {} has no kernel of eager attention", common->dispatch.name())};
    }
    for (const std::string_view line : {"attention.prefill", "attention.decode"}) {
      if (const auto set = common->dispatch.set(line, kernel); !set) return set.error();
    }
  }
  constexpr std::array<std::string_view, 2> sources{"backend", "kernel"};
  const std::string rope = options.value("--rope").value_or("backend");
  if (std::ranges::find(sources, rope) == sources.end()) {
    return unknown_word("--rope", rope, sources);
  }
  check.rope_as_data = rope == "backend";
  const auto folder = find_model(common->model, model_places());
  if (!folder) return folder.error();
  auto checkpoint = load_checkpoint(*folder);
  if (!checkpoint) return checkpoint.error();
  if (checkpoint->config().max_positions < check.prefill + check.decode) {
    return usage(fmt::format("{} tokens of {}; at most {} are accepted",
                             check.prefill + check.decode, printable(common->model, 80),
                             checkpoint->config().max_positions));
  }
  return EndToEndRequest{std::move(*common), std::move(*checkpoint), check};
}

}  // namespace kvsim
