//! What the command line, the GUI and the dashboard may ask of a running RockNet, and what it tells.
#![forbid(unsafe_code)]
