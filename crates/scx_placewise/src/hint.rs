//! Hints of running threads: where they are kept, who may set them, and the socket they come by.

mod class;
mod limits;
mod map;
mod permission;
mod server;

pub use map::HintMap;
pub use server::{HintServer, ServerError};
