//! Finds the factors of figures, within their bounds, under which predictions are nearest to
//! publications: Powell's BOBYQA, which goes by a quadratic model of the objective and takes few
//! evaluations, of which each is many simulations.
//!
//! Factors are searched on their logarithms, from -1 at the lower bound to 1 at the upper. Simulations are
//! jagged: where the search ends it starts again from the best point so far, with long steps.

use bobyqa::{Bobyqa, Config, RestartConfig, Status};

use super::figures::{Factors, Figure};

/// How far the search steps at first, and how fine it is at last: finer than what rows can tell.
const FIRST_STEP: f64 = 0.5;
const LAST_STEP: f64 = 0.02;

/// How often the search starts again, if the budget lasts.
const RESTARTS: usize = 3;

/// What the search takes at least.
pub fn least_evaluations(figures: usize) -> usize {
    2 * figures + 2
}

/// The best factors found, with at most so many evaluations of `objective`.
pub fn fit(
    figures: &[Figure],
    evaluations: usize,
    mut objective: impl FnMut(&Factors) -> f64,
) -> Result<Factors, Status> {
    let n = figures.len();
    if n == 0 {
        return Ok(Factors::new());
    }
    let mut config = Config::new(n);
    config.rho_begin = FIRST_STEP;
    config.rho_end = LAST_STEP;
    config.max_fun = evaluations;
    let mut again = RestartConfig::new();
    again.max_restarts = RESTARTS;
    // Only where it ends by itself: a budget of this size is too small to be shared out.
    again.cycle_budget_frac = 0.0;
    config.restart = Some(again);
    let mut place = vec![0.0; n];
    let mut search = Bobyqa::new(n, config)?;
    let outcome = search.minimize(
        |place| objective(&factors(figures, place)),
        &mut place,
        &vec![-1.0; n],
        &vec![1.0; n],
    );
    match outcome.status {
        Status::InvalidArgs | Status::AllocationFailed => Err(outcome.status),
        _ => Ok(factors(figures, &place)),
    }
}

fn factors(figures: &[Figure], place: &[f64]) -> Factors {
    let factor = |(figure, at): (&Figure, &f64)| (figure.name.clone(), figure.bound.powf(*at));
    figures.iter().zip(place).map(factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, bound: f64) -> Figure {
        Figure { name: name.to_owned(), bound }
    }

    #[test]
    fn the_best_factors_are_found_within_their_bounds() {
        let figures = [figure("a", 2.0), figure("b", 1.5), figure("c", 1.5)];
        let mut evaluations = 0;
        let found = fit(&figures, 60, |factors| {
            evaluations += 1;
            let off = |name: &str, best: f64| (factors[name] / best).ln().powi(2);
            assert!(factors["a"] <= 2.0 && factors["a"] >= 0.5);
            off("a", 1.6) + off("b", 0.8) + off("c", 3.0)
        });
        let found = found.unwrap();
        assert!((found["a"] - 1.6).abs() < 0.05 && (found["b"] - 0.8).abs() < 0.03, "{found:?}");
        assert!((found["c"] - 1.5).abs() < 1e-9, "no further than its bound: {found:?}");
        assert!(evaluations <= 60);
    }

    #[test]
    fn one_figure_is_enough_and_none_is_nothing() {
        let one = [figure("a", 2.0)];
        let found = fit(&one, least_evaluations(1), |factors| (factors["a"] - 0.7).powi(2));
        assert!((found.unwrap()["a"] - 0.7).abs() < 0.3);
        assert_eq!(fit(&[], 1, |_| 0.0), Ok(Factors::new()));
    }
}
