//! Files: a path of a site to what lies in its folder, with everything RFC 9110 lets a client ask of it.

pub mod answer;
pub mod encode;
pub mod listing;
pub mod load;
pub mod look;
pub mod missed;
pub mod resolve;
pub mod script;
pub mod serve;
pub mod shared_pages;
pub mod tree;
