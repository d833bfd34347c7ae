//! What placements cost, on traces written by hand and on random ones.

mod bouncing;
mod causes;
mod integral;
mod waits;
mod world;
