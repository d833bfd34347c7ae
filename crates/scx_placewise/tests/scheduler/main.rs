//! `scx_placewise` on the running kernel: its command line, its hint server, its BPF programs.

mod command_line;
mod hints;
mod instruction_counts;
mod pins;
