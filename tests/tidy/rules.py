# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""The repository's own rules, as tables. Each row carries an example that breaks it; tidy_test.py
shows that every one of them is caught."""

import dataclasses

# Which folders a folder may include from. Includes go one way; sim and model, fuzz and gpu do not
# know each other (docs/decisions/0001-folders-and-arrows.md).
ARROWS = {
    "softfloat": {"softfloat"},
    "sim": {"sim", "softfloat"},
    "model": {"model", "softfloat"},
    "run": {"run", "sim", "model", "softfloat"},
    "fuzz": {"fuzz", "run", "sim", "model", "softfloat"},
    "include": {"include"},  # C headers for others
    "gpu": {"gpu", "include", "run", "sim", "model", "softfloat"},
    "experiments": {"experiments", "fuzz", "gpu", "run", "sim", "model", "softfloat"},
}
# These may include anything; tests only tests and fuzz targets, which are tests.
TOP = {"cli", "tests", "cmake", "fuzz/targets"}
TESTS = {"tests", "fuzz/targets"}
FOLDERS = tuple(ARROWS) + ("cli", "tests", "cmake")

LIBRARIES = ("softfloat", "sim", "model", "run", "gpu", "experiments")
# Sources that are compiled only where a library is there: all that begin so or none.
OPTIONAL = (("gpu/torch/", "tests/gpu/torch_"),)
RESULTS = ("softfloat", "sim", "model", "run", "fuzz", "gpu", "experiments")
PRODUCT = RESULTS + ("cli",)
EVERYWHERE = PRODUCT + ("tests", "cmake")

LINE_WIDTH = 100
FILE_LINES = 600

TRANSCENDENTAL = (
    "exp|exp2|expm1|exp10|log|log2|log10|log1p|pow|sin|cos|sincos|tan|asin|acos|atan|atan2|sinh"
    "|cosh|tanh|asinh|acosh|atanh|cbrt|hypot|erf|erfc|tgamma|lgamma"
)


@dataclasses.dataclass(frozen=True)
class Ban:
    """Text that may not stand in C++ code (comments and string literals apart) of some folders."""

    name: str
    pattern: str
    folders: tuple[str, ...]
    reason: str
    example: str


BANS = (
    Ban("distribution", r"\bstd::\w+_distribution\b", EVERYWHERE,
        "its values differ between standard libraries; use sim/inputs.h",
        "std::normal_distribution<float> normal;"),
    Ban("shuffle", r"\bstd::(ranges::)?(shuffle|random_shuffle|sample)\b", EVERYWHERE,
        "its order differs between standard libraries", "std::shuffle(begin, end, engine);"),
    Ban("random source", r"\b(s?rand|[dls]rand48)\s*\(|\brandom_device\b", EVERYWHERE,
        "not reproducible; randomness is Philox addressed by (seed, stream, index)",
        "int x = rand();"),
    Ban("libm", rf"(\bstd::|(?<![\w>.])::|__builtin_)({TRANSCENDENTAL})[fl]?\s*\(", RESULTS,
        "libm differs between versions; use the models of sim/", "double y = std::exp(x);"),
    Ban("libm header", r"#\s*include\s*<math\.h>", EVERYWHERE,
        "it puts libm into the global namespace; include <cmath> and write std::",
        "#include <math.h>"),
    Ban("locale-dependent number",
        r"\b(strto(d|f|ld|l|ul|ll|ull)|ato(f|i|l|ll)|sto(d|f|ld|i|l|ul|ll|ull)|[sf]?scanf)\s*\(",
        EVERYWHERE, "depends on the locale, or throws; use std::from_chars",
        "double x = std::stod(text);"),
    Ban("locale", r"\bsetlocale\b|\bstd::locale\b|\bimbue\b", PRODUCT, "output has no locale",
        'std::setlocale(LC_ALL, "");'),
    Ban("string stream", r"\b[io]?stringstream\b", PRODUCT,
        "numbers in streams depend on the locale; use fmt or std::to_chars",
        "std::ostringstream out;"),
    Ban("time", r"\b(time|clock|gettimeofday|clock_gettime|localtime|gmtime)\s*\(|\bstd::chrono\b",
        LIBRARIES, "no result depends on the time", "auto seed = time(nullptr);"),
    Ban("environment", r"\b(secure_)?getenv\b", ("softfloat", "model"),
        "libraries take arguments; only the program reads the environment",
        'const char* x = std::getenv("X");'),
    Ban("printing",
        r"\b(f?printf|f?puts|f?putchar|perror)\s*\(|\bstd::(cout|cerr|clog)\b|\bfmt::print\b",
        LIBRARIES, "libraries never print; only the program does", 'std::puts("x");'),
    Ban("exit", r"\b(exit|_exit|_Exit|quick_exit)\s*\(", LIBRARIES,
        "libraries never end the process", "std::exit(1);"),
    Ban("throw", r"\bthrow\b", LIBRARIES, "errors are values: Result<T> of softfloat/result.h",
        "throw 1;"),
    Ban("unordered container", r"\bunordered_(multi)?(map|set)\b", PRODUCT,
        "its order may reach an output; use std::map or a sorted vector",
        "std::unordered_map<int, int> x;"),
    Ban("using namespace", r"\busing\s+namespace\s+std\b", EVERYWHERE,
        "names say where they come from", "using namespace std;"),
    Ban("arithmetic pragma",
        r"#\s*pragma\s+(STDC|GCC\s+optimize|clang\s+fp)|\boptimize\s*\(\s*\"|__FAST_MATH",
        PRODUCT, "the flags of cmake/KvsimFlags.cmake decide how arithmetic is compiled",
        "#pragma STDC FP_CONTRACT ON"),
    Ban("left-over", r"\b(TODO|FIXME|XXX|HACK)\b", EVERYWHERE,
        "finish it, or write it into an issue", "int TODO = 1;"),
)

# The same for build files; comments are not stripped there.
BUILD_BANS = (
    Ban("fast arithmetic", r"-march=native|-ffast-math|-Ofast|-funsafe-math", EVERYWHERE,
        "results may not depend on the machine or the optimiser",
        "target_compile_options(x PRIVATE -march=native)"),
    Ban("source glob", r"file\s*\(\s*GLOB[^)]*\*\.(cc|h)", EVERYWHERE, "sources are listed by name",
        "file(GLOB sources *.cc)"),
)

# Names that may stand at the root of the repository.
ROOT_NAMES = set(ARROWS) | {
    "cli", "tests", "cmake", "data", "docs", "scripts", "kvsim", "check", "CMakeLists.txt",
    "CMakePresets.json", "LICENSE", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", ".ci",
    ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore", ".gitattributes",
}
