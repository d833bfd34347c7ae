//! Whatever is said is understood, and whatever is not meant is refused.

use placewise_hint::{Answer, Hint, Hinted, Inheritance, Request};
use proptest::prelude::*;

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

proptest! {
    #[test]
    fn requests_and_answers_read_back(request in request(), answer in answer()) {
        prop_assert_eq!(request.to_string().parse(), Ok(request));
        prop_assert_eq!(answer.to_string().parse(), Ok(answer));
    }

    #[test]
    fn anything_else_is_refused_without_a_panic(noise in "\\PC{0,80}") {
        if let Ok(request) = noise.parse::<Request>() {
            prop_assert_eq!(request.to_string(), noise.clone());
        }
        let _ = noise.parse::<Answer>();
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
