//! HTTP/2 tests with transcripts: tables of frames with their events. The bytes are split in many places, and more
//! frames follow an error.

mod bodies;
mod check;
mod floods;
mod frames;
mod heads;
mod idle;
mod properties;
mod responses;
