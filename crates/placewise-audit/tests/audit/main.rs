//! The audit from outside: traces in, placements and their cost out.

mod agreement;
mod by_line;
mod cost;
