//! What rows can tell of cost figures: which of them move predictions by more than noise, and which do so
//! in a way that no other figures do.
//!
//! The effect of a figure is how much the logarithm of each row's prediction changes on the way from its
//! value to a bound, half of that between both bounds, relative to the row's noise: that of publications
//! and that of the runs. If the squares of all rows add up to less than 4, its 95 % interval would be
//! wider than its bounds: nothing is known of it. Figures are taken one after the other, the one with
//! the largest effect first, and what their effects have in common with it is taken off the others
//! (a QR decomposition with pivoting). One whose rest is noise cannot be told apart from those taken.
//!
//! Limits: effects are taken as if they were linear and added up; one that turns within the bounds is
//! not seen. What the model gets wrong is not noise.

/// Of a parameter that is measured from -1 to 1, the square of 1.96 standard errors is 1.
const KNOWN: f64 = 4.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// From all that was taken before it.
    Apart,
    /// Nothing that it does is more than noise.
    WithoutEffect,
    /// What it does is what this one does, most of all that were taken.
    Like(usize),
}

/// Of each figure, by its effects on the rows in units of their noise. `chance` is what the squares of
/// such effects add up to where there are none, for the runs scatter.
pub fn tell(effects: &[Vec<f64>], chance: f64) -> Vec<Told> {
    let mut rests = effects.to_vec();
    let mut told = vec![None; effects.len()];
    let is_known = |effect: &[f64]| dot(effect, effect) - chance > KNOWN;
    loop {
        let open = (0..effects.len()).filter(|one| told[*one].is_none());
        let size = |one: &usize| dot(&rests[*one], &rests[*one]);
        let Some(most) =
            open.max_by(|one, other| size(one).total_cmp(&size(other)).then(other.cmp(one)))
        else {
            break;
        };
        if !is_known(&rests[most]) {
            break;
        }
        told[most] = Some(Told::Apart);
        let taken = rests[most].clone();
        for rest in &mut rests {
            let share = dot(rest, &taken) / dot(&taken, &taken);
            rest.iter_mut().zip(&taken).for_each(|(one, other)| *one -= share * other);
        }
    }
    let taken: Vec<usize> =
        (0..effects.len()).filter(|one| told[*one] == Some(Told::Apart)).collect();
    let left = |one: usize| match is_known(&effects[one]) {
        false => Told::WithoutEffect,
        true => Told::Like(nearest(effects, one, &taken)),
    };
    told.iter().enumerate().map(|(one, told)| told.unwrap_or_else(|| left(one))).collect()
}

/// By the angle between effects, among `taken`.
fn nearest(effects: &[Vec<f64>], one: usize, taken: &[usize]) -> usize {
    let likeness = |other: &usize| {
        let other = &effects[*other];
        (dot(&effects[one], other) / dot(other, other).sqrt()).abs()
    };
    let nearest = taken.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    *nearest.expect("what is known and not taken was made small by one that is")
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_within_noise_tells_nothing() {
        assert_eq!(tell(&[vec![1.0, 1.0, 1.0]], 0.0), [Told::WithoutEffect]);
        assert_eq!(tell(&[vec![2.0, 2.0, 0.0]], 0.0), [Told::Apart]);
        assert_eq!(tell(&[vec![2.0, 2.0, 0.0]], 5.0), [Told::WithoutEffect], "the runs scatter");
        assert_eq!(tell(&[vec![0.0; 3]], 0.0), [Told::WithoutEffect]);
    }

    #[test]
    fn figures_that_do_the_same_are_not_told_apart() {
        let both = vec![9.0, 9.0, 9.0, 9.0];
        let nearly = vec![6.0, 6.0, 6.0, 6.5];
        let other = vec![0.0, 0.0, 5.0, -5.0];
        let told = tell(&[nearly, both, other], 0.0);
        assert_eq!(told, [Told::Like(1), Told::Apart, Told::Apart]);
    }

    /// None is like another alone, but the third is what the first two are together.
    #[test]
    fn a_sum_of_two_is_not_told_apart_either() {
        let told = tell(&[vec![9.0, 0.0], vec![0.0, 8.0], vec![5.0, 4.0]], 0.0);
        assert_eq!(told, [Told::Apart, Told::Apart, Told::Like(0)]);
    }
}
