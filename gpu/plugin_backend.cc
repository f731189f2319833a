// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/plugin_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/host_cpu.h"
#include "gpu/operators.h"
#include "gpu/shared_library.h"
#include "include/kvsim/plugin.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

constexpr std::size_t most_text = 200;       // bytes taken of any text of a plug-in
constexpr std::size_t most_operators = 256;  // and rows of its tables
constexpr std::size_t most_entries = 64;
constexpr std::size_t guard_floats = 16;  // behind a result, to notice writing past it
constexpr std::uint32_t guard_bits = 0x7fa5c3e1;

/// A text of the plug-in: cut, one line of printable characters.
std::string text_of(const char* text) {
  if (text == nullptr) return {};
  std::string copy(text, strnlen(text, most_text));
  std::replace_if(
      copy.begin(), copy.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }, '?');
  return copy;
}

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text_of(text) + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

Error refused(std::string_view path, std::string_view what) {
  return Error{ErrorKind::usage, fmt::format("plug-in {:.200}: {}", path, what)};
}

/// One operator as the plug-in describes it.
struct PluginOperator {
  OperatorSupport support;
  std::vector<std::string> attributes;
};

Result<PluginOperator> read_operator(std::string_view path, const kvsim_plugin_operator& row) {
  if (row.operation == nullptr) return refused(path, "an operator has no name (NULL)");
  const std::string name = text_of(row.operation);
  if (find_operator(name) == nullptr) {
    return refused(path, fmt::format("offers '{}', which is no operator of kvsim", name));
  }
  PluginOperator read{{name, {}, text_of(row.note)}, words_of(row.attributes)};
  for (const std::string& word : words_of(row.formats)) {
    const softfloat::NamedFormat* const format = softfloat::find_format(word);
    if (format == nullptr) {
      return refused(path, fmt::format("offers {} in '{}', which is no format", name, word));
    }
    read.support.formats.emplace_back(format->name);
  }
  if (read.support.formats.empty()) {
    return refused(path, fmt::format("offers {} in no format", name));
  }
  return read;
}

/// What kvsim_plugin_open() returned, checked.
Result<std::vector<PluginOperator>> read_plugin(std::string_view path, const kvsim_plugin& plugin) {
  if (plugin.version != KVSIM_PLUGIN_VERSION || plugin.size != sizeof(kvsim_plugin)) {
    return Error{
        ErrorKind::unavailable,
        fmt::format("plug-in {:.200}: its struct has version {} and {} bytes; this kvsim "
                    "has version {} and {} bytes",
                    path, plugin.version, plugin.size, KVSIM_PLUGIN_VERSION, sizeof(kvsim_plugin))};
  }
  if (text_of(plugin.name).empty()) return refused(path, "it has no name (NULL or empty)");
  if (plugin.run == nullptr) return refused(path, "run is NULL");
  if (plugin.operators == nullptr || plugin.operator_count == 0 ||
      plugin.operator_count > most_operators) {
    return refused(
        path, fmt::format("{} operators: 1 … {} are accepted",
                          plugin.operators == nullptr ? 0 : plugin.operator_count, most_operators));
  }
  std::vector<PluginOperator> operators;
  for (std::size_t i = 0; i < plugin.operator_count; ++i) {
    auto row = read_operator(path, plugin.operators[i]);
    if (!row) return row.error();
    operators.push_back(std::move(*row));
  }
  return operators;
}

class PluginBackend final : public Backend {
 public:
  PluginBackend(std::string path, const kvsim_plugin& plugin, std::vector<PluginOperator> operators)
      : path_(std::move(path)), plugin_(plugin), operators_(std::move(operators)) {}
  ~PluginBackend() override {
    if (plugin_.close == nullptr) return;
    guarded([&] {
      plugin_.close(plugin_.state);
      return true;
    });
  }
  PluginBackend(const PluginBackend&) = delete;
  PluginBackend& operator=(const PluginBackend&) = delete;

  [[nodiscard]] std::string name() const override { return "plugin:" + path_; }
  [[nodiscard]] Fingerprint fingerprint() const override;
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    std::vector<OperatorSupport> offered;
    offered.reserve(operators_.size());
    for (const PluginOperator& row : operators_) offered.push_back(row.support);
    return offered;
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override;
  [[nodiscard]] Result<bool> set_threads(std::int64_t n) override;

 private:
  /// Calls the plug-in; nothing if it throws.
  template <class Function>
  static auto guarded(const Function& function) -> std::optional<decltype(function())> {
    try {
      return function();
    } catch (...) {
      return std::nullopt;
    }
  }

  [[nodiscard]] std::vector<std::string_view> attributes_of(std::string_view operation) const;
  /// What a status other than KVSIM_PLUGIN_OK means.
  [[nodiscard]] Error failure(std::string_view what, std::optional<int> status) const;
  [[nodiscard]] Result<Tensor> read_result(const OperatorCall& call,
                                           const kvsim_plugin_result& result,
                                           std::vector<std::int64_t> shape,
                                           std::vector<float> values) const;

  std::string path_;
  kvsim_plugin plugin_;
  std::vector<PluginOperator> operators_;
  std::int64_t threads_ = 1;
};

Fingerprint PluginBackend::fingerprint() const {
  Fingerprint fingerprint;
  auto& entries = fingerprint.entries;
  entries.emplace_back(fingerprint_names::backend, text_of(plugin_.name));
  entries.emplace_back(fingerprint_names::version, text_of(plugin_.release));
  for (std::size_t i = 0; plugin_.describe != nullptr && i < most_entries; ++i) {
    const char* name = nullptr;
    const char* value = nullptr;
    const auto more = guarded([&] { return plugin_.describe(plugin_.state, i, &name, &value); });
    if (!more || *more == 0 || name == nullptr) break;
    entries.emplace_back(text_of(name), text_of(value));
  }
  add_host_cpu(fingerprint);
  entries.emplace_back(fingerprint_names::threads, fmt::to_string(threads_));
  entries.emplace_back("library", path_);
  return fingerprint;
}

std::vector<std::string_view> PluginBackend::attributes_of(std::string_view operation) const {
  for (const PluginOperator& row : operators_) {
    if (row.support.operation == operation) return {row.attributes.begin(), row.attributes.end()};
  }
  return {};
}

Error PluginBackend::failure(std::string_view what, std::optional<int> status) const {
  if (!status) {
    return Error{ErrorKind::file,
                 fmt::format("plug-in {:.200}: {} threw an exception", path_, what)};
  }
  std::string said;
  if (plugin_.error != nullptr) {
    said = guarded([&] { return text_of(plugin_.error(plugin_.state)); }).value_or("");
  }
  const ErrorKind kind = *status == KVSIM_PLUGIN_UNAVAILABLE ? ErrorKind::unavailable
                         : *status == KVSIM_PLUGIN_USAGE     ? ErrorKind::usage
                                                             : ErrorKind::file;
  return Error{kind,
               fmt::format("plug-in {:.200}: {}: {}", path_, what,
                           said.empty() ? fmt::format("failed with status {}", *status) : said)};
}

Result<Tensor> PluginBackend::run(const OperatorCall& call) {
  auto shape = check_call(name(), call, operators(), attributes_of(call.operation));
  if (!shape) return shape.error();
  std::vector<std::vector<std::size_t>> shapes;
  std::vector<kvsim_plugin_tensor> inputs;
  shapes.reserve(call.inputs.size());  // the tensors point into it
  inputs.reserve(call.inputs.size());
  for (const Tensor& tensor : call.inputs) {
    shapes.emplace_back(tensor.shape.begin(), tensor.shape.end());
    inputs.push_back({softfloat::format_name(tensor.format).data(), shapes.back().size(),
                      shapes.back().data(), tensor.values.data(),
                      static_cast<std::size_t>(tensor.misalignment)});
  }
  std::vector<kvsim_plugin_attribute> attributes;
  attributes.reserve(call.attributes.size());
  for (const auto& [key, value] : call.attributes)
    attributes.push_back({key.c_str(), value.c_str()});
  const kvsim_plugin_call plugin_call{call.operation.c_str(), inputs.size(), inputs.data(),
                                      attributes.size(), attributes.data()};

  Tensor out = zero_tensor(call.inputs[0].format, *shape);
  const std::size_t count = out.values.size();
  std::vector<float> values = std::move(out.values);
  values.resize(count + guard_floats, std::bit_cast<float>(guard_bits));
  kvsim_plugin_result result{count, values.data(), 0, inputs[0].format};
  const auto status = guarded([&] { return plugin_.run(plugin_.state, &plugin_call, &result); });
  if (!status || *status != KVSIM_PLUGIN_OK) return failure(call.operation, status);
  return read_result(call, result, std::move(*shape), std::move(values));
}

Result<Tensor> PluginBackend::read_result(const OperatorCall& call,
                                          const kvsim_plugin_result& result,
                                          std::vector<std::int64_t> shape,
                                          std::vector<float> values) const {
  const std::size_t count = values.size() - guard_floats;
  const auto wrong = [&](std::string_view what) {
    return Error{ErrorKind::file,
                 fmt::format("plug-in {:.200}: {}: {}", path_, call.operation, what)};
  };
  if (!std::all_of(values.begin() + static_cast<std::ptrdiff_t>(count), values.end(),
                   [](float x) { return std::bit_cast<std::uint32_t>(x) == guard_bits; })) {
    return wrong(fmt::format("wrote past the {} numbers of the result", count));
  }
  if (result.count != count) {
    return wrong(fmt::format("gave {} numbers, and the result {} has {}", result.count,
                             shape_text(shape), count));
  }
  const std::string name = text_of(result.format);
  const softfloat::NamedFormat* const format = softfloat::find_format(name);
  if (format == nullptr)
    return wrong(fmt::format("gave a result in '{}', which is no format", name));
  values.resize(count);
  Tensor out{.format = format->format, .shape = std::move(shape), .values = std::move(values)};
  if (const auto good = check_numbers(out); !good)
    return wrong("the result: " + good.error().message);
  return out;
}

Result<bool> PluginBackend::set_threads(std::int64_t n) {
  if (n < 1 || n > 1024) {
    return Error{ErrorKind::usage, fmt::format("{} threads: 1 … 1024 are accepted", n)};
  }
  if (plugin_.set_threads == nullptr) {
    if (n == 1) return true;
    return Error{ErrorKind::unavailable,
                 fmt::format("plug-in {:.200}: the number of threads cannot be set", path_)};
  }
  const auto status =
      guarded([&] { return plugin_.set_threads(plugin_.state, static_cast<std::size_t>(n)); });
  if (!status || *status != KVSIM_PLUGIN_OK) return failure("set_threads", status);
  threads_ = n;
  return true;
}

}  // namespace

Result<std::unique_ptr<Backend>> make_plugin_backend(std::string_view path) {
  // A name without a slash would be looked for in the system's folders.
  std::string file(path);
  if (file.find('/') == std::string::npos) file = "./" + file;
  const auto library = SharedLibrary::open(std::vector<std::string>{file});
  if (!library) {
    return Error{ErrorKind::unavailable,
                 fmt::format("plug-in {:.200}: {}", path, library.error().message)};
  }
  auto* const open = library->find<const kvsim_plugin*(unsigned)>("kvsim_plugin_open");
  if (open == nullptr) {
    return refused(path, "exports no kvsim_plugin_open (include/kvsim/plugin.h)");
  }
  const kvsim_plugin* plugin = nullptr;
  try {
    plugin = open(KVSIM_PLUGIN_VERSION);
  } catch (...) {
    return refused(path, "kvsim_plugin_open threw an exception");
  }
  if (plugin == nullptr) {
    return Error{ErrorKind::unavailable,
                 fmt::format("plug-in {:.200}: does not serve version {} of the interface", path,
                             KVSIM_PLUGIN_VERSION)};
  }
  auto operators = read_plugin(path, *plugin);
  if (!operators) return operators.error();
  auto backend = std::make_unique<PluginBackend>(std::string(path), *plugin, std::move(*operators));
  if (const auto one = backend->set_threads(1); !one) return one.error();
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace kvsim::gpu
