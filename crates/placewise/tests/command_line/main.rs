//! The program as its users start it: what it prints, what it writes, and what it refuses.

mod advisories;
mod audit;
mod audit_beside;
mod audit_causes;
mod audit_decisions;
mod bad_input;
mod calibrate;
mod compare;
mod environment;
mod foreign;
mod hint;
mod list;
mod measure;
mod own_policy;
mod perfetto;
mod published;
mod record;
mod replay;
mod report;
mod reproduce;
mod schemas;
mod share;
mod standard_output;
mod study;
mod top;
mod uncertain;
