//! What each figure does to the predictions within its bounds, beside the noise of the rows.

use super::figures::{Factors, Figure};
use super::predictor::{Prediction, Predictions, Predictor};
use super::told_apart::{Told, tell};
use crate::reproduce::publication::spread_pct;

/// Of a figure.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// How much predictions change on the way from its value to a bound: the root of the mean square
    /// over the rows.
    pub pct: f64,
    pub told: Told,
}

/// How many costs are simulated for it.
pub fn evaluations(figures: usize) -> usize {
    1 + 2 * figures
}

pub fn effects(predictor: &mut Predictor, figures: &[Figure]) -> Vec<Effect> {
    let start = predictor.predict(&Factors::new());
    let errors: Vec<f64> = start.iter().map(|it| it.map_or(0.0, |it| it.error)).collect();
    let noise: Vec<f64> = predictor
        .published()
        .zip(&errors)
        .map(|(row, error)| (spread_pct(row) / 100.0).hypot(*error))
        .collect();
    let mut logs: Vec<Vec<f64>> = Vec::new();
    for Figure { name, bound } in figures {
        let mut at = |factor: f64| predictor.predict(&[(name.clone(), factor)].into());
        let (most, least) = (at(*bound), at(1.0 / bound));
        logs.push(half_way(&most, &least));
    }
    let by_noise = |effect: &Vec<f64>| relative(effect, &noise);
    let by_noise: Vec<Vec<f64>> = logs.iter().map(by_noise).collect();
    // The difference of two means that scatter alike, halved.
    let chance = relative(&errors, &noise).iter().map(|error| error * error / 2.0).sum();
    let told = tell(&by_noise, chance);
    logs.iter().zip(told).map(|(effect, told)| Effect { pct: pct(effect), told }).collect()
}

/// In units of the row's noise; a row without any tells nothing.
fn relative(values: &[f64], noise: &[f64]) -> Vec<f64> {
    let relative = |(value, noise): (&f64, &f64)| if *noise > 0.0 { value / noise } else { 0.0 };
    values.iter().zip(noise).map(relative).collect()
}

/// The change of each row's logarithm over half the way between two predictions.
fn half_way(most: &Predictions, least: &Predictions) -> Vec<f64> {
    let of_row = |(most, least): (&Option<Prediction>, &Option<Prediction>)| match (most, least) {
        (Some(most), Some(least)) => (most.value / least.value).ln() / 2.0,
        _ => 0.0,
    };
    most.iter().zip(least).map(of_row).collect()
}

fn pct(effect: &[f64]) -> f64 {
    let squares: f64 = effect.iter().map(|log| log * log).sum();
    100.0 * ((squares / effect.len() as f64).sqrt().exp() - 1.0)
}
