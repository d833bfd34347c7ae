//! What is told of a run: nothing here changes it.

mod account;
mod counters;
mod decision;
mod idle_searches;
mod load_balance;
mod outcome;
mod schedstat;
mod tracing;
