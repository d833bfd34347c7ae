//! Hints of running threads: where they are kept, who may set them, and the socket they come by.

mod map;
mod permission;
mod server;
mod switch;

pub use map::HintMap;
pub use server::{HintServer, ServerError};
pub use switch::follow_hint;
