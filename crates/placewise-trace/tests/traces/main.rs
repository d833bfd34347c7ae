//! Traces from outside: what is read, what is written, and what is lost.

mod decision;
mod formats;
mod losses;
mod robustness;
