//! Whatever is said is understood, and whatever is not meant is refused.

use placewise_hint::{Answer, Hint, Hinted, Inheritance, Intents, Request};
use proptest::collection::vec;
use proptest::prelude::*;

const WORDS: &[&str] =
    &["set", "get", "show", "ok", "hint", "error", "none", "wake_hold", "children", "7"];

const TABLE: &str = include_str!("../src/intents.toml");

fn hint() -> impl Strategy<Value = Hint> {
    (0u32..64).prop_filter_map("a hint", |mask| Hint::from_mask(mask).ok())
}

fn inheritance() -> impl Strategy<Value = Inheritance> {
    prop_oneof![Just(Inheritance::Children), Just(Inheritance::OnlySelf)]
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        (hint(), inheritance()).prop_map(|(hint, inheritance)| Request::Set(hint, inheritance)),
        Just(Request::Get),
        Just(Request::Show),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Ok),
        (any::<u32>(), hint(), inheritance()).prop_map(|(tid, hint, inheritance)| {
            Answer::Hint(Hinted { tid, hint, inheritance })
        }),
        (1..200, "[ -~]{0,100}").prop_map(|(errno, text)| Answer::Error(errno, text)),
    ]
}

/// Words of the protocol beside each other, or any bytes.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let words = vec(prop::sample::select(WORDS), 0..6).prop_map(|words| words.join(" "));
    prop_oneof![words.prop_map(String::into_bytes), vec(any::<u8>(), 0..300)]
}

proptest! {
    #[test]
    fn requests_and_answers_read_back(request in request(), answer in answer()) {
        prop_assert_eq!(request.to_string().parse(), Ok(request));
        prop_assert_eq!(answer.to_string().parse(), Ok(answer));
    }

    #[test]
    fn anything_else_is_refused_without_a_panic(noise in noise()) {
        // Both ends read bytes so.
        let noise = String::from_utf8_lossy(&noise);
        if let Ok(request) = noise.parse::<Request>() {
            prop_assert_eq!(request.to_string().parse(), Ok(request));
        }
        let _ = noise.parse::<Answer>();
    }

    #[test]
    fn a_damaged_table_of_intents_is_refused_without_a_panic(
        edits in vec((any::<prop::sample::Index>(), 0usize..40, vec(any::<u8>(), 0..4)), 0..4),
    ) {
        let mut table = TABLE.as_bytes().to_vec();
        for (at, length, bytes) in edits {
            let start = at.index(table.len() + 1);
            let end = (start + length).min(table.len());
            table.splice(start..end, bytes);
        }
        let _ = Intents::parse(&String::from_utf8_lossy(&table));
    }
}

#[test]
fn what_the_documentation_shows_is_what_is_said() {
    let spread = "fork_spread+wake_hold".parse().unwrap();
    let request = Request::Set(spread, Inheritance::OnlySelf);
    assert_eq!(request.to_string(), "set fork_spread+wake_hold self");
    let hinted = Hinted { tid: 7, hint: spread, inheritance: Inheritance::Children };
    assert_eq!(Answer::Hint(hinted).to_string(), "hint 7 fork_spread+wake_hold children");
    for wrong in ["set", "set fork_spread", "set 2 children", "set none forever", "get 1", "show\n"]
    {
        assert!(wrong.parse::<Request>().is_err(), "{wrong}");
    }
}
