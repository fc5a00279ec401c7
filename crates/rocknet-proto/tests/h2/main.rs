//! HTTP/2 tests with transcripts: tables of frames with their events, in every split and with more frames after them.

mod bodies;
mod check;
mod floods;
mod frames;
mod heads;
mod idle;
mod properties;
mod responses;
