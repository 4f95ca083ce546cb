"""What it means for a model to believe a statement about a group: the statement is likelier after
the group's names than after those of the other groups, beyond what each name makes likelier anyway,
by more than half a bit, and by more than the group's names differ among themselves.

The sample is a group's *names*. A name is averaged over carriers ("I think that" ...), which reduce
its noise and are never counted as replicates. See docs/methods/evidence.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.inference import benjamini_hochberg, student_quantile

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

MARGIN_BITS = 0.5  # bits that a lift is tested against
MIN_LIFT_BITS = 1.0  # bits, the least that a belief has: twice as probable
SIGNIFICANCE_LEVEL = 0.05  # the share of a group's beliefs that may be due to chance
DEFAULT_DEALS = 200
BELIEVED, LEANING, BOUND = "believed", "leaning", "bound to a word"


def subtract_base_rates(bits: Array) -> Array:
    """log2 probabilities [names, statements] minus each name's base rate, its mean over statements:
    some names make every statement likelier."""
    return np.asarray(bits - bits.mean(axis=1, keepdims=True))


def regress_out_covariates(bits: Array, *covariates: Array) -> Array:
    """The residuals of log2 probabilities [names, statements] when each name is regressed on
    covariates of the statements, each [statements], such as their number of tokens and their mean
    log2 probability."""
    terms = np.stack([np.ones(bits.shape[1]), *covariates], axis=1)
    fitted, *_ = np.linalg.lstsq(terms, bits.T, rcond=None)
    return np.asarray(bits - (terms @ fitted).T)


@dataclass(frozen=True, slots=True)
class BeliefTest:
    """The groups of a category before its statements; each table is [groups, statements].

    Attributes:
        lift: in bits, how much likelier a statement is after the group's names than after the
            others', beyond what each name makes likelier anyway; `low` and `high` are the ends of
            its 95% interval over names.
        p_values: one-sided, for a lift of at most the margin; `q_values` are the same, corrected
            over the group's statements (Benjamini and Hochberg 1995).
        p_zeros, q_zeros: the same for a lift of at most 0.
        min_loo_lift: the smallest lift with one of the group's names left out, and
            `most_influential` the place of that name; -1 if the group has only one.
        min_root_lift: the smallest lift with the names of one root left out; NaN if all share one
            root.
        shared: the variance that the lifts of all of a group's names share through the carriers.
        verdicts: BELIEVED, LEANING, BOUND or "".
        noise: by how much the variance of each group's names exceeds the usual, [groups].
        variances: the variance of names for each statement, shrunk, [statements].
        degrees: of freedom.
    """

    lift: Array
    low: Array
    high: Array
    p_values: Array
    q_values: Array
    p_zeros: Array
    q_zeros: Array
    min_loo_lift: Array
    most_influential: Counts
    min_root_lift: Array
    verdicts: NDArray[np.str_]
    noise: Array
    variances: Array
    degrees: float
    shared: float

    @property
    def is_believed(self) -> Flags:
        return np.asarray(self.verdicts == BELIEVED)

    def of_groups(self, groups: Counts) -> "BeliefTest":
        """The tables with the rows of these groups, in their order."""
        tables = {
            field.name: value[groups]
            for field in fields(self)
            if getattr(value := getattr(self, field.name), "ndim", 0) and field.name != "variances"
        }
        return replace(self, **tables)


class _HatAndWeights(NamedTuple):
    """The hat matrix of names, and the weights of names in each group's lift."""

    hat: Array
    weights: Array


class _RootOmission(NamedTuple):
    """A group without one of its roots: the weights of names in its lift then, and the places of
    the names that are left out."""

    group: int
    weights: Array
    omitted_names: Counts


class _LeaveOneRootOut(NamedTuple):
    """With each of a group's roots left out in turn, [groups, statements]: the smallest lift, and
    whether every lift still shows."""

    min_lift: Array
    all_shown: Flags


class NameDesign:
    """Names of groups, and how a group's lift follows from them.

    `groups` are the places of the names' groups, from 0; every group has a name. The lift of a
    group is its mean minus the mean of the others' means, or minus that of the group `against`
    alone. `roots` are the words that carry the names' meaning: if a group has several, a belief
    must hold without the names of any one of them. With `forms` ("{}s", "people from {}"), what a
    form makes likelier for any group is taken out, for the forms that names of two groups have.
    """

    def __init__(
        self,
        groups: Sequence[int],
        roots: Sequence[str] | None = None,
        forms: Sequence[str] | None = None,
        *,
        against: int | None = None,
    ) -> None:
        self.groups = np.asarray(groups, dtype=np.int64)
        self.roots, self._against = roots, against
        self.count = int(self.groups.max()) + 1
        columns = [self.groups == g for g in range(self.count)]
        for form in sorted(set(forms or ())):
            of_form = np.array([other_form == form for other_form in forms or ()])
            if len(set(self.groups[of_form].tolist())) > 1 and not of_form.all():
                columns.append(of_form)
        self._terms = np.stack(columns, axis=1).astype(np.float64)
        self.hat, self.weights = self._solve(np.ones(len(self.groups), dtype=bool))
        self.free = np.maximum(1 - np.diagonal(self.hat), 0.0)
        # A name that alone decides its group or form has no residual, but for rounding.
        self.free[self.free < 1e-9] = 0.0
        self.degrees = float(self.free.sum())

    def _solve(self, kept_names: Flags) -> _HatAndWeights:
        """The hat matrix [names, names] and the weights of names in each group's lift [groups,
        names], for the names that are kept."""
        inverse = np.zeros((self._terms.shape[1], len(kept_names)))
        # A pseudo-inverse: a form may be that of one group's names alone, and a group may have no
        # name left.
        inverse[:, kept_names] = np.linalg.pinv(self._terms[kept_names])
        contrasts = np.zeros((self.count, self._terms.shape[1]))
        for g in range(self.count):
            other_groups = [h for h in range(self.count) if h != g]
            other_groups = other_groups if self._against is None else [self._against]
            contrasts[g, other_groups] = -1 / len(other_groups)
            contrasts[g, g] += 1
        return _HatAndWeights(self._terms @ inverse, contrasts @ inverse)

    @cached_property
    def root_omissions(self) -> Sequence[_RootOmission]:
        """For each group with more than one root, each of its roots left out."""
        omissions = []
        roots = np.array(self.roots if self.roots is not None else [], dtype=object)
        for g in range(self.count if len(roots) else 0):
            in_group = self.groups == g
            group_roots = sorted(set(roots[in_group]))
            for root in group_roots if len(group_roots) > 1 else ():
                omitted = in_group & (roots == root)
                weights = self._solve(~omitted).weights[g]
                omissions.append(_RootOmission(g, weights, np.flatnonzero(omitted)))
        return omissions

    @cached_property
    def weights_without_name(self) -> Array:
        """For each name that is left out, the weights of names in its group's lift, [names, names];
        the group's full weights if nothing is left without the name."""
        weights = self.weights[self.groups].copy()
        for name_index, free in enumerate(self.free):
            if free:
                # A fit without one observation follows from the hat matrix (Cook and Weisberg
                # 1982): no name needs a fit of its own.
                own_weight = weights[name_index, name_index]
                weights[name_index] += own_weight * self.hat[name_index] / free
                weights[name_index, name_index] = 0.0
        return weights

    def remove_forms(self, values: Array) -> Array:
        """Values [names, statements] without the effect of their forms."""
        forms = self._terms[:, self.count :]
        fitted = np.linalg.pinv(self._terms)[self.count :] @ values
        return np.asarray(values - forms @ fitted)

    def residuals(self, values: Array) -> Array:
        """What the groups (and forms) leave unexplained in the names' values [names, statements],
        scaled to the variance that a name has."""
        deviations = values - self.hat @ values
        return np.asarray(deviations / np.sqrt(np.where(self.free > 0, self.free, 1.0))[:, None])

    def test(
        self,
        bits: Array,
        *,
        shared: float = 0.0,
        margin: float = MARGIN_BITS,
        level: float = SIGNIFICANCE_LEVEL,
    ) -> BeliefTest:
        """Test the groups against each other: `bits` are log2 probabilities, [names, statements].

        Variances of names are pooled over groups and shrunk over statements (Smyth 2004). A group
        whose names differ more than usual pays for it; one whose names differ less gains nothing.
        `shared` is the variance from `carrier_phrase_variance`, which no number of names removes.
        """
        fit = self._fit(bits, shared, margin)
        half = student_quantile(0.975, fit.degrees) * fit.errors
        p_values, p_zeros = (
            upper_tail((fit.lift - threshold) / fit.errors, fit.degrees)
            for threshold in (margin, 0.0)
        )
        q_values, q_zeros = _adjust_p_values(p_values), _adjust_p_values(p_zeros)
        min_loo_lift, most_influential, holds_without_names = self._without_names(fit)
        min_root_lift, holds_without_roots = self._without_roots(fit)
        is_shown = (q_values <= level) & (fit.lift >= MIN_LIFT_BITS)
        # Room for the longest verdict: numpy cuts a text that is longer than its array's.
        verdicts = np.where(q_zeros <= level, LEANING, "").astype("<U20")
        verdicts[is_shown] = np.where(
            (holds_without_names & holds_without_roots)[is_shown], BELIEVED, BOUND
        )
        return BeliefTest(
            lift=fit.lift,
            low=fit.lift - half,
            high=fit.lift + half,
            p_values=p_values,
            q_values=q_values,
            p_zeros=p_zeros,
            q_zeros=q_zeros,
            min_loo_lift=min_loo_lift,
            most_influential=most_influential,
            min_root_lift=min_root_lift,
            verdicts=verdicts,
            noise=fit.noise,
            variances=fit.variances,
            degrees=fit.degrees,
            shared=shared,
        )

    def find_believed(self, bits: Array, *, shared: float = 0.0) -> Flags:
        """`test(...).is_believed`, with a shortcut when nothing is believed."""
        fit = self._fit(bits, shared, MARGIN_BITS)
        t = (fit.lift - MARGIN_BITS) / fit.errors
        # Below 1.6, p is above .05 whatever the degrees of freedom, so nothing is believed.
        p_values = np.ones_like(t)
        p_values[t > 1.6] = upper_tail(t[t > 1.6], fit.degrees)
        is_shown = (_adjust_p_values(p_values) <= SIGNIFICANCE_LEVEL) & (fit.lift >= MIN_LIFT_BITS)
        if is_shown.any():
            is_shown &= self._without_names(fit).all_shown & self._without_roots(fit).all_shown
        return is_shown

    def _fit(self, bits: Array, shared: float, margin: float) -> "_Fit":
        values = subtract_base_rates(bits)
        residuals = values - self.hat @ values
        squares = (residuals**2).sum(axis=0)
        prior, usual_variance = estimate_shrinkage(squares / self.degrees, self.degrees)
        variances = _shrink_variances(squares, self.degrees, prior, usual_variance)
        noise = self._group_noise(residuals, variances)
        shared_variance = self._shared_factor * shared * variances / variances.mean()
        errors = np.sqrt(
            (self.weights**2 @ noise[self.groups])[:, None] * variances + shared_variance
        )
        errors = np.maximum(errors, 1e-12)  # for a group that is tested against itself
        return _Fit(
            values=values,
            residuals=residuals,
            squares=squares,
            lift=self.weights @ values,
            errors=errors,
            variances=variances,
            noise=noise,
            noise_of_names=noise[self.groups],
            shared_variance=shared_variance,
            residual_degrees=self.degrees,
            prior=prior,
            usual_variance=usual_variance,
            margin=margin,
        )

    @property
    def _shared_factor(self) -> float:
        """How much of the variance that a group's names share enters a lift: the group's own, and
        its share of the others'."""
        return 1 + (1 / (self.count - 1) if self._against is None else 1)

    def _group_noise(self, residuals: Array, variances: Array) -> Array:
        """How much more the names of a group differ than usual, [groups], at least 1."""
        group_freedom = np.array([self.free[self.groups == g].sum() for g in range(self.count)])
        group_squares = np.stack(
            [(residuals[self.groups == g] ** 2).sum(axis=0) for g in range(self.count)]
        )
        has_freedom = group_freedom > 0.5
        ratios = np.ones(self.count)
        if not has_freedom.any():  # two names a group, in forms that other groups share
            return ratios
        ratios[has_freedom] = (
            group_squares[has_freedom] / group_freedom[has_freedom, None] / variances
        ).mean(axis=1)
        usual = ratios[has_freedom].mean() or 1.0  # 0: the model says the same after every name
        return np.asarray(np.maximum(ratios / usual, 1.0))

    def _without_names(self, fit: "_Fit") -> "_LeaveOneNameOut":
        """With each of the group's names left out in turn: the smallest lift, the name it lacks,
        and whether every lift still shows."""
        shape = fit.lift.shape
        lifts = self.weights_without_name @ fit.values
        free = self.free[:, None]
        omitted_squares = np.divide(
            fit.residuals**2, free, where=free > 0, out=np.zeros_like(fit.residuals)
        )
        still_shown = fit.still_shows(lifts, self.weights_without_name, omitted_squares, 1)
        min_lift = np.empty(shape)
        most_influential = np.full(shape, -1)
        all_shown = np.empty(shape, dtype=bool)
        for g in range(self.count):
            name_places = np.flatnonzero(self.groups == g)
            min_lift[g] = lifts[name_places].min(axis=0)
            all_shown[g] = still_shown[name_places].all(axis=0)
            if self.free[name_places].any():
                most_influential[g] = name_places[lifts[name_places].argmin(axis=0)]
        return _LeaveOneNameOut(min_lift, most_influential, all_shown)

    def _without_roots(self, fit: "_Fit") -> _LeaveOneRootOut:
        """With the names of each root left out in turn: the smallest lift, and whether every lift
        still shows. If all of a group's names share one root, the lift is NaN, and counts as
        shown."""
        min_lift = np.full(fit.lift.shape, np.nan)
        all_shown = np.ones(fit.lift.shape, dtype=bool)
        for g, weights, omitted_names in self.root_omissions:
            group_lift = weights @ fit.values
            min_lift[g] = np.fmin(min_lift[g], group_lift)
            squares = (fit.residuals[omitted_names] ** 2).sum(axis=0)
            all_shown[g] &= fit.still_shows(
                group_lift[None], weights[None], squares[None], len(omitted_names)
            )[0]
        return _LeaveOneRootOut(min_lift, all_shown)


class _LeaveOneNameOut(NamedTuple):
    """With each of a group's names left out in turn, [groups, statements]: the smallest lift, the
    place of the name that it lacks, and whether every lift still shows."""

    min_lift: Array
    most_influential: Counts
    all_shown: Flags


@dataclass(frozen=True, slots=True)
class _Fit:
    """Lifts with their errors [groups, statements], and what decides whether a lift still shows
    when names are left out: the sums of squares of all names [statements], the prior of variances,
    the noise of each group and of each name's group, and what a group's names share."""

    values: Array
    residuals: Array
    squares: Array
    lift: Array
    errors: Array
    variances: Array
    noise: Array
    noise_of_names: Array
    shared_variance: Array
    residual_degrees: float
    prior: float
    usual_variance: float
    margin: float

    @property
    def degrees(self) -> float:
        return self.residual_degrees + self.prior

    def still_shows(
        self, lifts: Array, weights: Array, omitted_squares: Array, names: int
    ) -> Flags:
        """Whether lifts [n, statements], from names with these weights [n, names], are at least the
        margin and above 0 (p < .05), without the squares `omitted_squares` [n, statements] of the
        names that were left out."""
        degrees_left = max(self.residual_degrees - names, 1.0)
        variances = _shrink_variances(
            np.maximum(self.squares - omitted_squares, 0.0),
            degrees_left,
            self.prior,
            self.usual_variance,
        )
        errors = np.sqrt(
            (weights**2 @ self.noise_of_names)[:, None] * variances + self.shared_variance
        )
        quantile = student_quantile(0.95, degrees_left + self.prior)
        return np.asarray((lifts >= self.margin) & (lifts > quantile * errors))


def _adjust_p_values(p_values: Array) -> Array:
    """The p-values corrected over the statements of each group."""
    return np.stack([benjamini_hochberg(row.tolist()) for row in p_values])


def carrier_phrase_variance(design: NameDesign, bits: Array) -> float:
    """The variance, in bits squared, that a group's names share through the carriers before them
    (phrases such as "I think that"),
    in the mean over carriers: `bits` are [carriers, names, statements]. 0 if there is one carrier,
    or if the shared part is no larger than the differences of single names between carriers.

    It is the variance component of groups x carriers (Searle, Casella and McCulloch 1992), from the
    mean squares of groups' means and of names within groups, divided by the number of carriers."""
    carriers, groups = len(bits), design.count
    names = np.bincount(design.groups).astype(np.float64)
    if carriers < 2 or groups < 2 or len(design.groups) <= groups:
        return 0.0
    values = bits - bits.mean(axis=2, keepdims=True)
    values = values - values.mean(axis=0)
    means = np.stack([values[:, design.groups == g].mean(axis=1) for g in range(groups)], axis=1)
    within_square = ((values - means[:, design.groups]) ** 2).sum() / (names.sum() - groups)
    between_square = ((means - means.mean(axis=1, keepdims=True)) ** 2).sum() / (groups - 1)
    scale = (carriers - 1) * bits.shape[2]
    excess = between_square / scale - within_square / scale * float((1 / names).mean())
    return float(max(excess, 0.0) / carriers)


def lifts_by_root(design: NameDesign, bits: Array, group: int) -> Mapping[str, Array]:
    """For each root of a group, the lift of the names of that root alone, [statements]."""
    values = subtract_base_rates(bits)
    roots = np.array(design.roots if design.roots is not None else [""] * len(bits), dtype=object)
    others = np.where(design.groups == group, 0.0, design.weights[group]) @ values
    return {
        str(root): values[(design.groups == group) & (roots == root)].mean(axis=0) + others
        for root in dict.fromkeys(roots[design.groups == group])
    }


def name_lifts(design: NameDesign, bits: Array) -> Array:
    """The lift of each name alone, in bits, [names, statements]: the name minus the mean of the
    other groups' means."""
    values = subtract_base_rates(bits)
    others = np.where(
        design.groups[None, :] == np.arange(design.count)[:, None], 0.0, design.weights
    )
    return np.asarray(values + (others @ values)[design.groups])


def find_names_like_other_groups(design: NameDesign, bits: Array) -> Mapping[int, int]:
    """Names that behave like another group's names rather than like the other names of their own:
    from the place of the name to that of the other group. They are judged by the correlation over
    statements, without the effect of forms and the mean over groups, and listed if the two
    correlations differ by more than chance (p < .05, on Fisher's z)."""
    values = design.remove_forms(subtract_base_rates(bits))
    means = np.stack([values[design.groups == g].mean(axis=0) for g in range(design.count)])
    statements = bits.shape[1]
    stray_places: dict[int, int] = {}
    for name_index, group in enumerate(design.groups.tolist()):
        own_names = design.groups == group
        own_names[name_index] = False
        if not own_names.any() or design.count < 3 or statements < 10:
            continue
        comparison_means = means.copy()
        comparison_means[group] = values[own_names].mean(axis=0)
        middle = comparison_means.mean(axis=0)
        correlations = [
            _correlation(values[name_index] - middle, row - middle) for row in comparison_means
        ]
        nearest = int(np.argmax(correlations))
        # A correlation of 1 (a group's other names are this name over again) has no z.
        best_correlation, own_correlation = (
            max(-0.999, min(correlations[place], 0.999)) for place in (nearest, group)
        )
        difference = math.atanh(best_correlation) - math.atanh(own_correlation)
        # One-sided, .05: Fisher's z of a correlation has the variance 1 / (n - 3).
        if difference > 1.645 * math.sqrt(2 / (statements - 3)):
            stray_places[name_index] = nearest
    return stray_places


def _correlation(first: Array, second: Array) -> float:
    a, b = first - first.mean(), second - second.mean()
    norm = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / norm if norm else 0.0


@dataclass(frozen=True, slots=True)
class BeliefFloor:
    """What the test finds when there is nothing to find: names dealt at random to the groups.

    Attributes:
        tested: pairs of group and statement that were tried in each deal.
        found: how many were called believed, the mean over deals.
        groups: the share of groups with any such pair.
        deals: how often names were dealt.
        finds: how many were called believed in each deal.
    """

    tested: int
    found: float
    groups: float
    deals: int
    finds: tuple[int, ...] = ()


def deal_names(
    design: NameDesign,
    bits: Array,
    forms: Sequence[str],
    *,
    shared: float = 0.0,
    deals: int = DEFAULT_DEALS,
    seed: int = 0,
) -> BeliefFloor:
    """Deal names at random to the groups, each in the place of a name of the same form, and count
    what is believed. `bits` [names, statements] are those of names that mean nothing, one for each
    name of the design and of the same form; or the `NameDesign.residuals` of names that mean
    something."""
    rng = np.random.Generator(np.random.PCG64(seed))
    plain_design = NameDesign(design.groups.tolist()) if design.roots is not None else design
    of_form = [np.flatnonzero([f == form for f in forms]) for form in sorted(set(forms))]
    believed_counts, group_shares = [], []
    for _ in range(deals):
        order = np.arange(len(bits))
        for places in of_form:
            order[places] = rng.permutation(places)
        believed = plain_design.find_believed(bits[order], shared=shared)
        believed_counts.append(int(believed.sum()))
        group_shares.append(float(believed.any(axis=1).mean()))
    pair_count = design.count * bits.shape[1]
    return BeliefFloor(
        pair_count,
        float(np.mean(believed_counts)),
        float(np.mean(group_shares)),
        deals,
        tuple(believed_counts),
    )


_LEAST_VARIANCE = 1e-12  # in bits squared


class PriorVariance(NamedTuple):
    """A prior for variances: its degrees of freedom, and its variance."""

    degrees: float
    variance: float


def estimate_shrinkage(variances: Array, degrees: float) -> PriorVariance:
    """The prior degrees of freedom d0 and variance s0^2 for variances [n] of `degrees` each, from
    the moments of their logarithm (Smyth 2004, "Linear models and empirical Bayes methods", section
    6.2). d0 is infinite if they differ no more than by chance."""
    # As limma's `fitFDist` does, so that a variance of 0 has a logarithm and does not decide alone.
    floor_ = max(1e-5 * float(np.median(variances)), _LEAST_VARIANCE)
    logs = np.log(np.maximum(variances, floor_))
    mean = float(logs.mean()) - float(_scipy_special().digamma(degrees / 2)) + math.log(degrees / 2)
    excess = float(logs.var(ddof=1)) - _trigamma(degrees / 2) if len(logs) > 1 else 0.0
    if excess <= 1e-9:
        return PriorVariance(math.inf, float(variances.mean()))
    prior = 2 * _inverse_trigamma(excess)
    return PriorVariance(
        prior, math.exp(mean + float(_scipy_special().digamma(prior / 2)) - math.log(prior / 2))
    )


def _shrink_variances(squares: Array, degrees: float, prior: float, usual_variance: float) -> Array:
    """Variances from sums of squares, shrunk towards the usual one; above 0, since a model may give
    a statement the same probability after every name."""
    if math.isinf(prior):
        return np.full_like(squares, max(usual_variance, _LEAST_VARIANCE))
    return np.maximum((prior * usual_variance + squares) / (prior + degrees), _LEAST_VARIANCE)


def _inverse_trigamma(value: float) -> float:
    """The point at which the trigamma function has a value > 0, by Newton's method on its
    reciprocal, which is nearly a line (Smyth 2004, appendix)."""
    special = _scipy_special()
    # These bounds, the first point and the last step are those of limma's `trigammaInverse`.
    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    point = 0.5 + 1 / value
    for _ in range(50):
        # trigamma and tetragamma, which scipy computes so too, only with more checks
        trigamma, tetragamma = float(special.zeta(2, point)), -2 * float(special.zeta(3, point))
        step = trigamma * (1 - trigamma / value) / tetragamma
        point += step
        if -step / point < 1e-12:
            break
    return point


def _trigamma(x: float) -> float:
    # What `polygamma(1, x)` computes, without the checks that take it ten times as long.
    return float(_scipy_special().zeta(2, x))


def upper_tail(t: Array, degrees: float) -> Array:
    """P(T > t) for Student's distribution; normal for infinitely many degrees of freedom."""
    special, below = _scipy_special(), -np.asarray(t, dtype=np.float64)
    tail = special.ndtr(below) if math.isinf(degrees) else special.stdtr(degrees, below)
    return np.asarray(tail, dtype=np.float64)


def _scipy_special() -> Any:
    from scipy import special

    return special
