//! The native build and the BPF build of the policy give equal answers and leave
//! equal states behind: on the policy's own tests, which hold every worked
//! example, and on more than 100,000 states drawn at random.
//!
//! In here `placewise_policy` means this test, whose `Placement` runs both.

extern crate placewise_policy as native;
extern crate self as placewise_policy;

#[allow(dead_code)] // what only others ask of a state
#[path = "../../../placewise-policy/src/drawn/mod.rs"]
pub mod drawn;
mod random_states;
mod twin;
#[path = "../../../placewise-policy/tests/policy/main.rs"]
mod worked_examples;

pub use native::*;
pub use twin::Placement;

use drawn::Generator;
use rand::RngExt;

#[test]
fn pure_functions_answer_alike() {
    let Some(mut kernel) = twin::kernel() else { return };
    let mut generator = Generator::new(11);
    for _ in 0..1_000 {
        let size = generator.rng.random_range(0..=1024);
        let util = generator.rng.random_range(0..=u64::from(size) * 1536);
        let arguments = [util, size.into(), 117];
        let answer = kernel.call("nr_idle_scan_of", &arguments, None);
        assert_eq!(answer, u64::from(nr_idle_scan_of(util, size, 117)));
    }
    for hint in 0..64 {
        assert_eq!(kernel.call("hint_check", &[hint], None), hint_check(hint as u32) as u64);
    }
}
