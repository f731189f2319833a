# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Makes reference.json: what SciPy, statsmodels and plain enumeration say on data of ours.

    python3 -m venv ENV && ENV/bin/pip install scipy==1.17.1 statsmodels==0.15.0 numpy==2.4.6
    ENV/bin/python tests/experiments/statistics/make_reference.py

A line of the file is one case: its input, then what is expected. Nothing here is a translation of
experiments/statistics: where no library has the figure, it is computed in another way (all
divisions of the ranks one by one, the inverse of the covariance matrix, data without counts).
"""

import itertools
import json
import math
import pathlib

import numpy
import scipy
import statsmodels
import statsmodels.api
from scipy import special, stats
from scipy.stats import _ksstats
from statsmodels.stats import multitest, proportion
from statsmodels.stats.contingency_tables import Table2x2

RANDOM = numpy.random.Generator(numpy.random.PCG64(20260604))


def sample(count, digits=3, shift=0.0, scale=1.0):
    return [round(float(x), digits) for x in RANDOM.normal(shift, scale, count)]


def few_values(count, values, shift=0):
    return [int(x) + shift for x in RANDOM.integers(0, values, count)]


def wilson():
    for successes, trials, confidence in [
            (81, 263, .95), (15, 148, .95), (0, 20, .95), (1, 29, .95), (29, 29, .95), (1, 1, .9),
            (7, 10, .99), (12345, 1000000, .999), (1500000000, 3000000000, .95), (0, 10**9, .95)]:
        low, high = proportion.proportion_confint(successes, trials, 1 - confidence, "wilson")
        yield {"successes": successes, "trials": trials, "confidence": confidence,
               "low": max(0.0, low), "high": min(1.0, high)}


def mcnemar():
    for first, second in [(13, 7), (0, 1), (0, 6), (10, 0), (5, 5), (1, 30), (150, 86),
                          (49000, 51000), (499000, 501000)]:
        test = stats.binomtest(first, first + second)
        share = test.proportion_ci(.95, "exact")
        odds = [p / (1 - p) if p < 1 else None for p in (test.statistic, share.low, share.high)]
        yield {"first": first, "second": second, "p": test.pvalue, "odds": odds}


def trend():
    for scores, successes, trials in [
            ([1, 2, 3, 4], [83, 90, 129, 70], [86, 93, 136, 82]),
            ([16, 8, 4, 3], [29, 49, 60, 62], [80] * 4),
            ([0, 1, 2], [0, 5, 10], [10, 10, 10]),
            ([-1.5, 0, 0, 7], [3, 4, 5, 6], [11, 13, 0 + 17, 19]),
            ([1, 2, 3], [4000, 4100, 4200], [100000, 100000, 100000])]:
        score, event = [], []
        for t, k, n in zip(scores, successes, trials):
            score += [t] * n
            event += [1] * k + [0] * (n - k)
        z = stats.pearsonr(score, event).statistic * math.sqrt(len(score))
        yield {"scores": scores, "successes": successes, "trials": trials, "z": z,
               "p": 2 * stats.norm.sf(abs(z)), "slope": stats.linregress(score, event).slope}


def odds_ratio():
    for a, n1, c, n2, confidence in [(647, 649, 622, 649, .95), (10, 20, 10, 20, .95),
                                     (0, 10, 5, 12, .95), (9, 9, 3, 9, .9), (0, 7, 0, 9, .95),
                                     (10**8, 3 * 10**8, 10**8 + 10**4, 3 * 10**8, .95)]:
        cells = numpy.array([[a, n1 - a], [c, n2 - c]], dtype=float)
        if (cells == 0).any():
            cells += .5
        table = Table2x2(cells, shift_zeros=False)
        low, high = table.oddsratio_confint(1 - confidence)
        yield {"first": [a, n1], "second": [c, n2], "confidence": confidence,
               "ratio": table.oddsratio, "low": low, "high": high}


def cohens_h():
    for a, b in [(.5, .25), (1, 0), (0, 0), (.999, .001), (.3, .31)]:
        yield {"first": a, "second": b, "h": proportion.proportion_effectsize(a, b)}


def multiple():
    paper = [.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719,
             .6528, .7590, 1.0]
    random = [round(float(x), 6) for x in RANDOM.uniform(0, 1, 12) ** 3]
    for p in [paper, random, [.04], [0, 0, 1, 1], [.02, .02, .02, .9], [1, 1]]:
        yield {"p": p, "bonferroni": list(multitest.multipletests(p, method="bonferroni")[1]),
               "bh": list(multitest.multipletests(p, method="fdr_bh")[1])}


def share_of_divisions(ranks, size, taken):
    """How many divisions of the ranks are as far from the middle as `taken`, one by one."""
    middle = size * (len(ranks) + 1) / 2
    sums = [sum(ranks[i] for i in chosen)
            for chosen in itertools.combinations(range(len(ranks)), size)]
    return sum(abs(s - middle) >= abs(taken - middle) for s in sums) / len(sums)


def mann_whitney():
    hollander = ([.80, .83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, .73, 1.46],
                 [1.15, .88, .90, .74, 1.21])
    for first, second in [hollander, (sample(7), sample(9, shift=1)), (sample(1), sample(1)),
                          (sample(30), sample(45, shift=.4)), ([1, 2, 3, 4, 5], [6, 7, 8, 9]),
                          (few_values(8, 4), few_values(7, 4, 1)), ([1, 1, 1, 2], [1, 1, 1]),
                          ([0, 0, 1], [0, 2, 2, 2, 3, 3]), (few_values(60, 5), few_values(70, 6))]:
        test = stats.mannwhitneyu(first, second, method="asymptotic")
        plain = stats.mannwhitneyu(first, second, method="asymptotic", use_continuity=False)
        side = numpy.sign(test.statistic - len(first) * len(second) / 2)
        case = {"first": first, "second": second, "u": test.statistic, "normal": test.pvalue,
                "z": float(side * stats.norm.isf(plain.pvalue / 2))}
        pooled = first + second
        if len(set(pooled)) == len(pooled):
            case["exact"] = stats.mannwhitneyu(first, second, method="exact").pvalue
        elif len(pooled) <= 16:
            ranks = stats.rankdata(pooled)
            case["exact"] = share_of_divisions(list(ranks), len(first), sum(ranks[:len(first)]))
        yield case


def welch():
    sleep = ([.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2],
             [1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    offset = [1e9 + x for x in (1, 2, 4, 7)]
    for first, second in [sleep, (sample(5), sample(40, scale=4)), ([1, 2], [3, 5]),
                          ([2, 2, 2], [1, 2, 4]), (offset, [x + 3 for x in offset]),
                          ([0, 1e-150], [1e-150, 3e-150, 3e-150])]:
        # Scaled and moved, so that SciPy's own sums lose nothing.
        unit = 1e-150 if max(first) < 1e-100 else 1
        zero = 1e9 if max(first) > 1e8 else 0
        a = [x / unit - zero for x in first]
        b = [x / unit - zero for x in second]
        test = stats.ttest_ind(a, b, equal_var=False)
        interval = test.confidence_interval(.95)
        pooled = stats.ttest_ind(a, b).statistic * math.sqrt(1 / len(a) + 1 / len(b))
        yield {"first": first, "second": second, "t": test.statistic, "degrees": test.df,
               "p": test.pvalue, "difference": (numpy.mean(a) - numpy.mean(b)) * unit,
               "low": interval.low * unit, "high": interval.high * unit, "d": pooled}


def rank_interval(r, count):
    half = stats.norm.isf(.025) * math.sqrt(1.06 / (count - 3))
    return [math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)]


def correlation():
    lightness = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1]
    scores = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8]
    line = sample(40)
    near = [round(3 * x + e / 50, 5) for x, e in zip(line, sample(40))]
    for x, y in [(lightness, scores), (line, near), (sample(30), sample(30)),
                 (few_values(25, 4), few_values(25, 3)), ([1, 2, 3], [1, 3, 2]),
                 ([x * 1e-8 + 1 for x in line], sample(40))]:
        pearson, spearman = stats.pearsonr(x, y), stats.spearmanr(x, y)
        case = {"x": x, "y": y, "r": pearson.statistic, "p": pearson.pvalue,
                "rho": spearman.statistic, "rho_p": spearman.pvalue}
        if len(x) > 3:
            interval = pearson.confidence_interval(.95)
            case["interval"] = [interval.low, interval.high]
            case["rho_interval"] = rank_interval(spearman.statistic, len(x))
        yield case


def partial():
    z1, z2 = sample(25), sample(25)
    x = [round(a + .5 * b + e, 3) for a, b, e in zip(z1, z2, sample(25))]
    y = [round(a - b + .4 * c + e, 3) for a, b, c, e in zip(z1, z2, x, sample(25))]
    for x, y, controls in [([2, 4, 15, 20], [1, 2, 3, 4], [[0, 0, 1, 1]]), (x, y, [z1]),
                           (x, y, [z1, z2]), (y, z2, [x])]:
        inverse = numpy.linalg.inv(numpy.cov([x, y, *controls]))
        r = -inverse[0, 1] / math.sqrt(inverse[0, 0] * inverse[1, 1])
        degrees = len(x) - 2 - len(controls)
        t = r * math.sqrt(degrees / (1 - r * r))
        yield {"x": x, "y": y, "controls": controls, "r": r, "p": 2 * stats.t.sf(abs(t), degrees)}


def kolmogorov_tail():
    for n, d in [(1, .7), (5, .2), (10, .274), (10, .6), (50, .1), (50, .25), (100, .999),
                 (140, .05), (500, .04), (1000, .02), (1000, .045), (1000, .09), (3000, .0135),
                 (3000, .036), (100000, .002), (100000, .004), (100000, .01)]:
        # SciPy's own choice for more than 140 numbers is an expansion; its exact recursion (after
        # Pomeranz, another one than ours) is taken as far as it goes.
        exact = 140 < n <= 1000 and n * d * d < 4
        p = _ksstats._kolmogn_Pomeranz(n, d, cdf=False) if exact else stats.kstwo.sf(d, n)
        yield {"n": n, "d": d, "p": float(p)}


def kolmogorov_limit():
    for t in [.05, .15, .3, .6, .99, 1.0, 1.01, 1.358, 2, 5]:
        yield {"t": t, "p": special.kolmogorov(t)}


def one_sample():
    for x in [sample(12), sample(40, shift=.3), sample(40, scale=2), [0.0, 0.0, 1.0], [-3.0]]:
        test = stats.kstest(x, "norm", method="exact")
        yield {"x": x, "d": test.statistic, "p": test.pvalue}


def distance(first, second):
    return max(abs(sum(x <= v for x in first) * len(second) - sum(x <= v for x in second) *
                   len(first)) for v in {*first, *second})


def share_of_orders(first, second):
    pooled, observed = first + second, distance(first, second)
    far, every = 0, set(range(len(pooled)))
    for chosen in itertools.combinations(range(len(pooled)), len(first)):
        a = [pooled[i] for i in chosen]
        far += distance(a, [pooled[i] for i in every - set(chosen)]) >= observed
    return far / math.comb(len(pooled), len(first))


def two_samples():
    for first, second in [(sample(6), sample(8)), (sample(20), sample(35, shift=1)),
                          ([1, 2], [3, 4]), ([1], [2]), (sample(15), sample(15, scale=3)),
                          (few_values(6, 4), few_values(7, 3, 1)), ([1, 1, 2, 2], [2, 2, 3]),
                          ([1, 1], [1, 1, 1])]:
        d = distance(first, second) / len(first) / len(second)
        pooled = first + second
        if len(set(pooled)) == len(pooled):
            p = stats.ks_2samp(first, second, method="exact").pvalue
        else:
            p = share_of_orders(first, second)
        yield {"first": first, "second": second, "d": d, "p": p}


def philox_bits(seed, stream, index):
    """Philox4x32-10 (Salmon et al., SC11, 2011), the 64 bits of words 0 and 1."""
    low = 0xFFFFFFFF
    c = [index & low, index >> 32, stream & low, stream >> 32]
    k = [seed & low, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & low, a >> 32 ^ c[3] ^ k[1], a & low]
        k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
    return c[1] << 32 | c[0]


def bootstrap():
    spatial = [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41,
               24, 26, 30, 41]
    figures = {"mean": numpy.mean, "variance": numpy.var, "max": numpy.max}
    for data, figure, resamples, confidence in [
            (spatial, "variance", 2000, .9), (sample(12), "mean", 999, .95),
            (few_values(9, 3), "mean", 500, .99), (sample(8), "max", 200, .8)]:
        indices = [[(philox_bits(5, 3, r * len(data) + i) >> 32) * len(data) >> 32
                    for i in range(len(data))] for r in range(resamples)]
        values = numpy.array([figures[figure](numpy.array(data)[drawn]) for drawn in indices])
        case = {"data": data, "figure": figure, "resamples": resamples, "confidence": confidence}
        for method in ("percentile", "BCa"):
            known = stats._resampling.BootstrapResult(None, values, None)
            found = stats.bootstrap((data,), lambda x, axis=-1: figures[figure](x, axis=axis),
                                    n_resamples=0, bootstrap_result=known, method=method,
                                    confidence_level=confidence)
            interval = [float(x) for x in found.confidence_interval]
            if not any(math.isnan(x) for x in interval):
                case[method] = interval
        case["error"] = float(found.standard_error)
        yield case


def probit():
    beetles = ([[x] for x in (1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839)],
               [6, 13, 18, 28, 52, 53, 61, 60], [59, 60, 62, 56, 63, 59, 62, 60])
    margins = [[round(abs(x), 3), e] for x, e in zip(sample(60, scale=2), sample(60))]
    flips = [int(RANDOM.uniform() < stats.norm.cdf(-m + .5 * e)) for m, e in margins]
    for rows, events, trials in [beetles, (margins, flips, None)]:
        outcome = events if trials is None else numpy.column_stack(
            [events, numpy.subtract(trials, events)])
        family = statsmodels.api.families.Binomial(statsmodels.api.families.links.Probit())
        fit = statsmodels.api.GLM(outcome, statsmodels.api.add_constant(numpy.array(rows)),
                                  family=family).fit(
                                      tol_criterion="params", tol=1e-13, maxiter=200)
        counts = [1] * len(events) if trials is None else trials
        share = stats.norm.cdf(numpy.array(fit.params) @ numpy.column_stack(
            [numpy.ones(len(rows)), numpy.array(rows)]).T)
        whole = sum(events) / sum(counts)
        likelihood = sum(special.xlogy(y, p) + special.xlogy(n - y, 1 - p)
                         for y, n, p in zip(events, counts, share))
        nothing = sum(special.xlogy(y, whole) + special.xlogy(n - y, 1 - whole)
                      for y, n in zip(events, counts))
        yield {"rows": rows, "events": events, "trials": trials or [],
               "coefficients": list(fit.params), "errors": list(fit.bse), "p": list(fit.pvalues),
               "interval": [[float(x) for x in row] for row in fit.conf_int(.05)],
               "deviance": fit.deviance, "likelihood": likelihood, "null": nothing}


def clustered():
    for successes, trials, confidence in [
            ([1, 0, 3, 0, 2], [64, 64, 60, 12, 64], .95), ([0, 0, 0, 0], [64, 32, 0, 8], .95),
            ([5, 7], [5, 7], .95), ([3], [9], .9), ([2, 2, 2], [8, 8, 8], .95),
            ([1, 0, 0, 1, 1, 0, 0], [1] * 7, .95), ([4, 0], [4, 4], .99)]:
        pairs = [(x, n) for x, n in zip(successes, trials) if n > 0]
        total, x, clusters = sum(trials), sum(successes), len(pairs)
        p = x / total
        if x in (0, total) or clusters < 2:
            alike = clusters
        elif all(y == p * n for y, n in pairs):
            alike = total
        else:
            # the variance of a ratio of totals, and that of independent trials
            residuals = numpy.array([y - p * n for y, n in pairs])
            variance = clusters * numpy.var(residuals, ddof=1) / total**2
            ratio = stats.t.ppf((1 + confidence) / 2, [total - 1, clusters - 1])
            alike = min(total, p * (1 - p) / (total - 1) / variance * total
                        * (ratio[0] / ratio[1])**2)
        low, high = proportion.proportion_confint(p * alike, alike, 1 - confidence, "wilson")
        yield {"successes": successes, "trials": trials, "confidence": confidence,
               "low": low if x > 0 else 0.0, "high": high if x < total else 1.0}


def jackknife():
    for confidence in (.95, .8):
        data = [.25, -1.5, 3.75, 2.0, .5, 1.125]
        interval = stats.t.interval(confidence, 5, numpy.mean(data), stats.sem(data))
        yield {"data": data, "confidence": confidence, "interval": list(interval)}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    return value.item() if isinstance(value, numpy.generic) else value


def main():
    made = {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__,
            "numpy": numpy.__version__}
    parts = [f'"made_with": {json.dumps(made)}']
    for function in (wilson, mcnemar, trend, odds_ratio, cohens_h, multiple, mann_whitney, welch,
                     correlation, partial, kolmogorov_tail, kolmogorov_limit, one_sample,
                     two_samples, bootstrap, probit, clustered, jackknife):
        cases = ",\n".join(json.dumps(plain(case)) for case in function())
        parts.append(f'"{function.__name__}": [\n{cases}\n]')
    path = pathlib.Path(__file__).with_name("reference.json")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
